// Results of the Explore page as data for charts and tables, without drawing.

import { safeText } from '../api/safeText';
import type { QueryColumn } from '../api/types';
import type { Line } from '../charts/plot';
import type { Cell } from '../charts/histogram';
import { bytes, count, latency, percent, type Quantity, rate } from '../design/format';
import type { Cell as Value } from '../tables/model';
import type { Histogram, Result, SeriesJson } from './promqlClient';

/** Labels that identify the run of a series; otherwise runs are comparable. */
const ofRun = new Set(['run', 'run_name', 'template', 'target', 'table', 'table_type']);

/** RunResult is the result of one run, or the only one. */
export interface RunResult {
  result: Result;
  /** Second 0 of the chart, in Unix seconds. */
  zero: number;
  /** The run; '' for none. */
  run: string;
  /** Distinguishes the results. */
  name: string;
  /** A run of the median. */
  base?: boolean;
}

/** Curve is a series, or the median of one over several runs. */
export interface Curve {
  key: string;
  labels: Record<string, string>;
  name: string;
  /** Index of the result; -1 for the median. */
  of: number;
  values: (number | null)[];
  histograms: (Histogram | null)[];
}

export interface PlottedResult {
  /** Seconds from second 0. */
  x: number[];
  curves: Curve[];
  /** Labels common to all series. */
  common: Record<string, string>;
  histograms: boolean;
}

const number = (text: string) => Number(text === '+Inf' ? 'Infinity' : text === '-Inf' ? '-Infinity' : text);
const finite = (n: number) => (Number.isFinite(n) ? n : null);

function seriesOf(r: Result): SeriesJson[] {
  if (r.resultType === 'matrix' || r.resultType === 'vector') return r.result as SeriesJson[];
  return [{ metric: {}, value: r.result as [number, string] }];
}

/** keyOf identifies a curve regardless of its result. */
const keyOf = (c: Curve) => c.key.replace(/^(?:\d+|median) /, '');

const braces = (labels: [string, string][]) => labels.map(([k, v]) => `${k}="${v}"`).join(', ');

/** plotResults puts results on one time grid: points are a step apart from second 0. */
export function plotResults(answers: RunResult[], step: number): PlottedResult {
  const relative = answers.some((a) => a.run !== '');
  let last = -1;
  const at = (a: RunResult, t: number) => Math.round((t - a.zero) / step);
  const all = answers.flatMap((a, of) =>
    seriesOf(a.result).map((s) => {
      const points = s.values ?? (s.value ? [s.value] : []);
      const hist = s.histograms ?? (s.histogram ? [s.histogram] : []);
      for (const p of [points.at(-1), hist.at(-1)]) if (p) last = Math.max(last, at(a, p[0]));
      const labels: [string, string][] = Object.entries(s.metric)
        .filter(([k]) => !relative || !ofRun.has(k))
        .map(([k, v]) => [k, safeText(v)]);
      return { a, of, s, points, hist, labels };
    }),
  );
  // A series of one instant is one point; a grid of a billion points is too large.
  const n = Math.min(last + 1, 20_000);
  const curves = all.map(({ a, of, points, hist, labels }): Curve => {
    const values = new Array<number | null>(n).fill(null);
    const histograms = hist.length ? new Array<Histogram | null>(n).fill(null) : [];
    for (const [t, v] of points) if (at(a, t) >= 0 && at(a, t) < n) values[at(a, t)] = finite(number(v));
    for (const [t, h] of hist) if (at(a, t) >= 0 && at(a, t) < n) histograms[at(a, t)] = h;
    return { key: `${of} ${braces(labels)}`, labels: Object.fromEntries(labels), name: '', of, values, histograms };
  });
  const common: Record<string, string> = {};
  const first = curves[0]?.labels ?? {};
  for (const [k, v] of Object.entries(first)) if (curves.every((c) => c.labels[k] === v)) common[k] = v;
  for (const c of curves) {
    const own = Object.entries(c.labels).filter(([k]) => !(k in common) && k !== '__name__');
    const metric = '__name__' in common ? '' : (c.labels.__name__ ?? '');
    // A single differing label needs no name.
    const text = own.length === 1 ? own[0]![1] || '(none)' : braces(own);
    c.name = [relative ? answers[c.of]!.name : '', metric, text].filter(Boolean).join(' · ');
    if (!c.name) c.name = common.__name__ ?? 'value';
  }
  return {
    x: Array.from({ length: n }, (_, i) => i * step),
    curves: medians(curves, answers),
    common,
    histograms: curves.some((c) => c.histograms.length > 0),
  };
}

