import { describe, expect, it, vi } from 'vitest';
import {
  emptyQuery,
  type ExploreQuery,
  exploreRun,
  fromAddress,
  stepFor,
  toAddress,
  zoomOf,
} from '../src/explore/address';
import { type Result, serverSentEvents } from '../src/explore/promqlClient';
import { rowsOf } from '../src/explore/Explain';
import { earlierRuns, type EarlierRunsQuery } from '../src/explore/earlierRuns';
import {
  bucketUnits,
  coloursByRun,
  effectiveUnit,
  heatOf,
  linesOf,
  maxCurves,
  plotResults,
  type RunResult,
  tableOf,
  unitOf,
} from '../src/explore/model';
import {
  caretAt,
  colourPromql,
  errorAt,
  promqlCompletions,
  quote,
  tokens,
  withMatcher,
  withVariables,
} from '../src/explore/promql';
import { clockTime, queryParts } from '../src/explore/times';
import { choicesOf, exploreChart, isPromql } from '../src/tables/SavedQueries';
import type { Run } from '../src/api/types';

const odd = [
  'sum by (kind) (rate(loadstone_operations_total{run="a}b", kind=~"P.*"}[5m:1m] offset 5m)) # {x}\n> bool 0.1e-3',
  '{__name__=~"é\\"{", `raw`="x"} @ end()',
  'unclosed{a="b',
  '$x ~~~ \u0000 ]]})',
];

describe('PromQL on the page', () => {
  it.each(odd)('cuts into tokens that are the text again: %s', (text) => {
    const joined = tokens(text).map((t) => t.text);
    expect(joined.join('')).toBe(text);
    const lines = colourPromql(text).map((l) => l.map((p) => p.text).join(''));
    expect(lines.join('\n')).toBe(text);
  });

  it.each([
    ['up', 'up{run="r"}'],
    ['up{}', 'up{run="r",}'],
    ['up {a="b"}', 'up {run="r",a="b"}'],
    ['{a="{x}"}', '{run="r",a="{x}"}'],
    ['sum by (kind) (rate(a_total[5m])) / on (kind) group_left (b) c', null],
    ['sum(a) by (kind)', 'sum(a{run="r"}) by (kind)'],
    ['avg without (x) (a offset 5m)', 'avg without (x) (a{run="r"} offset 5m)'],
    ['a and b or c unless d > bool 1', null],
    ['max_over_time(rate(a[1m])[5m:1m]) @ start()', 'max_over_time(rate(a{run="r"}[1m])[5m:1m]) @ start()'],
    ['vector(1) + time() # a comment with a_name{}', 'vector(1) + time() # a comment with a_name{}'],
    ['"a string" + label_replace(a, "x", "$1", "y", "(.*)")', null],
    ['1 + Inf - nan * 0x1f', '1 + Inf - nan * 0x1f'],
    ['a:b:c', 'a:b:c{run="r"}'],
  ])('puts a matcher into each selector of %s', (text, want) => {
    const got = withMatcher(text, 'run="r"');
    if (want !== null) expect(got.text).toBe(want);
    // Positions map back, whatever was inserted.
    const back = [...got.text].map((_, i) => got.before(i));
    expect([...new Set(back.filter((b) => b < text.length))]).toEqual([...text].map((_, i) => i));
  });

  it('leaves labels in groupings alone', () => {
    expect(withMatcher('sum by (kind) (a) / on (kind) group_left (b) c', 'x="y"').text).toBe(
      'sum by (kind) (a{x="y"}) / on (kind) group_left (b) c{x="y"}',
    );
  });

  it('fills in variables, not those in strings and comments', () => {
    const got = withVariables('rate(a{b="$__interval"}[$__interval]) # $__interval\n+ $unknown', {
      $__interval: '30s',
    });
    expect(got.text).toBe('rate(a{b="$__interval"}[30s]) # $__interval\n+ $unknown');
    expect(got.before(got.text.indexOf('30s'))).toBe(24);
    expect(got.before(got.text.indexOf('30s') + 3)).toBe(24 + '$__interval'.length);
  });

  it('quotes what others have written', () => {
    expect(quote('a"b\\c\nd')).toBe('"a\\"b\\\\c\\nd"');
  });

  it('finds the place of an error in what was written', () => {
    const written = 'sum(\n  rate(é{x="ü"}[$__interval]) +)';
    const filled = withVariables(written, { $__interval: '15s' });
    const asked = withMatcher(filled.text, 'run="r"');
    // The server counts bytes, and sees the matcher and the range.
    const line = asked.text.split('\n')[1]!;
    const column = new TextEncoder().encode(line.slice(0, line.indexOf('+)'))).length + 2;
    const e = errorAt(`invalid parameter "query": 2:${column}: parse error: unexpected ")"`, asked.text, written, (o) =>
      filled.before(asked.before(o)),
    );
    expect(e).toEqual({ field: 'query', message: 'unexpected ")"', line: 2, column: written.split('\n')[1]!.length });
    expect(errorAt('no place', 'a', 'a', (o) => o)).toEqual({ field: 'query', message: 'no place' });
  });

  const names = {
    metrics: () => Promise.resolve([{ name: 'loadstone_rows_total', detail: 'counter' }]),
    labels: (s: string) => Promise.resolve(['__name__', 'kind', s || 'any']),
    values: (l: string, s: string) => Promise.resolve([`${l} of ${s}`, 'a"b']),
  };
  const at = async (text: string, asked = true) => {
    const caret = text.indexOf('|');
    const found = await promqlCompletions(text.replace('|', ''), caret, asked, names);
    return found.offers.map((o) => o.text);
  };
  it('completes what may stand at the caret', async () => {
    expect(await at('sum(loadstone_r|')).toEqual(['loadstone_rows_total']);
    expect(await at('histogram_q|')).toContain('histogram_quantile(');
    expect(await at('a{ki|')).toEqual(['kind="']);
    expect(await at('a{x="y", |}')).toContain('a{x="y",}="');
    expect(await at('sum by (ki|) (a)')).toEqual(['kind']);
    expect(await at('a{x="y",kind="|')).toEqual(['kind of a{x=\\"y\\",}"', 'a\\"b"']);
    expect(await at('a{kind="k|"}')).toEqual(['kind of a{}']);
    expect(await at('a[$__r|')).toEqual(['$__rate_interval', '$__range']);
    expect(await at('a{kind="x"|')).toEqual([]);
    expect(await at('# loadstone|')).toEqual([]);
    expect(await at('label_replace(a, "load|')).toEqual([]);
    expect(await at('1|')).toEqual([]);
    expect(await at('|', false)).toEqual([]);
    expect(caretAt('a{b="c\\"', 8)).toMatchObject({ at: 'value', word: 'c\\"' });
  });
});

