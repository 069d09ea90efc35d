// Run comparisons of the mock; intervals are invented around the true differences.
import type { Comparison, KindCurves, Metric, PartComparison, Point, Summary } from '../src/api/types';

const metrics: [string, string, boolean, (s: Summary) => number | null | undefined][] = [
  ['qps', 'per second', true, (s) => s.qps],
  ['error_rate', 'fraction', false, (s) => s.errors.rate],
  ['avg_ms', 'ms', false, (s) => s.latency_ms?.avg],
  ['p50_ms', 'ms', false, (s) => s.latency_ms?.p50],
  ['p95_ms', 'ms', false, (s) => s.latency_ms?.p95],
  ['p99_ms', 'ms', false, (s) => s.latency_ms?.p99],
];

export function compare(a: Summary, b: Summary, tolerance: number): Comparison {
  const list = metrics.map(([name, unit, higher, of]): Metric => {
    const [x, y] = [of(a) ?? 0, of(b) ?? 0];
    const isRate = name === 'error_rate';
    const diff = isRate ? y - x : (y / x - 1) * 100;
    const half = isRate ? 0.0004 : name === 'p99_ms' ? 26 : name === 'p95_ms' ? 22 : 17;
    const limit = isRate ? 0.001 : tolerance;
    const verdict =
      Math.abs(diff) >= limit && Math.abs(diff) > half
        ? diff > 0 === higher
          ? 'better'
          : 'worse'
        : Math.abs(diff) + half <= limit
          ? 'same'
          : 'unclear';
    return {
      name,
      unit,
      a: x,
      b: y,
      difference: diff,
      low: diff - half,
      high: diff + half,
      detectable: half,
      more_runs: isRate ? 0 : 4,
      verdict,
      reason: `${diff.toFixed(2)}`,
    };
  });
  const has = (v: Metric['verdict']) => list.some((m) => m.verdict === v);
  return {
    same_run: a.run_id === b.run_id,
    simulated: a.simulated || b.simulated,
    stand_in: { a: '', b: '' },
    unlike:
      a.environment.server_version === b.environment.server_version
        ? []
        : [
            {
              what: 'server version',
              a: a.environment.server_version,
              b: b.environment.server_version,
              judged: true,
            },
          ],
    metrics: list,
    slower_probability: 0.5 + Math.max(-0.4, Math.min(0.4, (list[3]!.difference ?? 0) / 200)),
    verdict: has('worse') ? 'worse' : has('better') ? 'better' : has('unclear') ? 'unclear' : 'same',
    notes: [
      'One run on each side: how much runs of the same system differ here is not known, and taken as usual. Repeat ' +
        'the runs and give several for each side to learn it.',
      ...[a, b]
        .filter((s) => s.validity !== 'VALID')
        .map((s) => `Run ${s.run_id} is ${s.validity}: what its figures show may be the generator's limit.`),
    ],
  };
}

/** compareParts compares each kind and statement. */
export function compareParts(a: Summary, b: Summary, tolerance: number): PartComparison {
  const whole = compare(a, b, tolerance);
  const kinds = Object.keys(a.by_kind ?? {});
  const part = (kind: string, statement_id: string, x: number, y: number) => ({
    kind: kind as PartComparison['kinds'][number]['kind'],
    statement_id,
    in_transaction: false,
    a_operations: x,
    b_operations: y,
    verdict: x && y ? whole.verdict : ('unclear' as const),
    metrics: x && y ? (whole.metrics ?? []) : [],
  });
  const list = kinds.map((k) => part(k, '', a.by_kind?.[k]?.count ?? 0, b.by_kind?.[k]?.count ?? 0));
  return {
    kinds: list,
    statements: list.map((p) => ({ ...p, statement_id: p.kind.toLowerCase() })),
    notes: list.length > 3 ? ['Many figures are compared here; some differ by chance.'] : [],
  };
}

/** kindCurves scales a run's points to its kinds. */
export function kindCurves(run_id: string, points: Point[]): KindCurves {
  const names = [...new Set(points.flatMap((p) => Object.keys(p.qps_by_kind ?? {})))];
  return {
    run_id,
    resolution_seconds: 1,
    elapsed_seconds: points.map((p) => p.elapsed_seconds),
    kinds: names.map((kind, i) => ({
      kind: kind as KindCurves['kinds'][number]['kind'],
      qps: points.map((p) => p.qps_by_kind?.[kind as keyof typeof p.qps_by_kind] ?? 0),
      errors_per_sec: points.map(() => 0),
      p50_ms: points.map((p) => scaled(p.p50_latency_ms, i)),
      p95_ms: points.map((p) => scaled(p.p95_latency_ms, i)),
      p99_ms: points.map((p) => scaled(p.p99_latency_ms, i)),
    })),
  };
}

const scaled = (ms: number | null, i: number) => (ms === null ? null : ms * (0.8 + 0.4 * i));
