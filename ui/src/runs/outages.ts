import type { Outage } from '../api/types';
import { capitalize, count, duration, humanize, plain } from '../design/format';

/** outageRanges are the times in which the target was down, in seconds since the run's start. */
export function outageRanges(
  outages: Outage[] | null | undefined,
  start: string | null,
): { from: number; to: number }[] {
  if (!start) return [];
  return (outages ?? []).map((o) => {
    const from = (Date.parse(o.last_success_before ?? '') - Date.parse(start)) / 1000;
    return { from, to: from + o.down_seconds };
  });
}

/** outageTitle says how long an outage was. */
export function outageTitle(o: Outage): string {
  const of = o.kind ? ` of ${capitalize(humanize(o.kind))}` : '';
  const back = o.to_the_end
    ? 'to the end of the load'
    : o.full_rate_seconds != null
      ? `full rate after ${duration(o.full_rate_seconds)}`
      : 'full rate not seen again';
  return `Outage ${o.number}${of}: down for ${duration(o.down_seconds)}, ${back}`;
}

/** outageCounts says what became of the operations of an outage. */
export function outageCounts(o: Outage): string {
  const parts = [`${plain(count(o.failed))} failed`];
  if (o.unknown > 0) parts.push(`${plain(count(o.unknown))} of them with an unknown outcome`);
  if (o.delayed > 0) parts.push(`${plain(count(o.delayed))} delayed`);
  if (o.dropped) parts.push(`${plain(count(o.dropped))} dropped`);
  return `${parts.join(', ')}.`;
}

/** phaseNames are the parts of an outage, in order. */
export const phaseNames = { onset: 'before the last success', down: 'while it was down', recovery: 'after the return' };