describe('what is asked', () => {
  const whole: ExploreQuery = {
    ...emptyQuery,
    q: 'a{b="é,&"}\n+ 1',
    over: 'runs',
    runs: ['01A', '01B'],
    base: ['01C'],
    step: 5,
    view: 'heat',
    unit: 'rate',
  };
  it.each([
    emptyQuery,
    whole,
    { ...emptyQuery, q: 'x', last: '', from: 5, to: 9 },
    { ...emptyQuery, every: 5, last: '7d' },
  ])('comes back from the address: %o', (a) => expect(fromAddress(toAddress(a).split('?')[1] ?? '')).toEqual(a));
  it('takes no nonsense from an address', () => {
    const bad = 'over=1&runs=../x,a b&step=-1&from=9&to=3&last=9y&view=<b>&every=1e9';
    expect(fromAddress(bad)).toEqual({ ...emptyQuery, every: 3600 });
    expect(fromAddress(`runs=${Array.from({ length: 99 }, (_, i) => i).join()}`).runs).toHaveLength(8);
  });
  it('is over the time of a run from its page', () => {
    const zoomed = exploreRun('a', '01A', { range: '3.0-10.5' });
    expect(fromAddress(zoomed.split('?')[1]!)).toMatchObject({
      q: 'a',
      over: 'runs',
      runs: ['01A'],
      range: '3.0-10.5',
    });
    expect(zoomOf('3.0-10.5')).toEqual({ from: 3, to: 10.5 });
    expect(['10-3', '3-3', 'a-b', '-1-2', '1e3-2e9'].map(zoomOf)).toEqual([null, null, null, null, null]);
  });
  it('has at most as many points as a chart has room for', () => {
    expect([20, 400, 401, 3600, 30 * 86_400].map(stepFor)).toEqual([1, 1, 2, 10, 7200]);
    const { start, end, step } = clockTime({ ...emptyQuery, last: '6h' }, 1_000_000_007_000);
    expect([start % step, end - start >= 6 * 3600, end]).toEqual([0, true, 1_000_000_007]);
  });
  it('asks for each run over its own time', () => {
    const run = (run_id: string, start_time: string | null, end_time: string | null) =>
      ({ run_id, start_time, end_time }) as Run;
    const runs = [
      run('A', '2026-11-23T10:00:00.500Z', '2026-11-23T10:01:00Z'),
      run('B', '2026-11-23T11:00:00Z', null),
      run('C', null, null),
    ];
    const now = Date.parse('2026-11-23T11:20:00Z');
    const { parts, step } = queryParts(
      { ...whole, q: 'a[$__range]', step: 0, runs: ['A', 'B', 'C'], base: [] },
      runs,
      now,
    );
    expect(step).toBe(5);
    expect(parts.map((p) => [p.run, p.end - p.start, p.query])).toEqual([
      ['A', 59.5, 'a{run="A"}[60s]'],
      ['B', 1200, 'a{run="B"}[1200s]'],
    ]);
  });
});

