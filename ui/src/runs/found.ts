// What the table of executions is asked for, in the address of the page and in requests.

export interface Wanted {
  kind: string;
  statement: string;
  worker: string;
  class: string;
  code: string;
  message: string;
  outcome: string;
  phase: string;
  /** Seconds since the start of the run at which executions ended: from it on, and before the second. */
  since: string;
  before: string;
  /** Latencies in milliseconds: above the first, up to the second. */
  over: string;
  upto: string;
  inside: string;
  sort: string;
  order: string;
}

export const nothing: Wanted = {
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

const names = Object.keys(nothing) as (keyof Wanted)[];

/** Reads what is wanted from the address of a page. */
export function wantedFrom(search: string): Wanted {
  const q = new URLSearchParams(search);
  const out = { ...nothing };
  for (const n of names) out[n] = q.get(n) ?? '';
  return out;
}

/** The address that shows what is wanted; what else it says stays, but for the page that was turned to. */
export function withWanted(search: string, wanted: Partial<Wanted>): string {
  const q = new URLSearchParams(search);
  q.delete('after');
  for (const n of names) {
    const v = wanted[n];
    if (v === undefined) continue;
    if (v === '') q.delete(n);
    else q.set(n, v);
  }
  return `?${q}`;
}

/** The address of all executions of a run that are wanted, and of no others. */
export const tableOf = (runID: string, wanted: Partial<Wanted>) =>
  `/runs/${runID}${withWanted('?tab=executions', { ...nothing, ...wanted })}`;

/** What is in a cell of the heat map: executions that ended in its second with latencies of its bucket. */
export const cellOf = (from: number, to: number, cell: { from: number; to: number }): Partial<Wanted> => ({
  since: from.toFixed(3),
  before: to.toFixed(3),
  // A bucket's bound has no end of digits; a nanosecond is the finest that is recorded.
  over: cell.from.toFixed(6),
  upto: cell.to.toFixed(6),
  sort: 'latency',
});

/** Executions that ended within a time, in seconds of the run. */
export const momentOf = (from: number, to: number): Partial<Wanted> => ({
  since: from.toFixed(3),
  before: to.toFixed(3),
});

/** Whether anything narrows the table. */
export const narrowed = (w: Wanted) => names.some((n) => n !== 'sort' && n !== 'order' && w[n] !== '');

const number = (text: string): number | undefined => {
  const n = Number(text.replace(',', '.'));
  return text.trim() === '' || !Number.isFinite(n) || n < 0 ? undefined : n;
};

/** Why a field cannot be asked for; empty where all can. */
export function wrong(w: Wanted): string {
  for (const [n, name] of [
    ['since', 'From'],
    ['before', 'Until'],
    ['over', 'Above'],
    ['upto', 'Up to'],
  ] as const)
    if (w[n].trim() !== '' && number(w[n]) === undefined) return `${name} is not a number of 0 or more: “${w[n]}”.`;
  const [since, before, over, upto] = [number(w.since), number(w.before), number(w.over), number(w.upto)];
  if (since !== undefined && before !== undefined && before <= since) return 'Until is not after From.';
  if (over !== undefined && upto !== undefined && upto <= over) return 'Up to is not more than Above.';
  return '';
}

/** The request for what is wanted of a run that began at start (Unix milliseconds). */
export function asked(w: Wanted, start: number, cursor: string) {
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
