// Logic of the derived table pages, without drawing.

import { escapeFormula } from '../charts/export';
import type { DerivedTable, DerivedTableDetail, QueryColumn, RefreshClaim, RefreshRecord } from '../api/types';
import { dateTime, duration } from '../design/format';

/** lagSeconds is how far a table is behind its sources; 0 when current. */
export function lagSeconds(t: Pick<DerivedTable, 'behind_since' | 'as_of' | 'kind'>, now: number): number {
  if (!t.behind_since) return 0;
  return Math.max(0, (now - Date.parse(t.behind_since)) / 1000);
}

/** isBuilt: before its first refresh a table has no lag. Runs are ingested one by one. */
export const isBuilt = (t: Pick<DerivedTable, 'as_of' | 'kind'>) => t.kind !== 'SQL' || t.as_of !== null;

/** waitReason says what all refresh workers wait for, by the first one; '' when any works. */
export function waitReason(workers: readonly { waits_for: string }[]): string {
  return workers.every((w) => w.waits_for) ? (workers[0]?.waits_for ?? '') : '';
}

/** isAbandoned: runs failed too often to be ingested and wait for a manual retry. */
export function isAbandoned(t: Pick<DerivedTable, 'kind' | 'status' | 'failures'>): boolean {
  return t.kind === 'INGEST' && t.status === 'ACTIVE' && t.failures > 0;
}

/** maxTries is how often in a row something is tried. */
const maxTries = 5;

type RetryState = Pick<DerivedTable, 'kind' | 'status' | 'failures' | 'error' | 'suspended_reason'> & {
  failing: readonly DerivedTable['failing'][number][];
};

/** retriedParts are the failed runs or parts that are retried. */
const retriedParts = (t: RetryState) => (t.status === 'ACTIVE' ? t.failing.filter((f) => !f.given_up) : []);

/** triesText says how many tries failed: '3 of 5 tries failed'; '' without failures. */
export function triesText(t: RetryState): string {
  if (t.status !== 'ACTIVE') return '';
  const failed = Math.max(t.kind === 'SQL' ? t.failures : 0, ...retriedParts(t).map((f) => f.failures));
  return failed === 0 ? '' : `${Math.min(failed, maxTries)} of ${maxTries} tries failed`;
}

/** failureText summarizes a table's failures and its last error; null without any. */
export function failureText(t: RetryState): { text: string; error: string } | null {
  if (t.suspended_reason) return { text: 'Suspended:', error: `${t.suspended_reason}.` };
  if (t.status === 'FAILED')
    return { text: `The refresh failed ${t.failures} times. Loadstone no longer retries it.`, error: t.error };
  if (isAbandoned(t))
    return {
      text:
        t.failures === 1
          ? '1 run could not be ingested. Loadstone no longer retries it.'
          : `${t.failures} runs could not be ingested. Loadstone no longer retries them. Last error:`,
      error: t.error,
    };
  const [last] = retriedParts(t);
  if (t.status === 'ACTIVE' && t.kind === 'SQL' && t.failures > 0)
    return { text: `The refresh failed (${triesText(t)}). Loadstone retries it.`, error: t.error };
  if (last === undefined) return t.error ? { text: 'The last refresh failed.', error: t.error } : null;
  const failingCount = retriedParts(t).length;
  const what = t.kind === 'INGEST' ? 'run' : 'part';
  const count =
    failingCount === 1 ? `1 ${what}` : `${failingCount < maxListed ? failingCount : `${maxListed} or more`} ${what}s`;
  return {
    text:
      `${count} could not be ${t.kind === 'INGEST' ? 'ingested' : 'built'}, ${triesText(t)}; ` + 'Loadstone retries.',
    error: `${t.kind === 'INGEST' ? 'Run' : 'Part'} ${last.subtask}: ${last.error}`,
  };
}

/** maxListed is the server's limit of listed failures. */
const maxListed = 20;

/** ingestOutcome says whether a run that failed to ingest is retried or abandoned; null when unknown. */
export function ingestOutcome(t: RetryState, run: string): { then: 'again' | 'left'; tries: string } | null {
  const f = t.failing.find((one) => one.subtask === run);
  if (!f) return null;
  return f.given_up || t.status !== 'ACTIVE'
    ? { then: 'left', tries: `${f.failures} tries failed` }
    : { then: 'again', tries: `${f.failures} of ${maxTries} tries failed` };
}

/** writtenRefreshes are the refreshes that succeeded; a failed one changes nothing. */
export const writtenRefreshes = (records: RefreshRecord[]) => records.filter((r) => !r.error);

