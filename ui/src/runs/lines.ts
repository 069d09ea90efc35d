import type { Payload, Summary } from '../api/types';
import { exact, latency, plain } from '../design/format';

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

/** What the tiles of a finished run leave out: what is in no rate, and what its stalls hide. */
export function summaryLines(s: Summary): string[] {
  const lines: string[] = [];
  if (s.finished_late)
    lines.push(
      `${exact(s.finished_late)} ${s.finished_late === 1 ? 'operation' : 'operations'} ended after the ` +
        `measurement, within ${plain(latency((s.drain_seconds ?? 0) * 1000))}: their latency counts, they ` +
        'are in no rate.',
    );
  const o = s.coordinated_omission;
  // Arrivals of an open loop go on in a stall; only a closed one hides it, unless what waited in it shows it.
  if (o && !s.service_ms && o.p99_ms > (s.latency_ms?.p99 ?? 0))
    lines.push(
      `The database stood still for ${plain(latency(o.stalled_seconds * 1000))}, and no new operation ` +
        `came meanwhile. Had they come at the usual pace, P99 would be ${plain(latency(o.p99_ms))} or more.`,
    );
  return lines;
}
