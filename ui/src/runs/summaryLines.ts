import type { Payload, Summary } from '../api/types';
import { exact, latency, plain } from '../design/format';

const some = (n: number | undefined, words: string) => (n ? [`${exact(n)} ${words}`] : []);

/** connectionsLine summarizes connection losses; null without any. Planned reconnects are part of the reopened ones. */
export function connectionsLine(c: Summary['connections'] | Payload['connections'] | undefined): string | null {
  if (!c) return null;
  const problems = [
    ...some(c.lost, 'lost'),
    ...some(c.refused, 'refused'),
    ...some(c.reopened, 'reopened'),
    ...some('missing' in c ? c.missing : undefined, 'missing now'),
    ...some('most_missing' in c ? c.most_missing : undefined, 'missing at most'),
  ];
  return problems.length ? `Connections: ${problems.join(', ')}.` : null;
}

/** maxNotes: further notes are counted; *Environment* lists all. */
const maxNotes = 8;

/** summaryLines are the notes that the tiles omit; readers of valid figures need them too. */
export function summaryLines(s: Summary): string[] {
  const notes = s.validity_detail?.notes ?? [];
  const lines = notes.slice(0, maxNotes);
  if (notes.length > maxNotes) lines.push(`${exact(notes.length - maxNotes)} more notes: see Environment.`);
  // Runs of versions without codes have it among their notes.
  const told = s.validity_detail?.note_details?.some((n) => n.code === 'finished_late') ?? notes.length > 0;
  if (s.finished_late && !told)
    lines.push(
      `${exact(s.finished_late)} ${s.finished_late === 1 ? 'operation' : 'operations'} ended after the ` +
        `measurement, within ${plain(latency((s.drain_seconds ?? 0) * 1000))}: ` +
        `${s.finished_late === 1 ? 'its latency counts, it is' : 'their latency counts, they are'} in no rate.`,
    );
  if (s.carried_over && !s.validity_detail?.note_details?.some((n) => n.code === 'carried_over'))
    lines.push(
      `${exact(s.carried_over)} ${s.carried_over === 1 ? 'operation was' : 'operations were'} due in the warm-up and ` +
        `ended in the measurement: ${s.carried_over === 1 ? 'it is' : 'they are'} in the rate and in no other figure.`,
    );
  return lines;
}
