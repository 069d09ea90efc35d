/** ranges are the time filters; the key is used in the address. */
export const ranges = [
  ['', 'Any time'],
  ['1h', 'Last hour'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
] as const;

/**
 * rangeStart is the start of a range as RFC 3339, rounded to the minute so that repeated queries are equal; undefined
 * for any time.
 */
export function rangeStart(range: string, now = Date.now()): string | undefined {
  const m = /^(\d+)([hd])$/.exec(range);
  if (!m) return undefined;
  const ms = Number(m[1]) * (m[2] === 'h' ? 3_600_000 : 86_400_000);
  return new Date(Math.floor((now - ms) / 60_000) * 60_000).toISOString();
}
