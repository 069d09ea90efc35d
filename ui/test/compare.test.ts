import { describe, expect, it } from 'vitest';
import {
  aligned,
  asCsv,
  type Compared,
  columnsOf,
  differing,
  difference,
  interval,
  markdown,
  runsFrom,
  shapes,
} from '../src/compare/model';
import type { Metric, Point, RunDetail } from '../src/api/types';

const metric = (m: Partial<Metric>): Metric => ({
  name: 'qps',
  unit: '',
  a: 1,
  b: 1,
  difference: 0,
  low: 0,
  high: 0,
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
    expect(differing([a, b])).toEqual([{ field: 'workload.seed', values: ['1', '2'] }]);
    expect(differing([a, run('c')])).toEqual([]);
    // A run that has no figures yet differs in none of them.
    expect(differing([a, run('d', { summary: null })])).toEqual([]);
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
          notes: [],
          same_run: false,
          simulated: true,
          stand_in: { a: '', b: '' },
        },
      },
    ];
    const md = markdown(list, 5);
    expect(md).toContain('| A one \\| two | 1.00 k/s |');
    expect(md).toContain('| B three (simulated) | 1.00 k/s (−7.0 %, worse) |');
    expect(md.split('\n')[0]!.split('|')).toHaveLength(md.split('\n')[3]!.split('|').length);
    const rows = asCsv(list).trim().split('\r\n');
    expect(rows).toHaveLength(1 + 2 * 6);
    expect(rows[7]).toBe('three,b,true,qps,1000,-7,-9,-5,worse');
  });
});