const matrix = (...series: [Record<string, string>, [number, string][]][]): Result => ({
  resultType: 'matrix',
  result: series.map(([metric, values]) => ({ metric, values })),
});
const answer = (run: string, zero: number, result: Result, base = false): RunResult => ({
  run,
  name: run.toUpperCase(),
  zero,
  result,
  base,
});

it('keeps queries of this page apart from SQL', () => {
  const chart = exploreChart('over=runs&runs=01A');
  expect([isPromql({ chart }), isPromql({ chart: exploreChart('') }), isPromql({ chart: 'x=a' })]).toEqual([
    true,
    true,
    false,
  ]);
  expect([choicesOf({ chart }), choicesOf({ chart: exploreChart('') })]).toEqual(['over=runs&runs=01A', '']);
});

it('adds up what was done for each leaf', () => {
  const piece = {
    leaf: 0,
    of: 2,
    node_id: 'a',
    attempt: 1,
    segments: 3,
    hits: 2,
    disk_hits: 1,
    fetched: 0,
    fetched_bytes: 0,
    samples: 10,
    series: 1,
    bytes: 5,
    took_ms: 4,
  };
  const leaf = { expr: 'rate(x[5s])', function: 'rate' };
  const rows = rowsOf([
    { leaves: [{ ...leaf, pieces: [piece, { ...piece, node_id: 'b', attempt: 2, took_ms: 9 }] }] },
    { leaves: [{ ...leaf, pieces: [piece] }] },
  ]);
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({ pieces: 3, again: 1, segments: 9, hits: 6, disk: 3, samples: 30, slowest: 9 });
  expect([...rows[0]!.nodes]).toEqual(['a', 'b']);
});

