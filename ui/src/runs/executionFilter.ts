// The filter of the executions table, in the address and in requests.

export interface ExecutionFilter {
  kind: string;
  statement: string;
  worker: string;
  class: string;
  code: string;
  message: string;
  outcome: string;
  phase: string;
  /** End time of executions in seconds since the run's start: from since, before before. */
  since: string;
  before: string;
  /** Latency in milliseconds: above over, up to upto. */
  over: string;
  upto: string;
  inside: string;
  sort: string;
  order: string;
}

export const emptyFilter: ExecutionFilter = {
  kind: '',
  statement: '',
  worker: '',
  class: '',
  code: '',
  message: '',
  outcome: '',
  phase: '',
  since: '',
  before: '',
  over: '',
  upto: '',
  inside: '',
  sort: '',
  order: '',
};

const names = Object.keys(emptyFilter) as (keyof ExecutionFilter)[];

/** filterFromSearch parses an address. */
export function filterFromSearch(search: string): ExecutionFilter {
  const q = new URLSearchParams(search);
  const out = { ...emptyFilter };
  for (const n of names) out[n] = q.get(n) ?? '';
  return out;
}

/** withFilter applies a filter to an address and resets its page. */
export function withFilter(search: string, filter: Partial<ExecutionFilter>): string {
  const q = new URLSearchParams(search);
  q.delete('after');
  for (const n of names) {
    const v = filter[n];
    if (v === undefined) continue;
    if (v === '') q.delete(n);
    else q.set(n, v);
  }
  return `?${q}`;
}

/** executionsPath links to the executions of a run that match a filter. */
export const executionsPath = (runID: string, filter: Partial<ExecutionFilter>) =>
  `/runs/${runID}${withFilter('?tab=executions', { ...emptyFilter, ...filter })}`;

/** cellFilter matches a heat map cell: executions that ended in its second, with latencies of its bucket. */
export const cellFilter = (from: number, to: number, cell: { from: number; to: number }): Partial<ExecutionFilter> => ({
  since: from.toFixed(3),
  before: to.toFixed(3),
  // Bucket bounds have endless digits; a nanosecond is the recorded precision.
  over: cell.from.toFixed(6),
  upto: cell.to.toFixed(6),
  sort: 'latency',
});

/** timeFilter matches executions that ended in a time range of run seconds. */
export const timeFilter = (from: number, to: number): Partial<ExecutionFilter> => ({
  since: from.toFixed(3),
  before: to.toFixed(3),
});

/** isFiltered reports that any field restricts the table. */
export const isFiltered = (w: ExecutionFilter) => names.some((n) => n !== 'sort' && n !== 'order' && w[n] !== '');

const number = (text: string): number | undefined => {
  const n = Number(text.replace(',', '.'));
  return text.trim() === '' || !Number.isFinite(n) || n < 0 ? undefined : n;
};

/** filterProblem says what is wrong with a field; '' when valid. */
export function filterProblem(w: ExecutionFilter): string {
  for (const [n, name] of [
    ['since', 'From'],
    ['before', 'Until'],
    ['over', 'Above'],
    ['upto', 'Up to'],
  ] as const)
    if (w[n].trim() !== '' && number(w[n]) === undefined)
      return `${name} must be a number of 0 or more, not “${w[n]}”.`;
  const [since, before, over, upto] = [number(w.since), number(w.before), number(w.over), number(w.upto)];
  if (since !== undefined && before !== undefined && before <= since) return '“Until” must be after “From”.';
  if (over !== undefined && upto !== undefined && upto <= over) return '“Up to” must exceed “Above”.';
  return '';
}

/** executionsRequest converts a filter to a query; start is the run's, in Unix milliseconds. */
export function executionsRequest(w: ExecutionFilter, start: number, cursor: string) {
  const at = (seconds: string) => {
    const s = number(seconds);
    return s === undefined || start === 0 ? undefined : new Date(start + s * 1000).toISOString();
  };
  const sort: 'latency' | 'time' = w.sort === 'latency' ? 'latency' : 'time';
  const order: 'asc' | 'desc' = w.order === 'asc' ? 'asc' : 'desc';
  return {
    kind: w.kind ? [w.kind] : undefined,
    statement: w.statement ? [w.statement] : undefined,
    worker: w.worker ? [w.worker] : undefined,
    error_class: w.class ? [w.class] : undefined,
    error_code: w.code ? [w.code] : undefined,
    error_message: w.message ? [w.message] : undefined,
    outcome: (w.outcome || undefined) as 'succeeded' | 'failed' | 'rolled_back' | undefined,
    phase: (w.phase || undefined) as 'WARMUP' | 'MEASUREMENT' | undefined,
    from: at(w.since),
    until: at(w.before),
    over_ms: number(w.over),
    upto_ms: number(w.upto),
    inside: w.inside === 'yes' || undefined,
    sort,
    order,
    cursor: cursor || undefined,
    limit: 50,
  };
}
