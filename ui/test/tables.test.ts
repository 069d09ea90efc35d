import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import type { DerivedTable, DerivedTableList, QueryRelation, RefreshRecord } from '../src/api/types';
import {
  chartData,
  failureText,
  freshness,
  ingestOutcome,
  isAbandoned,
  isBuilt,
  lagSeconds,
  layers,
  nextRefresh,
  omittedText,
  parseInstant,
  readChoice,
  relatedTables,
  segments,
  suggestChart,
  tabSeparated,
  triesText,
  waitReason,
  writeChoice,
  writtenRefreshes,
} from '../src/tables/model';
import { colourSql, inText, quoted, sqlCompletions, wordAt } from '../src/tables/sql';
import { NextRefresh } from '../src/tables/TablesPage';
import { ticks } from '../src/tables/XYChart';

const reads = (name: string, ...sources: string[]) => ({ name, sources });

it('says in the list what it says on its own page of a table that waits for somebody', () => {
  const list = { claims: [], pending: [], workers: [] } as unknown as DerivedTableList;
  const cell = (status: string) =>
    renderToStaticMarkup(
      createElement(NextRefresh, { t: { name: 't', kind: 'SQL', status } as DerivedTable, list, now: 0 }),
    );
  expect(cell('SUSPENDED')).toContain('after it is resumed');
  expect(cell('ACTIVE')).toContain('when a source changes');
});

describe('when a table is refreshed next', () => {
  const now = Date.parse('2026-11-22T12:00:00Z');
  const at = (s: number) => new Date(now + 1000 * s).toISOString();
  const t = { status: 'ACTIVE', kind: 'SQL', next_refresh_due: at(-30) } as const;
  const nextText = (pending: number[], claims: number[] = [], more: object = {}) =>
    nextRefresh(
      { ...t, ...more },
      {
        pending: pending.map((s) => ({ next_refresh_due: at(s) })),
        claims: claims.map((s) => ({ claimed_at: at(s) })),
      },
      now,
    );
  it('says that it goes on, and no time that is past', () => {
    expect(nextText([-30], [-8, -3])).toBe('refreshing for 8 s');
    expect(nextText([-30])).toBe('waiting for a worker');
    expect(nextText([60])).toMatch(/^retries at /);
  });
  it('says when it is due, or what it waits for', () => {
    expect(nextText([], [], { next_refresh_due: at(60) })).toMatch(/12:01|:01:00/);
    expect(nextText([], [], { next_refresh_due: null })).toBe('when a source changes');
    expect(nextText([], [], { status: 'SUSPENDED' })).toBe('after it is resumed');
  });
});