describe('what answers come to', () => {
  it('lays series on one grid, with gaps where nothing is', () => {
    const r = matrix(
      [
        { __name__: 'm', kind: 'a', x: '1' },
        [
          [100, '1'],
          [110, '3'],
        ],
      ],
      [
        { __name__: 'm', kind: 'b', x: '1' },
        [
          [105, 'NaN'],
          [110, '+Inf'],
        ],
      ],
    );
    const d = plotResults([answer('', 100, r)], 5);
    expect(d.x).toEqual([0, 5, 10]);
    expect(d.curves.map((c) => [c.name, c.values])).toEqual([
      ['a', [1, null, 3]],
      ['b', [null, null, null]],
    ]);
    expect(d.common).toEqual({ __name__: 'm', x: '1' });
  });
  it('lays runs over each other at their start, and draws the median of the others', () => {
    const of = (run: string, zero: number, v: number) =>
      answer(
        run,
        zero,
        matrix([
          { run, kind: 'k' },
          [
            [zero, `${v}`],
            [zero + 1, `${v + 1}`],
          ],
        ]),
        run !== 'a',
      );
    const all = [of('a', 1000, 50), of('b', 5, 10), of('c', 77, 30), of('d', 99, 20)];
    const d = plotResults(all, 1);
    expect(d.curves.map((c) => [c.name, c.of, c.values])).toEqual([
      ['A', 0, [50, 51]],
      ['median of 3 runs', -1, [20, 21]],
    ]);
    const { lines } = linesOf(d, false, [0, 1, 2, 3]);
    expect(lines.map((l) => [l.color, Boolean(l.dash)])).toEqual([
      ['--run-1', false],
      ['--text-2', true],
    ]);
    const t = tableOf(d, all);
    expect(t.columns.map((c) => c.name)).toEqual(['of', 'kind', 'last', 'min', 'mean', 'max', 'mean to median %']);
    expect(t.rows[0]).toEqual(['A', 'k', 51, 50, 50.5, 51, 146.34146]);
  });
  const flat = (run: string, kinds: string[], values: number[], base = false) =>
    answer(
      run,
      0,
      matrix(
        ...kinds.map((kind): [Record<string, string>, [number, string][]] => [
          { kind },
          values.map((v, t) => [t, `${v}`]),
        ]),
      ),
      base,
    );
  it('compares a run with the median over the time that both have', () => {
    const all = [flat('a', ['x'], [10, 10]), flat('b', ['x'], [5, 5, 90, 90], true), flat('c', ['y'], [1], true)];
    const d = plotResults(all, 1);
    // Only one of the two others has the series.
    expect(d.curves.map((c) => c.name)).toEqual(['A · x', 'median of 1 run · x', 'median of 1 run · y']);
    const { columns, rows } = tableOf(d, all);
    const at = columns.findIndex((c) => c.name === 'mean to median %');
    expect(rows.map((r) => r[at])).toEqual([100, null, null]);
  });
  it('draws a run in the colour of its place among those chosen, or a series in its own', () => {
    // The first and third of four chosen runs have no result.
    const one = plotResults([flat('b', ['x'], [1]), flat('d', ['x'], [2])], 1);
    expect(linesOf(one, false, [1, 3]).lines.map((l) => l.color)).toEqual(['--run-2', '--run-4']);
    const two = plotResults([flat('b', ['x', 'y'], [1]), flat('d', ['x', 'y'], [2])], 1);
    const { lines } = linesOf(two, false, [0, 1]);
    expect(lines.map((l) => [l.color, Boolean(l.dash)])).toEqual([
      ['--run-1', false],
      ['--run-2', false],
      ['--run-1', true],
      ['--run-2', true],
    ]);
    expect([coloursByRun(one), coloursByRun(two)]).toEqual([true, false]);
  });
  it('draws the largest of too many, and hides what would change how a label reads', () => {
    const many = Array.from({ length: maxCurves + 5 }, (_, i): [Record<string, string>, [number, string][]] => [
      { kind: `k\u202e${i}` },
      [[0, `${i}`]],
    ]);
    const d = plotResults([answer('', 0, matrix(...many))], 1);
    const { lines, omitted: left } = linesOf(d, false, null);
    expect([lines.length, left, lines[0]!.label]).toEqual([maxCurves, 5, 'k\ufffd5']);
  });
  it('reads histograms', () => {
    const r: Result = {
      resultType: 'matrix',
      result: [
        {
          metric: {},
          histograms: [
            [
              7,
              {
                count: '3',
                sum: '1',
                buckets: [
                  [0, '0.5', '1', '3'],
                  [3, '-1', '0', '1'],
                ],
              },
            ],
          ],
        },
      ],
    };
    const d = plotResults([answer('', 7, r)], 1);
    expect(heatOf(d.curves[0]!, 1000)[0]).toEqual([{ from: 500, to: 1000, count: 3 }]);
    expect([d.histograms, heatOf(d.curves[0]!)]).toEqual([true, [[{ from: 0.5, to: 1, count: 3 }]]]);
    expect(linesOf(d, false, null).lines).toEqual([]);
    expect(tableOf(d, []).rows).toEqual([[3, 3, 3, 3]]);
  });
  it.each([
    ['histogram_quantile(0.9, rate(loadstone_latency_seconds[5s]))', 'seconds'],
    ['sum(rate(loadstone_operations_total{kind="a_seconds"}[5s]))', 'rate'],
    ['rate(a_total[5s]) / rate(b_total[5s])', 'ratio'],
    ['histogram_count(rate(loadstone_latency_seconds[5s]))', 'rate'],
    ['loadstone_worker_memory_bytes', 'bytes'],
    ['loadstone_connections', 'plain'],
    ['increase(loadstone_operations_total[5s])', 'plain'],
  ])('reads the unit of %s', (q, unit) => expect(unitOf(q)).toBe(unit));
  it('takes no unit that there is not', () => {
    const q = 'loadstone_worker_memory_bytes';
    expect(['', 'constructor', 'kelvin', 'plain'].map((u) => effectiveUnit(u, q))).toEqual([
      'bytes',
      'bytes',
      'bytes',
      'plain',
    ]);
  });
  it.each([
    ['sum(rate(loadstone_latency_seconds[5s]))', 'observations per second'],
    ['irate (loadstone_latency_seconds[5s])', 'observations per second'],
    ['increase(loadstone_latency_seconds{a="rate("}[5s]) # rate(', 'observations'],
    ['loadstone_latency_seconds', 'observations'],
  ])('says what a heat map of %s counts', (q, counted) => expect(bucketUnits(q).counted).toBe(counted));
  it('reads an event of many pieces once', async () => {
    const n = 2000;
    const body = new ReadableStream<Uint8Array>({
      start(c) {
        const of = (text: string) => c.enqueue(new TextEncoder().encode(text));
        of('data: ');
        for (let i = 0; i < n; i++) of('0123456789');
        of('\n');
        of('\ndata: next\n\n');
        c.close();
      },
    });
    const searched = { characters: 0 };
    // eslint-disable-next-line @typescript-eslint/unbound-method -- the spies call them with their string
    const { split, indexOf } = String.prototype;
    const spies = [
      vi.spyOn(String.prototype, 'split').mockImplementation(function (this: string, ...a) {
        searched.characters += this.length;
        return split.apply(this, a);
      }),
      vi.spyOn(String.prototype, 'indexOf').mockImplementation(function (this: string, ...a) {
        searched.characters += this.length;
        return indexOf.apply(this, a);
      }),
    ];
    const seen: string[] = [];
    for await (const e of serverSentEvents(body)) seen.push(e.data);
    spies.forEach((s) => s.mockRestore());
    expect(seen).toEqual(['0123456789'.repeat(n), 'next']);
    expect(searched.characters).toBeLessThan(5 * n * 10);
  });
  it('reads events that come in pieces', async () => {
    const text = 'event: plan\ndata: {"a":"é"}\n\nevent: result\ndata: 1\n\nevent: cut';
    const bytes = new TextEncoder().encode(text);
    const body = new ReadableStream<Uint8Array>({
      start(c) {
        for (const b of bytes) c.enqueue(Uint8Array.of(b));
        c.close();
      },
    });
    const seen: unknown[] = [];
    for await (const e of serverSentEvents(body)) seen.push(e);
    expect(seen).toEqual([
      { event: 'plan', data: '{"a":"é"}' },
      { event: 'result', data: '1' },
    ]);
  });
});

