import type { Run } from '../api/types';
import { type Asking, secondsOf, stepFor, variablesFor } from './address';
import type { Asked } from './ask';
import { type Changed, quote, withMatcher, withVariables } from './promql';

/** One request: a query over one time, and what its answer is of. */
export interface Part extends Asked {
  /** What was asked, before variables and matchers were put into it. */
  before: (offset: number) => number;
  run: string;
  base: boolean;
}

/** When a run had load, in seconds; null when it has not begun. */
export function timeOf(run: Run, now: number): { start: number; end: number } | null {
  if (!run.start_time) return null;
  const start = Date.parse(run.start_time) / 1000;
  const ended = run.end_time ?? run.measurement_end_time;
  return { start, end: Math.max(start + 1, ended ? Date.parse(ended) / 1000 : now / 1000) };
}

/** The clock time that is shown, in seconds: beginning at a step, so that asking again has the same instants. */
export function clockTime(a: Asking, now: number): { start: number; end: number; step: number } {
  const to = (a.last ? now : a.to) / 1000;
  const from = a.last ? to - secondsOf(a.last)! : a.from / 1000;
  const step = a.step || stepFor(to - from);
  return { start: Math.floor(from / step) * step, end: to, step };
}

function filled(q: string, step: number, seconds: number): Changed {
  return withVariables(q, variablesFor(step, seconds));
}

/** The requests that answer what is asked. */
export function partsOf(a: Asking, runs: Run[], now: number): { parts: Part[]; step: number; seconds: number } {
  if (a.over === 'time') {
    const { start, end, step } = clockTime(a, now);
    const text = filled(a.q, step, end - start);
    const part = { query: text.text, before: text.before, start, end, step, run: '', base: false };
    return { parts: [part], step, seconds: end - start };
  }
  const times = [...a.runs, ...a.base].flatMap((id) => {
    const run = runs.find((r) => r.run_id === id);
    const time = run && timeOf(run, now);
    return time ? [{ id, ...time }] : [];
  });
  const seconds = times.reduce((n, t) => Math.max(n, t.end - t.start), 1);
  const step = a.step || stepFor(seconds);
  const parts = times.map(({ id, start, end }): Part => {
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
