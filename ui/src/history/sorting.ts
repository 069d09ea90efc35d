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
  direction: 'asc' | 'desc';
}

/** sortFrom parses the order of an address: "p95_ms", or "-p95_ms" for descending; null for newest first. */
export function sortFrom(text: string): Order | null {
  const by = text.replace(/^-/, '');
  return columns.has(by) ? { by: by as RunSort, direction: text.startsWith('-') ? 'desc' : 'asc' } : null;
}

/** nextSort is the order after a click on a header: the usual direction, the other one, then newest first. */
export function nextSort(text: string, by: RunSort): string {
  const first =
    by === 'qps' || by === 'total_ops' || by === 'length' || by === 'ended' || by === 'connections' ? `-${by}` : by;
  const second = first.startsWith('-') ? by : `-${by}`;
  return text === first ? second : text === second ? '' : first;
}