/** medians returns the curves of the shown runs, and one median per series of the others. */
function medians(curves: Curve[], answers: RunResult[]): Curve[] {
  const shown = curves.filter((c) => !answers[c.of]!.base);
  const groups = new Map<string, Curve[]>();
  for (const c of curves) if (answers[c.of]!.base) groups.set(keyOf(c), [...(groups.get(keyOf(c)) ?? []), c]);
  const of = [...groups].map(([key, group]): Curve => {
    const values = group[0]!.values.map((_, i) => median(group.map((c) => c.values[i] ?? null)));
    const labels = group[0]!.labels;
    // Not every run has every series.
    const runs = new Set(group.map((c) => c.of)).size;
    const own = group[0]!.name.split(' · ').slice(1).join(' · ');
    const name = [`median of ${runs} ${runs === 1 ? 'run' : 'runs'}`, own].filter(Boolean).join(' · ');
    return { key: `median ${key}`, labels, name, of: -1, values, histograms: [] };
  });
  return [...shown, ...of];
}

export function median(values: (number | null)[]): number | null {
  const some = values.filter((v) => v !== null).sort((a, b) => a - b);
  if (some.length === 0) return null;
  const half = some.length >> 1;
  return some.length % 2 ? some[half]! : (some[half - 1]! + some[half]!) / 2;
}

/** maxCurves is how many curves a chart can tell apart. */
export const maxCurves = 40;

/** weight ranks curves by size. */
const weight = (c: Curve) => c.values.reduce<number>((sum, v) => sum + Math.abs(v ?? 0), 0);

/** largestCurves drops the smallest curves above the limit. */
function largestCurves(d: PlottedResult): { some: Curve[]; omitted: number } {
  const all = d.curves.filter((c) => c.histograms.length === 0);
  if (all.length <= maxCurves) return { some: all, omitted: 0 };
  const largest = new Set([...all].sort((a, b) => weight(b) - weight(a)).slice(0, maxCurves));
  return { some: all.filter((c) => largest.has(c)), omitted: all.length - maxCurves };
}

const kindsOf = (some: Curve[]) => [...new Set(some.map(keyOf))];

/** coloursByRun reports that each run has one curve, so colours identify runs; otherwise they identify series. */
export const coloursByRun = (d: PlottedResult): boolean => kindsOf(largestCurves(d).some).length <= 1;

/** linesOf returns the curves as chart lines. `runOf` is the index of each result's run, if runs were chosen. */
export function linesOf(
  d: PlottedResult,
  stacked: boolean,
  runOf: number[] | null,
): { lines: Line[]; omitted: number } {
  const { some, omitted } = largestCurves(d);
  const kinds = kindsOf(some);
  const lines = some.map((c, i): Line => {
    const run = runOf?.[c.of] ?? 0;
    const place = !runOf ? i : kinds.length === 1 && c.of >= 0 ? run : kinds.indexOf(keyOf(c));
    const dashed = c.of < 0 ? [5, 4] : runOf && kinds.length > 1 ? dashes[run % dashes.length] : dashes[place >> 3];
    return {
      key: c.key,
      label: c.name,
      color: c.of < 0 && kinds.length === 1 ? '--text-2' : `--run-${(place % 8) + 1}`,
      values: c.values,
      fill: stacked && c.of >= 0 ? 0.3 : undefined,
      unstacked: stacked && c.of < 0,
      dash: dashed?.length ? dashed : undefined,
    };
  });
  return { lines, omitted };
}

const dashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [1, 3], [4, 1], [12, 2]];

/** heatOf returns the filled buckets of a curve per instant, with bounds scaled by times. */
export function heatOf(c: Curve, times = 1): Cell[][] {
  return c.histograms.map((h) =>
    (h?.buckets ?? [])
      .map(([, from, to, n]) => ({ from: number(from) * times, to: number(to) * times, count: number(n) }))
      .filter((b) => b.from > 0 && Number.isFinite(b.to)),
  );
}

/** units are the selectable units with their formats. */
export const units: Record<string, { label: string; format: (n: number) => Quantity }> = {
  plain: { label: 'plain', format: count },
  rate: { label: 'per second', format: (n) => rate(n) },
  seconds: { label: 'seconds', format: (n) => latency(n * 1000) },
  ratio: { label: 'share of 1', format: (n) => percent(n * 100) },
  bytes: { label: 'bytes', format: bytes },
};

