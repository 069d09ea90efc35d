import { CopyButton } from '../design/Controls';

/** joinCommand starts a machine as a node. */
export const joinCommand = (secret: string) =>
  `LOADSTONE_JOIN=${secret} loadstone worker --listen HOST:9090 --data-dir ./loadstone-node`;

export const joinSteps: { title: string; text: string }[] = [
  {
    title: 'On the server: create a token for one node, valid for an hour (or press “New token”)',
    text: 'loadstone node token',
  },
  {
    title: 'On the new machine: start the node with that token and an address that the server can reach',
    text: joinCommand('lsn_…'),
  },
  {
    title: 'On the server: connect to the node',
    text: 'loadstone node add HOST:9090',
  },
];

/** Join shows how to add a node. */
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
