// The state of the Explore page in its address, so that a link shows what its sender saw.

export type View = 'lines' | 'stacked' | 'heat' | 'table';
export type Over = 'time' | 'runs';

export interface ExploreQuery {
  q: string;
  /** Over clock time, or over each run's time from its start. */
  over: Over;
  /** How far back from now, as in 1h; '' with from and to, in Unix milliseconds. */
  last: string;
  from: number;
  to: number;
  /** The overlaid runs, and those whose median is drawn. */
  runs: string[];
  base: string[];
  /** The zoomed part of the runs' time, as in 10-25.5 seconds; '' for all. */
  range: string;
  /** Seconds between points; 0 is automatic. */
  step: number;
  view: View;
  unit: string;
  /** Refresh interval in seconds; 0 is never. */
  every: number;
}

export const spans = [
  ['5m', 'Last 5 minutes'],
  ['15m', 'Last 15 minutes'],
  ['1h', 'Last hour'],
  ['6h', 'Last 6 hours'],
  ['24h', 'Last 24 hours'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
] as const;

export const emptyQuery: ExploreQuery = {
  q: '',
  over: 'time',
  last: '1h',
  from: 0,
  to: 0,
  runs: [],
  base: [],
  range: '',
  step: 0,
  view: 'lines',
  unit: '',
  every: 0,
};

/** maxRuns limits the overlaid runs, maxBaseRuns those of the median. */
export const maxRuns = 8;
export const maxBaseRuns = 20;

const views = new Set(['lines', 'stacked', 'heat', 'table']);
const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400 };

/** secondsOf parses a duration such as 15m; null when invalid. */
export function secondsOf(text: string): number | null {
  const m = /^(\d{1,6})([smhd])$/.exec(text);
  return m ? Number(m[1]) * units[m[2]!]! : null;
}

/** zoomOf parses a range of an address, here and on the run's page. */
export function zoomOf(text: string): { from: number; to: number } | null {
  const m = /^(\d{1,9}(?:\.\d{1,3})?)-(\d{1,9}(?:\.\d{1,3})?)$/.exec(text);
  return m && Number(m[2]) > Number(m[1]) ? { from: Number(m[1]), to: Number(m[2]) } : null;
}

export const rangeOf = (z: { from: number; to: number } | null) =>
  z ? `${z.from.toFixed(1)}-${Math.max(z.to, z.from + 0.5).toFixed(1)}` : '';

/** Any id-like text passes; the server knows which runs exist. */
const list = (text: string | null, limit: number) =>
  [...new Set((text ?? '').split(',').filter((id) => /^[\w-]{1,64}$/.test(id)))].slice(0, limit);

export function fromAddress(search: string): ExploreQuery {
  const p = new URLSearchParams(search);
  const number = (name: string, limit: number) => {
    const n = Number(p.get(name));
    return Number.isFinite(n) && n > 0 ? Math.min(n, limit) : 0;
  };
  const from = number('from', 8.64e15);
  const to = number('to', 8.64e15);
  const fixed = to > from && from > 0;
  const last = p.get('last') ?? '';
  const runs = list(p.get('runs'), maxRuns);
  return {
    q: p.get('q') ?? '',
    over: runs.length > 0 || p.get('over') === 'runs' ? 'runs' : 'time',
    last: fixed ? '' : secondsOf(last) ? last : emptyQuery.last,
    from: fixed ? from : 0,
    to: fixed ? to : 0,
    runs,
    base: list(p.get('base'), maxBaseRuns),
    range: runs.length > 0 && zoomOf(p.get('range') ?? '') ? p.get('range')! : '',
    step: number('step', 86_400),
    view: (views.has(p.get('view') ?? '') ? p.get('view') : 'lines') as View,
    unit: p.get('unit') ?? '',
    every: Math.floor(number('every', 3600)),
  };
}

/** viewParams is the address without the query, as saved with a query. */
export function viewParams(a: ExploreQuery): URLSearchParams {
  const p = new URLSearchParams();
  const set = (name: string, value: string | number) => value && p.set(name, String(value));
  if (a.over === 'time') {
    if (a.last !== emptyQuery.last) set('last', a.last);
    if (!a.last) {
      set('from', a.from);
      set('to', a.to);
    }
    set('every', a.every);
  } else {
    p.set('over', 'runs');
    set('runs', a.runs.join(','));
    set('base', a.base.join(','));
    if (a.runs.length > 0) set('range', a.range);
  }
  set('step', a.step);
  if (a.view !== 'lines') set('view', a.view);
  set('unit', a.unit);
  return p;
}

/** maxLinkLength is the longest query in an address; a server reads 16 KB of one, proxies less. */
const maxLinkLength = 6_000;

export const fitsLink = (q: string) => encodeURIComponent(q).length <= maxLinkLength;

export function toAddress(a: ExploreQuery, saved = ''): string {
  const p = viewParams(a);
  if (saved) p.set('saved', saved);
  else if (a.q && fitsLink(a.q)) p.set('q', a.q);
  const s = p.toString();
  return `/explore${s ? `?${s}` : ''}`;
}

/** exploreRun links to a query over the time of runs. */
export function exploreRun(q: string, run: string, more: Partial<ExploreQuery> = {}): string {
  return toAddress({ ...emptyQuery, ...more, q, over: 'runs', runs: [run] });
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400];

/** stepFor returns the step that gives about as many points as a chart can show. */
export function stepFor(seconds: number): number {
  return steps.find((s) => seconds / s <= 400) ?? Math.ceil(seconds / 400 / 86_400) * 86_400;
}

/** variablesFor returns the values of a query's variables. */
export function variablesFor(step: number, seconds: number): Record<string, string> {
  return {
    $__interval: `${step}s`,
    // A rate needs two samples, one second apart; four seconds keep it steady.
    $__rate_interval: `${Math.max(4, step + 1)}s`,
    $__range: `${Math.max(1, Math.round(seconds))}s`,
  };
}
