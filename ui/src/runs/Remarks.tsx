import type { Payload, Summary } from '../api/types';
import { connectionsLine, summaryLines } from './summaryLines';

/** RunRemarks shows what a reader of the tiles must know; nothing otherwise. */
export function RunRemarks({ s, live }: { s: Summary | null; live: Payload | null }) {
  const connections = connectionsLine(s ? s.connections : live?.connections);
  const lines = [...(s ? summaryLines(s) : []), ...(connections ? [connections] : [])];
  if (lines.length === 0) return null;
  return (
    <ul className="remarks muted">
      {lines.map((l) => (
        <li key={l}>{l}</li>
      ))}
    </ul>
  );
}
