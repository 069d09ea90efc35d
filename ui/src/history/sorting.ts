import type { RunSort } from '../api/queries';

const columns = new Set<string>([
  'name',
  'qps',
  'p50_ms',
  'p95_ms',
  'p99_ms',
  'error_rate',
  'total_ops',
  'length',
  'created',
  'ended',
  'status',
  'validity',
  'created_by',
  'connections',
]);

export interface Order {
  by: RunSort;
  way: 'asc' | 'desc';
}

/** The order of a list as the address says it: "p95_ms", or "-p95_ms" for the greatest first; null for newest first. */
export function sortFrom(text: string): Order | null {
  const by = text.replace(/^-/, '');
  return columns.has(by) ? { by: by as RunSort, way: text.startsWith('-') ? 'desc' : 'asc' } : null;
}

/** The order after a press on a column's head: the way that is asked for most, the other one, then newest first. */
export function pressed(text: string, by: RunSort): string {
  const first =
    by === 'qps' || by === 'total_ops' || by === 'length' || by === 'ended' || by === 'connections' ? `-${by}` : by;
  const second = first.startsWith('-') ? by : `-${by}`;
  return text === first ? second : text === second ? '' : first;
}
