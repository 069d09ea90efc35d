import { CopyButton } from '../design/Controls';

/** joinCommand starts a machine as a node. */
export const joinCommand = (secret: string) =>
  `LOADSTONE_JOIN=${secret} loadstone worker --listen HOST:9090 --data-dir ./loadstone-node`;

export const joinSteps: { title: string; text: string }[] = [
  {
    title: "On the server's machine: a token, good for one node and an hour (or “New token” on this page)",
    text: 'loadstone node token',
  },
  {
    title: 'On the machine that is to bear load, with that token and an address that the server reaches',
    text: joinCommand('lsn_…'),
  },
  {
    title: "On the server's machine again: the server dials the node from now on",
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