export type Freshness = 'fresh' | 'behind' | 'late' | 'new' | 'suspended' | 'failed' | 'failing';

/** freshness classifies a table. */
export function freshness(t: DerivedTable, now: number): Freshness {
  if (t.status === 'SUSPENDED') return 'suspended';
  if (t.status === 'FAILED') return 'failed';
  if (isAbandoned(t) || triesText(t)) return 'failing';
  if (!isBuilt(t)) return 'new';
  const lag = lagSeconds(t, now);
  if (lag === 0) return 'fresh';
  // A refresh may start slightly late; one second is tolerated.
  return lag > t.target_lag_seconds + 1 ? 'late' : 'behind';
}

interface GraphNode {
  name: string;
  level: number;
  row: number;
}

/**
 * layers puts tables into columns, each right of its sources. A line across columns gets an empty row in each: via has
 * these, by "source table".
 */
export function layers(tables: Pick<DerivedTable, 'name' | 'sources'>[]): {
  nodes: GraphNode[];
  via: Map<string, { level: number; row: number }[]>;
} {
  const byName = new Map(tables.map((t) => [t.name, t]));
  const levels = new Map<string, number>();
  const level = (name: string, above: Set<string>): number => {
    const done = levels.get(name);
    if (done !== undefined) return done;
    // The store rejects cycles; the drawing must not hang on one anyway.
    if (above.has(name)) return 0;
    const path = new Set(above).add(name);
    const below = (byName.get(name)?.sources ?? []).filter((s) => byName.has(s)).map((s) => level(s, path));
    const own = below.length ? Math.max(...below) + 1 : 0;
    levels.set(name, own);
    return own;
  };
  const rows: number[] = [];
  const free = (at: number) => (rows[at] = (rows[at] ?? -1) + 1);
  const nodes = [...tables]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((t) => {
      const at = level(t.name, new Set());
      return { name: t.name, level: at, row: free(at) };
    });
  const via = new Map<string, { level: number; row: number }[]>();
  for (const n of nodes)
    for (const source of byName.get(n.name)!.sources) {
      const from = levels.get(source);
      if (from === undefined || n.level - from < 2) continue;
      const between = Array.from({ length: n.level - from - 1 }, (_, i) => from + 1 + i);
      via.set(
        `${source} ${n.name}`,
        between.map((at) => ({ level: at, row: free(at) })),
      );
    }
  return { nodes, via };
}

/** relatedTables are a table's sources and dependents, direct and indirect. */
export function relatedTables<T extends Pick<DerivedTable, 'name' | 'sources'>>(tables: T[], name: string): T[] {
  const related = new Set([name]);
  const walk = (next: (n: string) => string[]) => {
    const todo = [name];
    for (let n = todo.pop(); n !== undefined; n = todo.pop())
      for (const m of next(n)) {
        if (related.has(m) && m !== name) continue;
        if (!related.has(m)) todo.push(m);
        related.add(m);
      }
  };
  walk((n) => tables.find((t) => t.name === n)?.sources ?? []);
  walk((n) => tables.filter((t) => t.sources.includes(n)).map((t) => t.name));
  return tables.filter((t) => related.has(t.name));
}

export type Cell = string | number | boolean | null | object;

type ColumnKind = 'time' | 'number' | 'text';

/** columnKind is a column's role in a chart. */
export function columnKind(c: QueryColumn): ColumnKind {
  if (/^(?:timestamp|timestamptz|date)$/.test(c.type) || /^timestamp/.test(c.type)) return 'time';
  if (/^(?:int[248]|float[48]|numeric|oid|smallint|integer|bigint|real|double precision)$/.test(c.type))
    return 'number';
  return 'text';
}

export type Shape = 'line' | 'bars' | 'points';

export interface ChartChoice {
  x: string;
  y: string;
  series: string;
  shape: Shape;
}

/** suggestChart picks a chart for a result; null without a numeric column. */
export function suggestChart(columns: QueryColumn[], rows: Cell[][]): ChartChoice | null {
  const of = (kind: ColumnKind) => columns.filter((c) => columnKind(c) === kind);
  const numbers = of('number');
  const distinct = (c: QueryColumn) => new Set(rows.map((r) => cellText(r[columns.indexOf(c)]))).size;
  const texts = of('text').filter((c) => distinct(c) > 0);
  const ordered = numbers.find((c) =>
    /(?:second|elapsed|bucket|hour|day|size|workers|connections|number|^n$)/.test(c.name),
  );
  const x = of('time')[0] ?? (numbers.length > 1 ? ordered : undefined) ?? texts[0] ?? numbers[0];
  const y = numbers.find((c) => c !== x);
  if (!x || !y) return null;
  const repeats = distinct(x) < rows.length;
  const series = repeats ? texts.find((c) => c !== x && distinct(c) > 1 && distinct(c) <= 8) : undefined;
  const shape: Shape = columnKind(x) === 'text' ? 'bars' : 'line';
  return { x: x.name, y: y.name, series: series?.name ?? '', shape };
}

