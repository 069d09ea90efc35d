import { describe, expect, it } from 'vitest';
import { parseResponse } from '../src/api/safeText';
import { asJson, partsCsv } from '../src/compare/files';
import {
  aligned,
  asCsv,
  columnsOf,
  type Compared,
  difference,
  endedEarly,
  fieldDifferences,
  interval,
  markdown,
  missingVerdict,
  runsFrom,
  shapes,
  visible,
  groupNotes,
} from '../src/compare/model';
import type { Metric, PartComparison, Point, RunDetail } from '../src/api/types';

const metric = (m: Partial<Metric>): Metric => ({
  name: 'qps',
  unit: '',
  a: 1,
  b: 1,
  difference: 0,
  low: 0,
  high: 0,
  detectable: 17.4,
  more_runs: 4,
  verdict: 'same',
  reason: '',
  ...m,
});

function run(id: string, more: Record<string, unknown> = {}, workload: Record<string, unknown> = {}): RunDetail {
  return {
    run_id: id,
    test_name: `run | ${id}`,
    scenario_config: {
      name: id,
      target: { connection: 'x', adapter: 'postgres' },
      workload: { plugin: 'mix', seed: 1, ...workload },
    },
    summary: {
      qps: 1000,
      operations: 10,
      errors: { rate: 0.001 },
      latency_ms: { avg: 1, p50: 0.5, p95: 2, p99: 3 },
      plugins: [],
      validity: 'VALID',
      environment: {
        server_version: '15',
        driver: 'postgres',
        io_engine: 'events',
        hostname: 'h',
        cpus: 2,
        cpu_model: 'm',
        loadstone_version: '1',
        target_is_local: true,
      },
    },
    ...more,
  } as unknown as RunDetail;
}

describe('a run without a verdict', () => {
  const ended = { status: 'COMPLETED', phase: '' };
  it('says what the first one lacks', () => {
    expect(missingVerdict(undefined)).toBeNull(); // it is being read
    expect(missingVerdict(run('a', ended))).toBeNull();
    expect(missingVerdict(null)?.why).toMatch(/could not be loaded/);
    expect(missingVerdict(run('a', { status: 'RUNNING', phase: 'MEASUREMENT', summary: null }))?.word).toBe(
      'no verdict yet',
    );
    expect(missingVerdict(run('a', { status: 'COMPLETED', phase: 'PROCESSING', summary: null }))?.word).toBe(
      'no verdict yet',
    );
    expect(missingVerdict(run('a', { status: 'FAILED', phase: '', summary: null }))?.word).toBe('no verdict');
    expect(missingVerdict(run('a', { status: 'CANCELLED', phase: '', summary: { operations: 0 } }))?.word).toBe(
      'no verdict',
    );
  });
  it('is told from one that broke off', () => {
    expect(endedEarly(run('a', { status: 'FAILED' }))).toBe(true);
    expect(endedEarly(run('a', { status: 'CANCELLED' }))).toBe(true);
    expect(endedEarly(run('a', { status: 'FAILED', summary: { operations: 0 } }))).toBe(false);
    expect(endedEarly(run('a', ended))).toBe(false);
    expect(endedEarly(run('a', { status: 'RUNNING' }))).toBe(false);
  });
});

