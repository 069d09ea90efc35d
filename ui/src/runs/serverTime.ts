import type { Finding, ServerSecond, ServerTime } from '../api/types';
import type { Line } from '../charts/plot';
import type { Zoom } from '../charts/group';

/** classes are the wait classes in the order of the stack, with their words and colours. */
export const classes = [
  { key: 'cpu', label: 'Processor', color: '--k-insert' },
  { key: 'lock', label: 'Locks', color: '--e-1' },
  { key: 'commit', label: 'COMMIT', color: '--k-update' },
  { key: 'replica', label: 'Replica', color: '--run-7' },
  { key: 'read', label: 'Reading', color: '--k-point_lookup' },
  { key: 'write', label: 'Writing', color: '--k-range_scan' },
  { key: 'spill', label: 'Temporary files', color: '--run-8' },
  { key: 'latch', label: 'Memory structures', color: '--k-generic_sql' },
  { key: 'client', label: 'Client', color: '--k-transaction' },
  { key: 'other', label: 'Other waits', color: '--line-strong' },
] as const;

/** classLines are the stacked lines of the classes that occur, and the operations in flight over them. */
export function classLines(seconds: ServerSecond[]): Line[] {
  const lines: Line[] = classes
    .filter((k) => seconds.some((s) => (s.ours?.[k.key] ?? 0) > 0))
    .map((k) => ({
      key: k.key,
      label: k.label,
      color: k.color,
      fill: 0.5,
      // A second without a look is a gap, not an idle server.
      values: seconds.map((s) => (s.looks > 0 ? (s.ours?.[k.key] ?? 0) : null)),
    }));
  if (seconds.some((s) => s.in_flight !== null))
    lines.push({
      key: 'in_flight',
      label: 'Operations in flight',
      color: '--text-3',
      dash: [4, 3],
      unstacked: true,
      values: seconds.map((s) => s.in_flight),
    });
  return lines;
}

/** interval is the time of a finding in run seconds, null where it has none. */
export function interval(f: Pick<Finding, 'from' | 'to'>, start: string | null): Zoom | null {
  if (!f.from || !f.to || !start) return null;
  const at = (t: string) => (Date.parse(t) - Date.parse(start)) / 1000;
  const from = Math.max(0, at(f.from));
  return at(f.to) > from ? { from, to: at(f.to) } : null;
}

/** shareText is the share of a finding with its interval. */
export function shareText(f: Pick<Finding, 'share' | 'share_low' | 'share_high'>): string {
  const pct = (v: number | null) => Math.round(100 * (v ?? 0));
  return `${pct(f.share)} % (${pct(f.share_low)} to ${pct(f.share_high)} %)`;
}

/** timeParts are the parts of the client's time in percent, without those of nearly nothing. */
export function timeParts(t: ServerTime): { label: string; color: string; pct: number }[] {
  const all = [
    { label: 'Network and driver', color: '--accent', seconds: t.network_seconds },
    { label: 'Waiting for a connection', color: '--warn-mark', seconds: t.waiting_seconds },
    ...classes.map((k) => ({ label: k.label, color: k.color, seconds: t.classes?.[k.key] ?? 0 })),
    { label: 'Not explained', color: '--line-strong', seconds: t.remainder_seconds },
  ];
  return all
    .map(({ label, color, seconds }) => ({ label, color, pct: (100 * seconds) / t.in_flight_seconds }))
    .filter((p) => Math.abs(p.pct) >= 0.5);
}