describe('derived tables', () => {
  const now = Date.parse('2026-11-22T12:00:00Z');
  const t = {
    behind_since: null,
    as_of: '2026-11-22T11:00:00Z',
    kind: 'SQL',
    status: 'ACTIVE',
    target_lag_seconds: 60,
    failures: 0,
    error: '',
    failing: [],
  };
  const once = { subtask: 'r1', failures: 3, given_up: false, error: 'no room', failed_at: '2026-11-22T11:59:00Z' };
  it('says why nothing is refreshed only when no worker could', () => {
    expect(waitReason([])).toBe('');
    expect(waitReason([{ waits_for: 'no room' }, { waits_for: '' }])).toBe('');
    expect(waitReason([{ waits_for: 'no room' }, { waits_for: 'a run' }])).toBe('no room');
  });
  it.each([
    [{}, 'fresh', 0],
    [{ behind_since: '2026-11-22T11:59:30Z' }, 'behind', 30],
    [{ behind_since: '2026-11-22T11:58:00Z' }, 'late', 120],
    [{ as_of: null, behind_since: '2026-11-22T11:59:30Z' }, 'new', 30],
    [{ status: 'FAILED', behind_since: '2026-11-22T11:59:30Z' }, 'failed', 30],
    [{ status: 'SUSPENDED' }, 'suspended', 0],
    [{ kind: 'INGEST', as_of: null }, 'fresh', 0],
    [{ kind: 'INGEST', as_of: null, behind_since: '2026-11-22T11:59:30Z' }, 'behind', 30],
    [{ kind: 'INGEST', as_of: null, behind_since: '2026-11-22T11:58:00Z' }, 'late', 120],
    [{ failures: 3, error: 'no', behind_since: '2026-11-22T11:59:30Z' }, 'failing', 30],
    [{ failures: 1, error: 'no', as_of: null }, 'failing', 0],
    [{ failing: [once], behind_since: '2026-11-22T11:59:30Z' }, 'failing', 30],
    [{ kind: 'INGEST', as_of: null, failing: [once], behind_since: '2026-11-22T11:59:30Z' }, 'failing', 30],
    [{ kind: 'INGEST', as_of: null, failures: 1, behind_since: '2026-11-22T11:58:00Z' }, 'failing', 120],
    [{ status: 'SUSPENDED', failures: 3, failing: [once] }, 'suspended', 0],
  ])('%j stands as %s', (part, want, lag) => {
    const table = { ...t, ...part } as Parameters<typeof freshness>[0];
    expect(freshness(table, now)).toBe(want);
    expect(lagSeconds(table, now)).toBe(lag);
  });

  it('knows no lag of a table that was never made', () => {
    expect(isBuilt({ kind: 'SQL', as_of: null })).toBe(false);
    expect(isBuilt({ kind: 'SQL', as_of: t.as_of })).toBe(true);
    expect(isBuilt({ kind: 'INGEST', as_of: null })).toBe(true);
  });
  it('says which runs are left alone, and offers to try them again', () => {
    const runs = { kind: 'INGEST', status: 'ACTIVE', failures: 2, error: 'Run r2: gone', failing: [once] } as const;
    expect(isAbandoned(runs)).toBe(true);
    expect(failureText(runs)?.text).toContain('2 runs could not be ingested. Loadstone no longer retries them');
    expect(failureText(runs)?.error).toBe('Run r2: gone');
    expect(failureText({ ...runs, failures: 1 })?.text).toContain('1 run could not be ingested');
    expect(isAbandoned({ ...runs, failures: 0 })).toBe(false);
    expect(isAbandoned({ ...runs, status: 'SUSPENDED' })).toBe(false);
    expect(isAbandoned({ ...runs, kind: 'SQL' })).toBe(false);
  });
  it('says how many tries failed of what is tried again', () => {
    const sql = { kind: 'SQL', status: 'ACTIVE', failures: 2, error: 'no', failing: [] } as const;
    expect(failureText(sql)?.text).toBe('The refresh failed (2 of 5 tries failed). Loadstone retries it.');
    expect(failureText({ ...sql, status: 'FAILED', failures: 5 })?.text).toContain(
      'failed 5 times. Loadstone no longer retries it',
    );
    expect(triesText({ ...sql, status: 'FAILED', failures: 5 })).toBe('');
    expect(failureText({ ...sql, failures: 0, error: '' })).toBeNull();
    const run = { ...sql, kind: 'INGEST', failures: 0, error: '', failing: [once] } as const;
    expect(triesText(run)).toBe('3 of 5 tries failed');
    expect(failureText(run)).toEqual({
      text: '1 run could not be ingested, 3 of 5 tries failed; Loadstone retries.',
      error: 'Run r1: no room',
    });
    const part = { ...sql, failures: 0, error: '', failing: [once, { ...once, subtask: 'b', failures: 4 }] } as const;
    expect(failureText(part)?.text).toBe('2 parts could not be built, 4 of 5 tries failed; Loadstone retries.');
  });
  it('says why a table is suspended whose owner has lost the right to it', () => {
    const t = { kind: 'SQL', status: 'SUSPENDED', failures: 0, error: '', failing: [] } as const;
    expect(failureText(t)).toBeNull();
    expect(failureText({ ...t, suspended_reason: 'ada, whose table it is, is locked out' })).toEqual({
      text: 'Suspended:',
      error: 'ada, whose table it is, is locked out.',
    });
  });
  it('knows what becomes of a run', () => {
    const runs = { kind: 'INGEST', status: 'ACTIVE', failures: 0, error: '', failing: [once] } as const;
    expect(ingestOutcome(runs, 'r1')).toEqual({ then: 'again', tries: '3 of 5 tries failed' });
    expect(ingestOutcome({ ...runs, failing: [{ ...once, failures: 5, given_up: true }] }, 'r1')).toEqual({
      then: 'left',
      tries: '5 tries failed',
    });
    expect(ingestOutcome({ ...runs, status: 'SUSPENDED' }, 'r1')?.then).toBe('left');
    expect(ingestOutcome(runs, 'r2')).toBeNull();
  });
  it('draws no rows of a refresh that failed', () => {
    const one = { error: '', row_count: 0 } as RefreshRecord;
    expect(writtenRefreshes([one, { ...one, error: 'no' }])).toEqual([one]);
  });

  it('puts each table to the right of those that it reads', () => {
    const all = [reads('c', 'b', 'a'), reads('a'), reads('b', 'a'), reads('d', 'elsewhere')];
    const level = Object.fromEntries(layers(all).nodes.map((n) => [n.name, n.level]));
    expect(level).toEqual({ a: 0, b: 1, c: 2, d: 0 });
    const { nodes, via } = layers(all);
    const places = [...nodes, ...via.get('a c')!].map((n) => `${n.level} ${n.row}`);
    expect(new Set(places).size).toBe(5);
  });
  it('does not hang on a circle', () => expect(layers([reads('a', 'b'), reads('b', 'a')]).nodes).toHaveLength(2));
  it('shows what is around a table, and not its cousins', () => {
    const all = [reads('root'), reads('mid', 'root'), reads('cousin', 'root'), reads('top', 'mid')];
    expect(relatedTables(all, 'mid').map((n) => n.name)).toEqual(['root', 'mid', 'top']);
  });
});