describe('a comparison', () => {
  it('takes its runs from the address', () => {
    expect(runsFrom('a,b,,a, c')).toEqual(['a', 'b', 'c']);
    expect(runsFrom('1,2,3,4,5,6,7,8,9')).toHaveLength(8);
    expect(runsFrom('')).toEqual([]);
  });
  it('writes differences as people read them', () => {
    expect(difference(metric({ difference: -4.26 }))).toBe('−4.3 %');
    expect(difference(metric({ difference: 12.6 }))).toBe('+13 %');
    expect(difference(metric({ name: 'error_rate', difference: 0.0042 }))).toBe('+0.420 pp');
    expect(interval(metric({ low: -1.2, high: 3 }))).toBe('−1.2 to +3.0');
    expect(interval(metric({ low: null, high: null }))).toBe('');
  });
  it('draws each run from its own measurement, gaps as gaps', () => {
    const at = (s: number, qps: number, phase = 'MEASUREMENT') =>
      ({ timestamp: new Date(s * 1000).toISOString(), qps, phase }) as unknown as Point;
    const got = aligned(
      [
        { points: [at(99, 1, 'WARMUP'), at(101, 10), at(102.2, 20), at(104, 40)], start: 100_000 },
        { points: [at(501, 7)], start: 500_000 },
        { points: null, start: null },
      ],
      (p) => p.qps,
    );
    expect(got.x).toEqual([0, 1, 2, 3, 4]);
    expect(got.values).toEqual([
      [null, 10, 20, null, 40],
      [null, 7, null, null, null],
      [null, null, null, null, null],
    ]);
    expect(aligned([], (p) => p.qps).x).toEqual([]);
  });
  it('puts distributions over the same bins without losing an operation', () => {
    const buckets = (from: number, n: number) =>
      Array.from({ length: n }, (_, i) => ({
        from_ms: from * 1.02 ** i,
        to_ms: from * 1.02 ** (i + 1),
        count: 3 + (i % 5),
      }));
    const s = shapes([buckets(1, 80), buckets(2.03, 100), null], 40)!;
    expect(s.bounds.length).toBe(s.shares[0]!.length + 1);
    for (const i of [0, 1]) expect(s.shares[i]!.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
    expect(s.shares[2]!.every((v) => v === 0)).toBe(true);
    // All of the second run lies above 2 ms.
    expect(s.shares[1]!.filter((_, i) => s.bounds[i + 1]! < 2).every((v) => v === 0)).toBe(true);
    expect(shapes([null, []], 40)).toBeNull();
  });
  it('names what differs, and not what always does', () => {
    const a = run('a');
    const b = run('b', {}, { seed: 2 });
    expect(fieldDifferences([a, b])).toEqual([{ field: 'workload.seed', values: ['1', '2'] }]);
    expect(fieldDifferences([a, run('c')])).toEqual([]);
    // A run that never reached its target does not claim to be elsewhere.
    const of = (id: string, environment: object) => run(id, { summary: { ...a.summary!, environment } });
    const near = of('e', {
      driver: 'postgres',
      server_version: '15.1',
      target_is_local: true,
      hostname: 'one',
      cpus: 2,
    });
    const lost = of('f', { driver: '', server_version: '', target_is_local: false, hostname: '', cpus: 0 });
    const values = Object.fromEntries(fieldDifferences([near, lost]).map((d) => [d.field, d.values[1]]));
    expect(values).toMatchObject({
      'target on the same machine': 'unknown',
      driver: 'unknown',
      machine: 'unknown',
    });
    const far = of('g', { ...near.summary!.environment, target_is_local: false });
    expect(fieldDifferences([near, far])).toEqual([{ field: 'target on the same machine', values: ['yes', 'no'] }]);
    // A run without figures differs in none of them.
    expect(fieldDifferences([a, run('d', { summary: null })])).toEqual([]);
  });
  it('has a limit only for searches', () => {
    expect(columnsOf([run('a')]).map((c) => c.name)).not.toContain('limit');
    const found = run('s', {
      summary: {
        ...run('s').summary!,
        find_max: { found: true, unit: 'connections', max_connections: 22, max_target_qps: null },
      },
    });
    const col = columnsOf([run('a'), found])[0]!;
    expect([col.format(col.of(found)).value, col.format(col.of(run('a'))).value]).toEqual(['22', '–']);
  });
  it('can be taken elsewhere', () => {
    const list: Compared[] = [
      { label: 'one | two', run: run('a'), against: null },
      {
        label: 'three',
        run: run('b', { simulated: true }),
        against: {
          metrics: [metric({ difference: -7, low: -9, high: -5, verdict: 'worse' })],
          slower_probability: null,
          verdict: 'worse',
          notes: ['Run b is not | steered', 'Run b is not | steered'],
          same_run: false,
          simulated: true,
          stand_in: { a: '', b: '' },
          unlike: [],
        },
      },
    ];
    const md = markdown(list, 5);
    expect(md).toContain('| A one \\| two | 1.00 k/s |');
    expect(md).toContain('| B three (simulated) | 1.00 k/s (−7.0 %, worse) |');
    expect(md.split('\n')[0]!.split('|')).toHaveLength(md.split('\n')[3]!.split('|').length);
    // Caveats are exported too.
    expect(md.split('\n').slice(-2)).toEqual(['- Run B is not \\| steered', '']);
    const rows = asCsv(list).trim().split('\r\n');
    expect(rows).toHaveLength(1 + 2 * 6);
    expect(rows[7]).toBe('three,b,true,qps,1000,-7,-9,-5,worse');
  });
  it('writes kinds and statements that others have named as cells of text', () => {
    const named = (label: string, id: string): Compared => ({ label, run: run(id), against: null });
    const part = (statement_id: string, in_transaction: boolean) => ({
      kind: 'POINT_LOOKUP',
      statement_id,
      in_transaction,
      a_operations: 1,
      b_operations: 2,
      verdict: 'worse',
      metrics: [metric({ a: -1.5, b: null, difference: -7, low: null, high: 1e-9, verdict: 'worse' })],
    });
    // As the page reads it from the server.
    const parts = (names: string[]) =>
      parseResponse(
        JSON.stringify({ kinds: [part('', false)], statements: names.map((n) => part(n, true)), notes: [] }),
      ) as PartComparison;
    const figures = 'qps,-1.5,,-7,,1e-9,worse';
    const text = partsCsv(
      [named('base', 'a'), named(`=HYPERLINK("http://x","y")`, 'b'), named('+cmd|1', 'c'), named('none', 'd')],
      [
        parts(['never']),
        parts(['@SUM(A1)', '-2+3', 'a,"b"\r\n=1', '\u202Egnp.exe', '\uFF1D1']),
        parts(['n'.repeat(10_000)]),
        null,
      ],
    );
    const bad = `"'=HYPERLINK(""http://x"",""y"")",b`;
    expect(text.split('\r\n')).toEqual([
      'run,run_id,kind,statement_id,in_transaction,metric,a,b,difference,low,high,verdict',
      `${bad},POINT_LOOKUP,,false,${figures}`,
      `${bad},POINT_LOOKUP,'@SUM(A1),true,${figures}`,
      `${bad},POINT_LOOKUP,'-2+3,true,${figures}`,
      `${bad},POINT_LOOKUP,"a,""b""\n=1",true,${figures}`,
      `${bad},POINT_LOOKUP,\uFFFDgnp.exe,true,${figures}`,
      `${bad},POINT_LOOKUP,'\uFF1D1,true,${figures}`,
      `'+cmd|1,c,POINT_LOOKUP,,false,${figures}`,
      `'+cmd|1,c,POINT_LOOKUP,${'n'.repeat(10_000)},true,${figures}`,
      '',
    ]);
  });
  it('keeps names as they are in JSON, which nothing computes', () => {
    const list: Compared[] = [
      { label: '=1+1', run: run('a'), against: null },
      { label: 'x'.repeat(10_000), run: run('b'), against: null },
    ];
    const parts = { kinds: [], statements: [], notes: [] } as PartComparison;
    const { tolerance_pct, runs } = JSON.parse(asJson(list, 5, [parts, parts])) as {
      tolerance_pct: number;
      runs: { letter: string; name: string; parts_against_first: unknown }[];
    };
    expect(tolerance_pct).toBe(5);
    expect(runs.map((r) => [r.letter, r.name.length, r.parts_against_first])).toEqual([
      ['A', 4, null],
      ['B', 10_000, parts],
    ]);
    expect(runs[0]!.name).toBe('=1+1');
  });
});

describe('what the runs can show', () => {
  const c = (...metrics: Partial<Metric>[]) => ({ same_run: false, metrics: metrics.map(metric) });
  it('is told of throughput and P95, with the runs that would show the tolerance', () => {
    expect(visible(c({}, { name: 'p95_ms', detectable: 8.25, more_runs: 1 }), 5)).toBe(
      'can show 17 % of throughput, 8.3 % of P95; 4 more runs of each would show 5 %',
    );
    expect(visible(c({ detectable: 2, more_runs: 0 }), 5)).toBe('can show 2.0 % of throughput');
    expect(visible(c({ more_runs: null }), 5)).toBe('can show 17 % of throughput');
    expect(visible(c({ detectable: null }), 5)).toBe('');
    expect(visible({ ...c({}), same_run: true }, 5)).toBe('');
  });
});

describe('notes of several comparisons', () => {
  const ids = ['id-1', 'id-2', 'id-3'];
  const notes = (of: string[][]) =>
    groupNotes(
      of.map((n, i) => ({ notes: n, other: i + 1 })),
      ids,
    );
  it('are stated once, with the runs that they concern', () => {
    expect(
      notes([
        ['Run id-1 is degraded: x.', 'Run id-2 is degraded: x.', 'Run id-2 did not complete.'],
        ['Run id-1 is degraded: x.', 'Run id-3 is degraded: x.'],
      ]),
    ).toEqual(['Each of the runs A, B and C is degraded: x.', 'Run B did not complete.']);
  });
  it('say of the simulated runs alone that they are simulated', () => {
    const all = 'All these figures are simulated: they say nothing about the real database.';
    const mixed = 'The figures of A are simulated, those of B real: y.';
    expect(notes([[all], [mixed]])).toEqual([
      'The figures of A and B are simulated: they say nothing about the real database.',
      'The figures of A are simulated, those of C real: y.',
    ]);
  });
});

describe('a difference of ten times or more', () => {
  const metric = (difference: number, low = difference, high = difference) =>
    ({ name: 'p95_ms', difference, low, high }) as Metric;
  it('is a factor', () => {
    expect(difference(metric(31_900))).toBe('320 ×');
    expect(difference(metric(900))).toBe('10.0 ×');
    expect(interval(metric(31_900, 20_000, 40_000))).toBe('201 × to 401 ×');
  });
  it('is in percent below, and where it is less', () => {
    expect(difference(metric(899))).toBe('+899 %');
    expect(difference(metric(-99.7))).toBe('−100 %');
  });
});