describe('the runs before one', () => {
  const run = (run_id: string, test_name: string, start_time: string | null, template_id: string | null = null) =>
    ({ run_id, test_name, start_time, template_id }) as Run;
  const now = run('N', 'mix', '2026-11-23T10:00:00.5Z');
  const asked: EarlierRunsQuery[] = [];
  const pages =
    (...all: Run[][]) =>
    (q: EarlierRunsQuery) => {
      asked.push(q);
      const i = Number(q.cursor ?? 0);
      return Promise.resolve({ runs: all[i] ?? [], next_cursor: i + 1 < all.length ? `${i + 1}` : undefined });
    };
  const ids = (runs: Run[]) => runs.map((r) => r.run_id);

  it('have its name, not a part of it, and began before it', async () => {
    const first = [
      run('L', 'mix-large', '2026-11-23T09:00:00Z'),
      run('A', 'mix', '2026-11-23T10:00:00Z'),
      run('W', 'mix', '2026-11-23T11:00:00Z'),
      run('P', 'mix', null),
      run('X', 'mix', '2026-11-23T08:00:00Z'),
    ];
    const second = ['B', 'C', 'D'].map((id) => run(id, 'mix', '2026-11-20T10:00:00Z'));
    expect(ids(await earlierRuns(now, 3, ['N', 'X'], pages(first, second)))).toEqual(['A', 'B', 'C']);
    expect(asked[0]).toMatchObject({ search: 'mix', until: '2026-11-23T10:00:00.5Z', status: ['COMPLETED'] });
  });
  it('have its template, whatever their names are', async () => {
    const of = { ...now, template_id: 'T' };
    const some = [run('A', 'other', '2026-11-22T10:00:00Z', 'T'), run('B', 'mix', '2026-11-22T09:00:00Z')];
    asked.length = 0;
    expect(ids(await earlierRuns(of, 10, [], pages(some)))).toEqual(['A']);
    expect(asked).toEqual([expect.objectContaining({ template_id: 'T' })]);
  });
  it('are not looked for without end', async () => {
    asked.length = 0;
    expect(await earlierRuns(now, 10, [], pages(...Array.from({ length: 99 }, () => [])))).toEqual([]);
    expect(asked).toHaveLength(10);
    expect(await earlierRuns(run('Z', 'mix', null), 10, [], pages([now]))).toEqual([]);
  });
});