describe('charts of answers', () => {
  const columns = [
    { name: 'adapter', type: 'text' },
    { name: 'started_at', type: 'timestamptz' },
    { name: 'p95_ms', type: 'float8' },
  ];
  const rows = [
    ['hybrid', '2026-11-22 12:00:00.5+00', 3],
    ['postgres', '2026-11-22 12:00:00.5+00', null],
    ['hybrid', '2026-11-21 12:00:00+02', 2],
    ['postgres', '2026-11-21 12:00:00+02', 5],
  ];
  const usual = { x: 'started_at', y: 'p95_ms', series: 'adapter', shape: 'line' as const };
  it('begin with what fits', () => {
    expect(suggestChart(columns, rows)).toEqual(usual);
    expect(suggestChart(columns.slice(0, 2), rows)).toBeNull();
    const bars = suggestChart(
      [columns[0]!, columns[2]!],
      [
        ['a', 1],
        ['b', 2],
      ],
    );
    expect(bars).toEqual({ x: 'adapter', y: 'p95_ms', series: '', shape: 'bars' });
  });
  it('are kept in an address', () => {
    const odd = { ...usual, shape: 'bars' as const, series: '' };
    expect(readChoice(writeChoice(odd), columns, rows)).toEqual(odd);
    expect(readChoice('x=gone&y=p95_ms', columns, rows)).toEqual(usual);
    expect(readChoice('x=adapter&y=started_at', columns, rows)).toEqual(usual);
  });
  it('sort times, and count what they leave out', () => {
    const drawn = chartData(columns, rows, usual);
    expect([drawn.lacking, drawn.beyond]).toEqual([1, 0]);
    expect(omittedText(drawn, rows.length)).toBe('1 of 4 rows is not drawn: 1 lacks a value.');
    expect(drawn.curves.map((c) => [c.name, c.points.map((p) => p.y)])).toEqual([
      ['hybrid', [2, 3]],
      ['postgres', [5]],
    ]);
  });
  it('break a line where a row has no value', () => {
    const n = [
      { name: 'n', type: 'int4' },
      { name: 'v', type: 'float8' },
    ];
    const of = (...all: (number | null)[]) =>
      chartData(
        n,
        all.map((v, i) => [i, v]),
        { x: 'n', y: 'v', series: '', shape: 'line' },
      ).curves.map((c) => segments(c.points).map((part) => part.map((p) => p.y)));
    expect(of(null, 1, 2, null, null, 5, null, 7, 8, null)).toEqual([[[1, 2], [5], [7, 8]]]);
    expect(of(null, null)).toEqual([]);
    const unsorted = [
      [2, null],
      [3, 3],
      [1, 1],
    ];
    const [one] = chartData(n, unsorted, { x: 'n', y: 'v', series: '', shape: 'line' }).curves;
    expect(segments(one!.points).map((part) => part.map((p) => p.y))).toEqual([[1], [3]]);
  });
  it('count the series that are beyond the first, beside rows that lack a value', () => {
    const wide = Array.from({ length: 30 }, (_, i) => [`s${i % 10}`, '2026-11-22', i === 3 || i === 9 ? null : i]);
    const drawn = chartData(columns, wide, usual);
    expect(drawn.curves.map((c) => c.name)).toEqual(['s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7']);
    expect(omittedText(drawn, wide.length)).toBe(
      '7 of 30 rows are not drawn: 1 lacks a value, 6 are of 2 series beyond the first 8.',
    );
    expect(omittedText(chartData(columns, rows.slice(2), usual), 2)).toBe('');
  });
  it('know times with a zone from those that are as they are written', () => {
    const of = (type: string) => chartData([columns[0]!, { name: 'started_at', type }, columns[2]!], rows, usual);
    expect([of('timestamptz'), of('timestamp'), of('date')].map((d) => d.zoned)).toEqual([true, false, false]);
  });
  it.each([
    ['2026-11-22 12:00:00.5+00', '2026-11-22T12:00:00.500Z'],
    ['2026-11-22 12:00:00-05:30', '2026-11-22T17:30:00.000Z'],
    ['2026-11-22', '2026-11-22T00:00:00.000Z'],
    ['2026-11-22 12:00:00', '2026-11-22T12:00:00.000Z'],
  ])('reads %s', (text, want) => expect(new Date(parseInstant(text)).toISOString()).toBe(want));
  it('has round steps', () => {
    expect(ticks(0, 97, 4)).toEqual([0, 50]);
    expect(ticks(0, 4.1, 4)).toEqual([0, 2, 4]);
    expect(ticks(-0.3, 0.3, 6)).toEqual([-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3]);
  });
  it('copies rows that no spreadsheet executes', () =>
    expect(tabSeparated(columns, [['=1+1', 'a\tb', -2]])).toBe("adapter\tstarted_at\tp95_ms\n'=1+1\ta b\t-2"));
});

