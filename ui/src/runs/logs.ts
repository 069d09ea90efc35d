import type { LogEntry, LogLevel } from '../api/types';

/** mergeLogs adds new lines by sequence number and keeps the newest. */
export function mergeLogs(have: LogEntry[], more: LogEntry[] | null | undefined, keep = 5000): LogEntry[] {
  if (!more?.length) return have;
  const last = have.length ? have[have.length - 1]!.seq : 0;
  const fresh = more.filter((l) => l.seq > last);
  let all: LogEntry[];
  if (fresh.length === more.length) all = [...have, ...fresh.toSorted((a, b) => a.seq - b.seq)];
  else {
    const bySeq = new Map(have.map((l) => [l.seq, l]));
    for (const l of more) bySeq.set(l.seq, l);
    if (bySeq.size === have.length) return have;
    all = [...bySeq.values()].sort((a, b) => a.seq - b.seq);
  }
  return all.length > keep ? all.slice(-keep) : all;
}

/** firstGap is the sequence number before a gap; null without a gap. */
export function firstGap(lines: LogEntry[]): number | null {
  for (let i = 1; i < lines.length; i++) if (lines[i]!.seq > lines[i - 1]!.seq + 1) return lines[i - 1]!.seq;
  return lines.length > 0 && lines[0]!.seq > 1 ? 0 : null;
}

const severity: Record<LogLevel, number> = { INFO: 0, WARNING: 1, ERROR: 2, CRITICAL: 3 };

export function filterByLevel(level: LogLevel, lines: LogEntry[]): LogEntry[] {
  return level === 'INFO' ? lines : lines.filter((l) => (severity[l.level] ?? 0) >= severity[level]);
}