/** withoutLiterals removes strings and comments from a query. */
const withoutLiterals = (q: string) => q.replace(/"(?:[^"\\]|\\.)*"|#.*/g, '');

const rated = /\bi?rate\s*\(/;

/** bucketUnits says what the histogram buckets of a query count. */
export function bucketUnits(q: string): { counted: string; unit: string } {
  return rated.test(withoutLiterals(q))
    ? { counted: 'observations per second', unit: '/s' }
    : { counted: 'observations', unit: '' };
}

/** effectiveUnit is the chosen unit if valid, else the query's. */
export const effectiveUnit = (chosen: string, q: string): string => (Object.hasOwn(units, chosen) ? chosen : unitOf(q));

/** unitOf infers the unit from a query's metric names and functions. */
export function unitOf(q: string): keyof typeof units {
  const text = withoutLiterals(q);
  const divided = /\/(?!\/)/.test(text);
  const counted = /\bhistogram_count\s*\(|\bcount\b|\bchanges\s*\(|\bresets\s*\(/.test(text);
  if (/_ratio\b/.test(text)) return 'ratio';
  if (divided && (text.match(/_total\b/g) ?? []).length > 1) return 'ratio';
  if (/_bytes\b/.test(text)) return 'bytes';
  if (/_total\b|\bhistogram_count\s*\(/.test(text) && rated.test(text)) return 'rate';
  if (/_seconds\b/.test(text) && !counted) return 'seconds';
  return 'plain';
}

interface Figures {
  last: number | null;
  min: number | null;
  mean: number | null;
  max: number | null;
}

export function figures(values: (number | null)[]): Figures {
  const some = values.filter((v) => v !== null);
  if (some.length === 0) return { last: null, min: null, mean: null, max: null };
  return {
    last: some.at(-1)!,
    min: some.reduce((a, b) => Math.min(a, b)),
    mean: some.reduce((a, b) => a + b, 0) / some.length,
    max: some.reduce((a, b) => Math.max(a, b)),
  };
}

/** shareOf is the ratio of two curves' means over their common instants. */
function shareOf(a: (number | null)[], b: (number | null)[]): number | null {
  const mean = (v: (number | null)[], other: (number | null)[]) =>
    figures(v.filter((_, i) => (other[i] ?? null) !== null)).mean;
  const [of, to] = [mean(a, b), mean(b, a)];
  return of === null || !to ? null : of / to;
}

/** More digits would be floating-point noise. */
const digits = (n: number | null) => (n === null ? null : Number(n.toPrecision(8)));

/** tableOf has a row per curve: labels and figures. */
export function tableOf(d: PlottedResult, answers: RunResult[]): { columns: QueryColumn[]; rows: Value[][] } {
  const relative = answers.some((a) => a.run !== '');
  const names = [...new Set(d.curves.flatMap((c) => Object.keys(c.labels)))];
  const own = (n: string) => (n in d.common ? 1 : 0);
  names.sort((a, b) => own(a) - own(b) || a.localeCompare(b));
  const medians = new Map(d.curves.filter((c) => c.of < 0).map((c) => [keyOf(c), c]));
  const text = (name: string): QueryColumn => ({ name, type: 'text' });
  const figure = (name: string): QueryColumn => ({ name, type: 'double precision' });
  const columns = [
    ...(relative ? [text('of')] : []),
    ...names.map(text),
    ...['last', 'min', 'mean', 'max'].map(figure),
    ...(medians.size ? [figure('mean to median %')] : []),
  ];
  const rows = d.curves.map((c): Value[] => {
    const f: Figures = c.histograms.length ? observed(c) : figures(c.values);
    const of = medians.get(keyOf(c));
    const share = of && c.of >= 0 ? shareOf(c.values, of.values) : null;
    return [
      ...(relative ? [c.of < 0 ? 'median' : answers[c.of]!.name] : []),
      ...names.map((n) => c.labels[n] ?? null),
      ...[f.last, f.min, f.mean, f.max].map(digits),
      ...(medians.size ? [digits(share === null ? null : (share - 1) * 100)] : []),
    ];
  });
  return { columns, rows };
}

/** For histograms: the number of observations. */
const observed = (c: Curve): Figures => figures(c.histograms.map((h) => (h ? finite(number(h.count)) : null)));
