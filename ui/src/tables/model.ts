// What the pages about derived tables decide, without drawing anything.

import { forSheets } from '../charts/export';
import type { DerivedTable, DerivedTableDetail, QueryColumn, RefreshClaim, RefreshRecord } from '../api/types';
import { dateTime, duration } from '../design/format';

/** How many seconds a table is behind what it reads; 0 when it has everything. */
export function lagSeconds(t: Pick<DerivedTable, 'behind_since' | 'as_of' | 'kind'>, now: number): number {
  if (!t.behind_since) return 0;
  return Math.max(0, (now - Date.parse(t.behind_since)) / 1000);
}

/** A table that was refreshed once; before that there is nothing that could be behind. Runs are taken in one by one. */
export const isMade = (t: Pick<DerivedTable, 'as_of' | 'kind'>) => t.kind !== 'SQL' || t.as_of !== null;

/** Why nothing is refreshed though there are workers: what all of them wait for, as the first says; '' if one works. */
export function allWait(workers: readonly { waits_for: string }[]): string {
  return workers.every((w) => w.waits_for) ? (workers[0]?.waits_for ?? '') : '';
}

/** Runs have failed too often to be taken in, and are left alone until somebody has them tried again. */
export function leftAlone(t: Pick<DerivedTable, 'kind' | 'status' | 'failures'>): boolean {
  return t.kind === 'INGEST' && t.status === 'ACTIVE' && t.failures > 0;
}

/** How often in a row something is tried before it is left alone. */
const mostTries = 5;

type Trying = Pick<DerivedTable, 'kind' | 'status' | 'failures' | 'error'> & {
  failing: readonly DerivedTable['failing'][number][];
};

/** The runs or parts of a table that have failed, and are tried again. */
const retried = (t: Trying) => (t.status === 'ACTIVE' ? t.failing.filter((f) => !f.given_up) : []);

/** How many tries have failed of what is tried again: '3 of 5 tries failed'; '' when nothing is. */
export function tries(t: Trying): string {
  if (t.status !== 'ACTIVE') return '';
  const most = Math.max(t.kind === 'SQL' ? t.failures : 0, ...retried(t).map((f) => f.failures));
  return most === 0 ? '' : `${Math.min(most, mostTries)} of ${mostTries} tries failed`;
}

/** What a table says of its failures, and the error of the last; null when there is none. */
export function failing(t: Trying): { said: string; error: string } | null {
  if (t.status === 'FAILED')
    return { said: `Its refresh failed ${t.failures} times, and is not tried any more.`, error: t.error };
  if (leftAlone(t))
    return {
      said:
        t.failures === 1
          ? 'One run could not be taken in, and is not tried any more.'
          : `${t.failures} runs could not be taken in, and are not tried any more. The last:`,
      error: t.error,
    };
  const [last] = retried(t);
  if (t.status === 'ACTIVE' && t.kind === 'SQL' && t.failures > 0)
    return { said: `Its refresh failed, ${tries(t)}; it is tried again.`, error: t.error };
  if (last === undefined) return t.error ? { said: 'Its last refresh failed.', error: t.error } : null;
  const most = retried(t).length;
  const what = t.kind === 'INGEST' ? 'run' : 'part';
  const count = most === 1 ? `One ${what}` : `${most < mostListed ? most : `${mostListed} or more`} ${what}s`;
  return {
    said:
      `${count} could not be ${t.kind === 'INGEST' ? 'taken in' : 'made'}, ${tries(t)}; ` +
      `${most === 1 ? 'it is' : 'they are'} tried again.`,
    error: `${t.kind === 'INGEST' ? 'Run' : 'Part'} ${last.subtask}: ${last.error}`,
  };
}

/** As many failing runs or parts are listed at most. */
const mostListed = 20;

/** What becomes of a run that could not be taken in: it is tried again, or left alone; null where nobody says. */
export function fate(t: Trying, run: string): { then: 'again' | 'left'; tries: string } | null {
  const f = t.failing.find((one) => one.subtask === run);
  if (!f) return null;
  return f.given_up || t.status !== 'ACTIVE'
    ? { then: 'left', tries: `${f.failures} tries failed` }
    : { then: 'again', tries: `${f.failures} of ${mostTries} tries failed` };
}

/** The refreshes that have written rows, or had none to write: a failed one changes nothing. */
export const written = (records: RefreshRecord[]) => records.filter((r) => !r.error);

export type Standing = 'fresh' | 'behind' | 'late' | 'new' | 'suspended' | 'failed' | 'failing';

