import { CopyButton } from '../design/Controls';

export const joinSteps: { title: string; text: string }[] = [
  {
    title: 'A token that both sides know, once',
    text: 'openssl rand -hex 32 > token',
  },
  {
    title: 'On the machine that is to bear load, with a certificate for its name',
    text:
      'loadstone worker --listen 0.0.0.0:9090 --data-dir ./loadstone-node \\\n' +
      '  --cert node.pem --key node.key --token-file token',
  },
  {
    title: 'The server is started with the addresses of its nodes',
    text: 'loadstone serve --nodes HOST:9090 --nodes-ca ca.pem --nodes-token-file token',
  },
];

/** How a node is added, to copy. */
export function Join() {
  return (
    <ol className="join">
      {joinSteps.map((s) => (
        <li key={s.title}>
          <span>{s.title}</span>
          <div className="row nowrap">
            <pre className="code grow">{s.text}</pre>
            <CopyButton text={s.text} label={`Copy: ${s.title}`} />
          </div>
        </li>
      ))}
    </ol>
  );
}
