import type { Run } from '../api/types';
import { type ExploreQuery, secondsOf, stepFor, variablesFor } from './address';
import type { RangeQuery } from './promqlClient';
import { type EditedText, quote, withMatcher, withVariables } from './promql';

/** QueryPart is one request: a query over one time range, for one run. */
export interface QueryPart extends RangeQuery {
  /** Maps an offset back to the query before variables and matchers. */
  before: (offset: number) => number;
  run: string;
  base: boolean;
}

/** loadTime is when a run had load, in seconds; null before that. */
export function loadTime(run: Run, now: number): { start: number; end: number } | null {
  if (!run.start_time) return null;
  const start = Date.parse(run.start_time) / 1000;
  const ended = run.end_time ?? run.measurement_end_time;
  return { start, end: Math.max(start + 1, ended ? Date.parse(ended) / 1000 : now / 1000) };
}

/** clockTime is the shown clock time in seconds, aligned to the step so that repeats hit the same instants. */
export function clockTime(a: ExploreQuery, now: number): { start: number; end: number; step: number } {
  const to = (a.last ? now : a.to) / 1000;
  const from = a.last ? to - secondsOf(a.last)! : a.from / 1000;
  const step = a.step || stepFor(to - from);
  return { start: Math.floor(from / step) * step, end: to, step };
}

function filled(q: string, step: number, seconds: number): EditedText {
  return withVariables(q, variablesFor(step, seconds));
}

/** queryParts splits a query into requests. */
export function queryParts(
  a: ExploreQuery,
  runs: Run[],
  now: number,
): { parts: QueryPart[]; step: number; seconds: number } {
  if (a.over === 'time') {
    const { start, end, step } = clockTime(a, now);
    const text = filled(a.q, step, end - start);
    const part = { query: text.text, before: text.before, start, end, step, run: '', base: false };
    return { parts: [part], step, seconds: end - start };
  }
  const times = [...a.runs, ...a.base].flatMap((id) => {
    const run = runs.find((r) => r.run_id === id);
    const time = run && loadTime(run, now);
    return time ? [{ id, ...time }] : [];
  });
  const seconds = times.reduce((n, t) => Math.max(n, t.end - t.start), 1);
  const step = a.step || stepFor(seconds);
  const parts = times.map(({ id, start, end }): QueryPart => {
    const text = filled(a.q, step, end - start);
    const own = withMatcher(text.text, `run=${quote(id)}`);
    return {
      query: own.text,
      before: (o) => text.before(own.before(o)),
      start,
      end,
      step,
      run: id,
      base: !a.runs.includes(id),
    };
  });
  return { parts, step, seconds };
}