/** How a table stands, in one word. */
export function standing(t: DerivedTable, now: number): Standing {
  if (t.status === 'SUSPENDED') return 'suspended';
  if (t.status === 'FAILED') return 'failed';
  if (leftAlone(t) || tries(t)) return 'failing';
  if (!isMade(t)) return 'new';
  const lag = lagSeconds(t, now);
  if (lag === 0) return 'fresh';
  // A refresh begins a little late at times; a second is what the promise allows.
  return lag > t.target_lag_seconds + 1 ? 'late' : 'behind';
}

export interface GraphNode {
  name: string;
  level: number;
  row: number;
}

/**
 * Puts tables into columns, each to the right of those that it reads. A line over several columns
 * has a row of its own in those between, where no table stands: via names them, by "source table".
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
    // The store refuses circles; a picture must not hang on one all the same.
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

/** The tables around one: what it reads, through others too, and what reads it. */
export function around<T extends Pick<DerivedTable, 'name' | 'sources'>>(tables: T[], name: string): T[] {
  const kept = new Set([name]);
  const walk = (next: (n: string) => string[]) => {
    const todo = [name];
    for (let n = todo.pop(); n !== undefined; n = todo.pop())
      for (const m of next(n)) {
        if (kept.has(m) && m !== name) continue;
        if (!kept.has(m)) todo.push(m);
        kept.add(m);
      }
  };
  walk((n) => tables.find((t) => t.name === n)?.sources ?? []);
  walk((n) => tables.filter((t) => t.sources.includes(n)).map((t) => t.name));
  return tables.filter((t) => kept.has(t.name));
}

export type Cell = string | number | boolean | null | object;

export type ColumnKind = 'time' | 'number' | 'text';

/** What a column of an answer is to a chart. */
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

