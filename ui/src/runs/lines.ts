import type { Payload, Summary } from '../api/types';
import { exact, latency, plain } from '../design/format';
import { said } from '../design/said';

const some = (n: number | undefined, words: string) => (n ? [`${exact(n)} ${words}`] : []);

/** How the connections held; null while all did. Of what is reopened planned reconnects are a part. */
export function connectionsLine(c: Summary['connections'] | Payload['connections'] | undefined): string | null {
  if (!c) return null;
  const said = [
    ...some(c.lost, 'lost'),
    ...some(c.refused, 'refused'),
    ...some(c.reopened, 'reopened'),
    ...some('missing' in c ? c.missing : undefined, 'missing now'),
    ...some('most_missing' in c ? c.most_missing : undefined, 'missing at once, at most'),
  ];
  return said.length ? `Connections: ${said.join(', ')}.` : null;
}

/** More notes than these are counted; *Environment* has them all. */
const mostNotes = 8;

/**
 * What the tiles of a finished run leave out: the notes of its verdict, which a reader of VALID figures needs as much
 * as those of others, and how many operations are in no rate where that is too few for a note.
 */
export function summaryLines(s: Summary): string[] {
  const notes = s.validity_detail?.notes ?? [];
  const lines = notes.slice(0, mostNotes).map(said);
  if (notes.length > mostNotes) lines.push(`${exact(notes.length - mostNotes)} more notes are under Environment.`);
  if (s.finished_late && !notes.some((n) => n.includes('ended after the measurement')))
    lines.push(
      `${exact(s.finished_late)} ${s.finished_late === 1 ? 'operation' : 'operations'} ended after the ` +
        `measurement, within ${plain(latency((s.drain_seconds ?? 0) * 1000))}: ` +
        `${s.finished_late === 1 ? 'its latency counts, it is' : 'their latency counts, they are'} in no rate.`,
    );
  return lines;
}
