// What answers come to on the page Explore, without drawing anything.

import { harmless } from '../api/harmless';
import type { QueryColumn } from '../api/types';
import type { Line } from '../charts/plot';
import type { Cell } from '../charts/histogram';
import { bytes, count, latency, percent, type Quantity, rate } from '../design/format';
import type { Cell as Value } from '../tables/model';
import type { Histogram, Result, SeriesJson } from './ask';

/** Labels that say which run a series is of; in all other respects runs can be compared. */
const ofRun = new Set(['run', 'run_name', 'template', 'target', 'table', 'table_type']);

/** An answer beside others: that of one run, or the only one. */
export interface Answered {
  result: Result;
  /** When second 0 of the chart is, in seconds since the epoch of Unix. */
  zero: number;
  /** The run that it is of, '' for none. */
  run: string;
  /** What tells it apart from the other answers. */
  name: string;
  /** Of the runs whose median is drawn. */
  base?: boolean;
}

/** One curve: a series, or the median of one over several runs. */
export interface Curve {
  key: string;
  labels: Record<string, string>;
  name: string;
  /** Which of the answers it is of; the median of the others is of -1. */
  of: number;
  values: (number | null)[];
  histograms: (Histogram | null)[];
}

export interface Drawn {
  /** Seconds from second 0. */
  x: number[];
  curves: Curve[];
  /** What all series have in common. */
  common: Record<string, string>;
  histograms: boolean;
}

const number = (text: string) => Number(text === '+Inf' ? 'Infinity' : text === '-Inf' ? '-Infinity' : text);
const finite = (n: number) => (Number.isFinite(n) ? n : null);

function seriesOf(r: Result): SeriesJson[] {
  if (r.resultType === 'matrix' || r.resultType === 'vector') return r.result as SeriesJson[];
  return [{ metric: {}, value: r.result as [number, string] }];
}

/** What a curve is of, whichever answer it is from. */
const keyOf = (c: Curve) => c.key.replace(/^(?:\d+|median) /, '');

const braces = (labels: [string, string][]) => labels.map(([k, v]) => `${k}="${v}"`).join(', ');

/** Lays answers out on one grid of time: points are a step apart from second 0 on. */
export function draw(answers: Answered[], step: number): Drawn {
  const relative = answers.some((a) => a.run !== '');
  let last = -1;
  const at = (a: Answered, t: number) => Math.round((t - a.zero) / step);
  const all = answers.flatMap((a, of) =>
    seriesOf(a.result).map((s) => {
      const points = s.values ?? (s.value ? [s.value] : []);
      const hist = s.histograms ?? (s.histogram ? [s.histogram] : []);
      for (const p of [points.at(-1), hist.at(-1)]) if (p) last = Math.max(last, at(a, p[0]));
      const labels: [string, string][] = Object.entries(s.metric)
        .filter(([k]) => !relative || !ofRun.has(k))
        .map(([k, v]) => [k, harmless(v)]);
      return { a, of, s, points, hist, labels };
    }),
  );
  // A series of one moment is worth a point; a grid of a billion is not.
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
    // One label that differs needs no name of its own.
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

/** The curves of the runs that are shown, and for the others one median of each series. */
function medians(curves: Curve[], answers: Answered[]): Curve[] {
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

/** More curves than these are not told apart on a chart. */
export const mostCurves = 40;

/** How much of a curve there is, for choosing which are drawn. */
const weight = (c: Curve) => c.values.reduce<number>((sum, v) => sum + Math.abs(v ?? 0), 0);

/** The curves that are drawn as lines; those that there are too many of are the smallest. */
function chosen(d: Drawn): { some: Curve[]; left: number } {
  const all = d.curves.filter((c) => c.histograms.length === 0);
  if (all.length <= mostCurves) return { some: all, left: 0 };
  const kept = new Set([...all].sort((a, b) => weight(b) - weight(a)).slice(0, mostCurves));
  return { some: all.filter((c) => kept.has(c)), left: all.length - mostCurves };
}

const kindsOf = (some: Curve[]) => [...new Set(some.map(keyOf))];

/** Where each run has one curve, colours are those of the runs; else they tell the series apart. */
export const byRun = (d: Drawn): boolean => kindsOf(chosen(d).some).length <= 1;

/** The curves as lines. `runOf` has the place of each answer's run among those that were chosen, if they were. */
export function linesOf(d: Drawn, stacked: boolean, runOf: number[] | null): { lines: Line[]; left: number } {
  const { some, left } = chosen(d);
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
  return { lines, left };
}

const dashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [1, 3], [4, 1], [12, 2]];

/** The filled buckets of a curve's histograms at each instant, with bounds so many times as large. */
export function heatOf(c: Curve, times = 1): Cell[][] {
  return c.histograms.map((h) =>
    (h?.buckets ?? [])
      .map(([, from, to, n]) => ({ from: number(from) * times, to: number(to) * times, count: number(n) }))
      .filter((b) => b.from > 0 && Number.isFinite(b.to)),
  );
}

/** Each unit with how a value is written in it. */
export const units: Record<string, { label: string; format: (n: number) => Quantity }> = {
  plain: { label: 'plain', format: count },
  rate: { label: 'per second', format: (n) => rate(n) },
  seconds: { label: 'seconds', format: (n) => latency(n * 1000) },
  ratio: { label: 'share of 1', format: (n) => percent(n * 100) },
  bytes: { label: 'bytes', format: bytes },
};

/** A query without its strings and comments. */
const bare = (q: string) => q.replace(/"(?:[^"\\]|\\.)*"|#.*/g, '');

const rated = /\bi?rate\s*\(/;

/** What the buckets of a query's histograms count, in words and in short. */
export function countedOf(q: string): { counted: string; unit: string } {
  return rated.test(bare(q))
    ? { counted: 'observations per second', unit: '/s' }
    : { counted: 'observations', unit: '' };
}

/** The unit that was chosen, if there is such a one, else that of the query. */
export const unitFor = (chosen: string, q: string): string => (Object.hasOwn(units, chosen) ? chosen : unitOf(q));

/** The unit that a query's names and functions speak of. */
export function unitOf(q: string): keyof typeof units {
  const text = bare(q);
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

/** The mean of one curve to that of another over the instants that both have: one may go on for longer. */
function shareOf(a: (number | null)[], b: (number | null)[]): number | null {
  const mean = (v: (number | null)[], other: (number | null)[]) =>
    figures(v.filter((_, i) => (other[i] ?? null) !== null)).mean;
  const [of, to] = [mean(a, b), mean(b, a)];
  return of === null || !to ? null : of / to;
}

/** Digits beyond these are noise of the arithmetic. */
const digits = (n: number | null) => (n === null ? null : Number(n.toPrecision(8)));

/** A row for each curve: its labels, and the figures of its points. */
export function tableOf(d: Drawn, answers: Answered[]): { columns: QueryColumn[]; rows: Value[][] } {
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

/** Of histograms, how many observations they have. */
const observed = (c: Curve): Figures => figures(c.histograms.map((h) => (h ? finite(number(h.count)) : null)));