/** A chart that may fit an answer; null when nothing in it is a number. */
export function sensible(columns: QueryColumn[], rows: Cell[][]): ChartChoice | null {
  const of = (kind: ColumnKind) => columns.filter((c) => columnKind(c) === kind);
  const numbers = of('number');
  const distinct = (c: QueryColumn) => new Set(rows.map((r) => shown(r[columns.indexOf(c)]))).size;
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

/** Reads a choice from the address or a saved query; what the answer has not is left out. */
export function readChoice(text: string, columns: QueryColumn[], rows: Cell[][]): ChartChoice | null {
  const usual = sensible(columns, rows);
  const q = new URLSearchParams(text);
  const has = (name: string | null, number = false) =>
    columns.some((c) => c.name === name && (!number || columnKind(c) === 'number'));
  const x = q.get('x');
  const y = q.get('y');
  if (!has(x) || !has(y, true)) return usual;
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
  /** What stands at the axis where x is a word. */
  label?: string;
  bad?: boolean;
  /** Between the point before and this one a row has no value: a line is not drawn across. */
  gap?: boolean;
}

export interface Curve {
  name: string;
  points: Point[];
}

export const mostCurves = 8;

/** The curves of an answer, and the rows that are in none of them. */
export interface Drawn {
  kind: ColumnKind;
  /** Times that stand in an answer with their zone are shown in that of the browser, others as they are written. */
  zoned: boolean;
  curves: Curve[];
  labels: string[];
  /** Rows without a number at y, or with nothing at x. */
  lacking: number;
  /** Rows of series beyond the first few, and how many series those are. */
  beyond: number;
  series: number;
}

/** The curves of an answer. A row without a number at y breaks the line of its series. */
export function curves(columns: QueryColumn[], rows: Cell[][], c: ChartChoice): Drawn {
  const at = (name: string) => columns.findIndex((k) => k.name === name);
  const [xi, yi, si] = [at(c.x), at(c.y), at(c.series)];
  const kind = xi < 0 ? 'text' : columnKind(columns[xi]!);
  const byName = new Map<string, { x: number; y: number | null; label?: string }[]>();
  const further = new Set<string>();
  const labels = new Map<string, number>();
  let [lacking, beyond] = [0, 0];
  for (const row of rows) {
    const raw = row[xi];
    // What a number cannot hold with all of its digits is a text, and is near enough for a chart.
    const told = row[yi];
    const n = typeof told === 'string' && yi >= 0 && columnKind(columns[yi]!) === 'number' ? Number(told) : told;
    const y = typeof n === 'number' && Number.isFinite(n) ? n : null;
    const name = si < 0 ? c.y : row[si] === null ? 'null' : shown(row[si]);
    if (!byName.has(name) && byName.size >= mostCurves) {
      further.add(name);
      beyond++;
      continue;
    }
    const points = byName.get(name) ?? [];
    byName.set(name, points);
    let x = Number.NaN;
    if (raw !== null && raw !== undefined) {
      if (kind === 'time') x = instant(shown(raw));
      else if (kind === 'number') x = Number(raw);
      else {
        const label = shown(raw);
        if (!labels.has(label)) labels.set(label, labels.size);
        x = labels.get(label)!;
      }
    }
    if (y === null || !Number.isFinite(x)) lacking++;
    if (Number.isFinite(x)) points.push({ x, y, label: kind === 'text' ? shown(raw) : undefined });
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
    series: further.size,
  };
}

/** The parts of a line between its gaps. */
export function unbroken(points: Point[]): Point[][] {
  const parts: Point[][] = [];
  for (const p of points) {
    if (p.gap || parts.length === 0) parts.push([]);
    parts.at(-1)!.push(p);
  }
  return parts;
}

/** What a chart does not draw of an answer, in words; '' when it draws all of it. */
export function undrawn(d: Pick<Drawn, 'lacking' | 'beyond' | 'series'>, rows: number): string {
  const told = (n: number) => n.toLocaleString('en-US');
  const why = [];
  if (d.lacking > 0) why.push(`${told(d.lacking)} ${d.lacking === 1 ? 'lacks' : 'lack'} a value`);
  if (d.beyond > 0)
    why.push(
      `${told(d.beyond)} ${d.beyond === 1 ? 'is' : 'are'} of ${told(d.series)} series beyond the first ${mostCurves}`,
    );
  const all = d.lacking + d.beyond;
  return all === 0
    ? ''
    : `${told(all)} of ${told(rows)} rows ${all === 1 ? 'is' : 'are'} not drawn: ${why.join(', ')}.`;
}

/** A time as Postgres writes it: 2026-11-22 12:00:00.5+00. */
export function instant(text: string): number {
  const t = text.trim().replace(' ', 'T');
  if (/^\d{4}-\d\d-\d\d$/.test(t)) return Date.parse(`${t}T00:00:00Z`);
  const zone = /([+-]\d\d)(:?\d\d)?$/.exec(t);
  if (zone && t.includes('T')) return Date.parse(zone[2] ? t : `${t}:00`);
  return Date.parse(/Z$/.test(t) ? t : `${t}Z`);
}

/** A value as a table shows it. */
export function shown(v: Cell | undefined): string {
  if (v === null || v === undefined) return '';
  return typeof v === 'object' ? JSON.stringify(v) : String(v);
}

/** Rows for the clipboard, as spreadsheets read them. */
export function tabSeparated(columns: QueryColumn[], rows: Cell[][]): string {
  const cell = (v: Cell, i: number) => {
    const text = shown(v).replace(/[\t\n\r]+/g, ' ');
    const number = columnKind(columns[i]!) === 'number' && /^-?\d+(?:\.\d+)?$/.test(text);
    return typeof v === 'string' && !number ? forSheets(text) : text;
  };
  const head = columns.map((c) => forSheets(shown(c.name).replace(/[\t\n\r]+/g, ' ')));
  return [head.join('\t'), ...rows.map((r) => r.map(cell).join('\t'))].join('\n');
}

export function claimAge(c: Pick<RefreshClaim, 'claimed_at'>, now: number): number {
  return c.claimed_at ? Math.max(0, (now - Date.parse(c.claimed_at)) / 1000) : 0;
}

/** How many milliseconds an entry of the queue waits yet; 0 when it is due. */
export const dueIn = (p: { next_refresh_due: string | null }, now: number) =>
  Math.max(0, (Date.parse(p.next_refresh_due ?? '') || 0) - now);

type Planned = Pick<DerivedTable, 'status' | 'kind' | 'next_refresh_due'>;
type Queue = { pending: Pick<DerivedTableDetail['pending'][number], 'next_refresh_due'>[] } & {
  claims: Pick<RefreshClaim, 'claimed_at'>[];
};

/** When a table is refreshed next. What is being refreshed is not due: it was. */
export function nextRefresh(t: Planned, queue: Queue, now: number): string {
  const age = Math.max(...queue.claims.map((c) => claimAge(c, now)));
  if (queue.claims.length > 0) return `being refreshed for ${duration(Math.round(age))}`;
  if (t.status !== 'ACTIVE') return 'when it is resumed';
  const next = queue.pending.toSorted((a, b) => dueIn(a, now) - dueIn(b, now))[0];
  if (next) return dueIn(next, now) > 0 ? `tried again at ${dateTime(next.next_refresh_due)}` : 'waits for a worker';
  if (t.next_refresh_due) return dateTime(t.next_refresh_due);
  return t.kind === 'INGEST' ? 'when a run ends' : 'when its sources change';
}

/** A name for one query, by which it can be cancelled; randomUUID needs a secure origin. */
export function queryId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, '0')).join('');
}

/** The address of a table's page. */
export const tablePath = (name: string) => `/table/${encodeURIComponent(name)}`;