const catalog: QueryRelation[] = [
  {
    schema: 'tables',
    name: 'run_summary',
    columns: [
      { name: 'run_id', type: 'text' },
      { name: 'p95_ms', type: 'float8' },
    ],
  },
  { schema: 'tables', name: 'My Table', columns: [{ name: 'The "Size"', type: 'text' }] },
  { schema: 'rollup', name: 'runs', columns: [{ name: 'version', type: 'int8' }] },
];
const offered = (text: string) => {
  const caret = text.indexOf('|');
  return sqlCompletions(text.replace('|', ''), caret, catalog).map((o) => o.text);
};

describe('the editor of SQL', () => {
  it.each([
    "SELECT 'it''s -- no', 1.5 -- yes\nFROM \"a b\" /* c\nd */ WHERE $x$ ' $x$ = E'\\''",
    "'open",
    '/* open',
    '',
  ])('keeps every character of %j', (text) =>
    expect(
      colourSql(text)
        .map((l) => l.map((p) => p.text).join(''))
        .join('\n'),
    ).toBe(text),
  );
  it('colours what it knows', () => {
    const kinds = colourSql("SELECT 'x', 12 -- c")[0]!.map((p) => `${p.kind}:${p.text}`);
    expect(kinds).toEqual(['key:SELECT', ': ', "string:'x'", ':, ', 'number:12', ': ', 'comment:-- c']);
  });
  it('offers tables where a table stands', () => {
    expect(offered('SELECT * FROM |')).toEqual(['run_summary', '"My Table"', 'rollup.runs']);
    expect(offered('SELECT * FROM ru|')).toEqual(['run_summary', 'rollup.runs']);
    expect(offered('SELECT * FROM roll|')).toEqual(['rollup.runs']);
    expect(offered('SELECT * FROM rollup.|')).toEqual(['runs']);
  });
  it('offers the columns of what is read, by alias too', () => {
    expect(offered('SELECT p9| FROM run_summary')).toEqual(['p95_ms']);
    expect(offered('SELECT s.| FROM run_summary AS s')).toEqual(['run_id', 'p95_ms']);
    expect(offered('SELECT m.| FROM "My Table" m')).toEqual(['"The ""Size"""']);
    expect(offered('SELECT p9| FROM rollup.runs')).not.toContain('p95_ms');
  });
  it('offers nothing in texts, in comments, and when the word is whole', () => {
    expect(offered("SELECT 'ru|'")).toEqual([]);
    expect(offered('SELECT 1 -- ru|')).toEqual([]);
    expect(offered('SELECT p95_ms| FROM run_summary')).toEqual([]);
    expect(inText("SELECT 'a' ", 11)).toBe(false);
  });
  it('knows the word at the caret', () =>
    expect(wordAt('SELECT s."Th', 12)).toEqual({ from: 9, word: '"Th', before: 's' }));
  it('puts odd names into quotes', () =>
    expect(['run_id', 'Run', 'a"b', 'order', 'é'].map(quoted)).toEqual([
      'run_id',
      '"Run"',
      '"a""b"',
      '"order"',
      '"é"',
    ]));
});