/** readChoice parses a chart choice; columns the result lacks are dropped. */
export function readChoice(text: string, columns: QueryColumn[], rows: Cell[][]): ChartChoice | null {
  const suggested = suggestChart(columns, rows);
  const q = new URLSearchParams(text);
  const has = (name: string | null, number = false) =>
    columns.some((c) => c.name === name && (!number || columnKind(c) === 'number'));
  const x = q.get('x');
  const y = q.get('y');
  if (!has(x) || !has(y, true)) return suggested;
  const shape = q.get('shape');
  return {
    x: x!,
    y: y!,
    series: has(q.get('series')) ? q.get('series')! : '',
    shape: shape === 'bars' || shape === 'points' ? shape : 'line',
  };
}

export function writeChoice(c: ChartChoice): string {
  const q = new URLSearchParams({ x: c.x, y: c.y });
  if (c.series) q.set('series', c.series);
  if (c.shape !== 'line') q.set('shape', c.shape);
  return q.toString();
}

export interface Point {
  x: number;
  y: number;
  /** Axis label when x is text. */
  label?: string;
  bad?: boolean;
  /** A row without a value precedes this point: the line is broken. */
  gap?: boolean;
}

export interface Curve {
  name: string;
  points: Point[];
}

export const maxCurves = 8;

/** ChartData is the curves of a result, and counts of the rows they omit. */
interface ChartData {
  kind: ColumnKind;
  /** Times with a zone are shown in the browser's zone, others as written. */
  zoned: boolean;
  curves: Curve[];
  labels: string[];
  /** Rows without a number at y, or without x. */
  lacking: number;
  /** Rows of omitted series, and how many series those are. */
  beyond: number;
  series: number;
}

/** chartData builds the curves. A row without a number at y breaks its line. */
export function chartData(columns: QueryColumn[], rows: Cell[][], c: ChartChoice): ChartData {
  const at = (name: string) => columns.findIndex((k) => k.name === name);
  const [xi, yi, si] = [at(c.x), at(c.y), at(c.series)];
  const kind = xi < 0 ? 'text' : columnKind(columns[xi]!);
  const byName = new Map<string, { x: number; y: number | null; label?: string }[]>();
  const extraSeries = new Set<string>();
  const labels = new Map<string, number>();
  let [lacking, beyond] = [0, 0];
  for (const row of rows) {
    const raw = row[xi];
    // A number with too many digits arrives as a string; a float is precise enough for a chart.
    const cellValue = row[yi];
    const n =
      typeof cellValue === 'string' && yi >= 0 && columnKind(columns[yi]!) === 'number' ? Number(cellValue) : cellValue;
    const y = typeof n === 'number' && Number.isFinite(n) ? n : null;
    const name = si < 0 ? c.y : row[si] === null ? 'null' : cellText(row[si]);
    if (!byName.has(name) && byName.size >= maxCurves) {
      extraSeries.add(name);
      beyond++;
      continue;
    }
    const points = byName.get(name) ?? [];
    byName.set(name, points);
    let x = Number.NaN;
    if (raw !== null && raw !== undefined) {
      if (kind === 'time') x = parseInstant(cellText(raw));
      else if (kind === 'number') x = Number(raw);
      else {
        const label = cellText(raw);
        if (!labels.has(label)) labels.set(label, labels.size);
        x = labels.get(label)!;
      }
    }
    if (y === null || !Number.isFinite(x)) lacking++;
    if (Number.isFinite(x)) points.push({ x, y, label: kind === 'text' ? cellText(raw) : undefined });
  }
  const list: Curve[] = [];
  for (const [name, all] of byName) {
    if (kind !== 'text') all.sort((a, b) => a.x - b.x);
    const points: Point[] = [];
    let gap = false;
    for (const { x, y, label } of all) {
      if (y === null) gap = points.length > 0;
      else {
        points.push({ x, y, label, ...(gap && { gap }) });
        gap = false;
      }
    }
    if (points.length > 0) list.push({ name, points });
  }
  return {
    kind,
    zoned: xi >= 0 && columns[xi]!.type === 'timestamptz',
    curves: list,
    labels: [...labels.keys()],
    lacking,
    beyond,
    series: extraSeries.size,
  };
}

/** segments splits a line at its gaps. */
export function segments(points: Point[]): Point[][] {
  const parts: Point[][] = [];
  for (const p of points) {
    if (p.gap || parts.length === 0) parts.push([]);
    parts.at(-1)!.push(p);
  }
  return parts;
}

/** omittedText says what a chart omits; '' for nothing. */
export function omittedText(d: Pick<ChartData, 'lacking' | 'beyond' | 'series'>, rows: number): string {
  const count = (n: number) => n.toLocaleString('en-US');
  const why = [];
  if (d.lacking > 0) why.push(`${count(d.lacking)} ${d.lacking === 1 ? 'lacks' : 'lack'} a value`);
  if (d.beyond > 0)
    why.push(
      `${count(d.beyond)} ${d.beyond === 1 ? 'is' : 'are'} of ${count(d.series)} series beyond the first ${maxCurves}`,
    );
  const all = d.lacking + d.beyond;
  return all === 0
    ? ''
    : `${count(all)} of ${count(rows)} rows ${all === 1 ? 'is' : 'are'} not drawn: ${why.join(', ')}.`;
}

/** parseInstant parses a Postgres time: 2026-11-22 12:00:00.5+00. */
export function parseInstant(text: string): number {
  const t = text.trim().replace(' ', 'T');
  if (/^\d{4}-\d\d-\d\d$/.test(t)) return Date.parse(`${t}T00:00:00Z`);
  const zone = /([+-]\d\d)(:?\d\d)?$/.exec(t);
  if (zone && t.includes('T')) return Date.parse(zone[2] ? t : `${t}:00`);
  return Date.parse(/Z$/.test(t) ? t : `${t}Z`);
}

/** cellText formats a table value. */
export function cellText(v: Cell | undefined): string {
  if (v === null || v === undefined) return '';
  return typeof v === 'object' ? JSON.stringify(v) : String(v);
}

/** tabSeparated writes rows for the clipboard. */
export function tabSeparated(columns: QueryColumn[], rows: Cell[][]): string {
  const cell = (v: Cell, i: number) => {
    const text = cellText(v).replace(/[\t\n\r]+/g, ' ');
    const number = columnKind(columns[i]!) === 'number' && /^-?\d+(?:\.\d+)?$/.test(text);
    return typeof v === 'string' && !number ? escapeFormula(text) : text;
  };
  const head = columns.map((c) => escapeFormula(cellText(c.name).replace(/[\t\n\r]+/g, ' ')));
  return [head.join('\t'), ...rows.map((r) => r.map(cell).join('\t'))].join('\n');
}

export function claimAge(c: Pick<RefreshClaim, 'claimed_at'>, now: number): number {
  return c.claimed_at ? Math.max(0, (now - Date.parse(c.claimed_at)) / 1000) : 0;
}

/** dueIn is the milliseconds until a queue entry is due; 0 when it is. */
export const dueIn = (p: { next_refresh_due: string | null }, now: number) =>
  Math.max(0, (Date.parse(p.next_refresh_due ?? '') || 0) - now);

type Planned = Pick<DerivedTable, 'status' | 'kind' | 'next_refresh_due'>;
type Queue = { pending: Pick<DerivedTableDetail['pending'][number], 'next_refresh_due'>[] } & {
  claims: Pick<RefreshClaim, 'claimed_at'>[];
};

/** nextRefresh says when a table is refreshed next. A running refresh is no longer due. */
export function nextRefresh(t: Planned, queue: Queue, now: number): string {
  const age = Math.max(...queue.claims.map((c) => claimAge(c, now)));
  if (queue.claims.length > 0) return `refreshing for ${duration(Math.round(age))}`;
  if (t.status !== 'ACTIVE') return 'after it is resumed';
  const next = queue.pending.toSorted((a, b) => dueIn(a, now) - dueIn(b, now))[0];
  if (next) return dueIn(next, now) > 0 ? `retries at ${dateTime(next.next_refresh_due)}` : 'waiting for a worker';
  if (t.next_refresh_due) return dateTime(t.next_refresh_due);
  return t.kind === 'INGEST' ? 'when a run ends' : 'when a source changes';
}

/** queryId names a query so that it can be cancelled; randomUUID needs a secure origin. */
export function queryId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('');
}

/** tablePath is the address of a table's page. */
export const tablePath = (name: string) => `/table/${encodeURIComponent(name)}`;
