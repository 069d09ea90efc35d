// Searches for the limit: climbing, bisecting and confirming against a target with a knee.
import type { Dispersion, FindMaxRepetition, FindMaxResult, FindMaxState, FindMaxStep } from '../src/api/types';
import { random, type Random } from './model';

/** climb returns the steps of one search on a target that serves knee connections without queueing. */
function climb(knee: number, rnd: Random) {
  const levels: [FindMaxStep['stage'], number][] = [];
  for (let n = 4; n <= knee + 8; n += 8) levels.push(['STEPPING', n]);
  let lo = levels.at(-2)![1];
  let hi = levels.at(-1)![1];
  while (hi - lo > 1) {
    const mid = Math.floor((lo + hi) / 2);
    levels.push(['BISECTING', mid]);
    if (mid <= knee) lo = mid;
    else hi = mid;
  }
  levels.push(['CONFIRMING', lo]);
  const steps = levels.map(([stage, n]) => {
    const over = Math.max(0, n - knee);
    const qps = Math.min(n, knee) * 520 * (0.99 + 0.02 * rnd());
    const p95 = 1.9 * (1 + 0.002 * n + 0.31 * over) * (0.98 + 0.04 * rnd());
    return { stage, n, qps, p95, outcome: over > 0 ? ('DEGRADED' as const) : ('STABLE' as const) };
  });
  return { steps, answer: lo, unstable: hi };
}

/** searchResult is a finished search with all steps, optionally repeated. */
export function searchResult({ seed = 4, repeat = 1, knee = 22, start = Date.now() } = {}): FindMaxResult {
  const rnd = random(seed);
  const history: FindMaxStep[] = [];
  const repetitions: (FindMaxRepetition & { level: number })[] = [];
  for (let r = 1; r <= repeat; r++) {
    const found = climb(knee + (r % 3) - 1, rnd);
    const baseline = found.steps[0]!.p95;
    for (const [i, s] of found.steps.entries()) {
      const at = start + history.length * 32_000;
      const before = found.steps[i - 1];
      history.push({
        step_number: history.length + 1,
        repetition: r,
        stage: s.stage,
        total_target_connections: s.n,
        target_qps: null,
        step_start_time: new Date(at).toISOString(),
        step_end_time: new Date(at + 32_000).toISOString(),
        step_duration_seconds: 30,
        total_queries: Math.round(s.qps * 30),
        qps: s.qps,
        p50_latency_ms: s.p95 * 0.52,
        p95_latency_ms: s.p95,
        p99_latency_ms: s.p95 * 1.9,
        error_count: 0,
        dropped_count: 0,
        error_rate: 0,
        qps_vs_prior_pct: before ? (s.qps / before.qps - 1) * 100 : null,
        p95_vs_baseline_pct: (s.p95 / baseline - 1) * 100,
        queue_detected: false,
        outcome: s.outcome,
        stop_reason:
          s.outcome === 'STABLE'
            ? undefined
            : `At ${s.n} connections P95 was ${s.p95.toFixed(2)} ms, ` +
              `${((s.p95 / baseline - 1) * 100).toFixed(0)} % above the baseline of ${baseline.toFixed(2)} ` +
              'ms; 20 % are allowed.',
      });
    }
    const last = found.steps.at(-1)!;
    repetitions.push({
      repetition: r,
      found: true,
      level: found.answer,
      confirmed: true,
      qps: last.qps,
      p50_latency_ms: last.p95 * 0.52,
      p95_latency_ms: last.p95,
      p99_latency_ms: last.p95 * 1.9,
      error_rate: 0,
      baseline_p95_ms: baseline,
      limit: 'DEGRADED',
      first_unstable: found.unstable,
      steps: found.steps.length,
      reason: `The target sustains ${found.answer} connections.`,
    });
  }
  const order = [...repetitions].sort((a, b) => a.level - b.level);
  const middle = order[Math.floor((order.length - 1) / 2)]!;
  const spread = (values: number[]): Dispersion => {
    const s = [...values].sort((a, b) => a - b);
    const mean = s.reduce((a, b) => a + b, 0) / s.length;
    const sd = Math.sqrt(s.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, s.length - 1));
    return {
      median: (s[Math.floor((s.length - 1) / 2)]! + s[Math.floor(s.length / 2)]!) / 2,
      min: s[0]!,
      max: s.at(-1)!,
      cv_pct: s.length > 1 ? (sd / mean) * 100 : null,
    };
  };
  return {
    unit: 'connections',
    found: true,
    max_connections: middle.level,
    max_target_qps: null,
    qps: middle.qps,
    p50_latency_ms: middle.p50_latency_ms,
    p95_latency_ms: middle.p95_latency_ms,
    p99_latency_ms: middle.p99_latency_ms,
    error_rate: middle.error_rate,
    baseline_p95_ms: middle.baseline_p95_ms,
    confirmed: true,
    not_enough_operations: false,
    late_steps: 2,
    hysteresis: { after: middle.first_unstable ?? 0, fails_at: middle.level - 1, recovers_at: 4 },
    limit: 'DEGRADED',
    first_unstable: middle.first_unstable,
    steps: history.length,
    reason:
      (repeat > 1
        ? `${repeat} of ${repeat} searches were finished, and found ${repetitions.map((r) => r.level).join(', ')} ` +
          'connections. The answer is the middle one. '
        : '') +
      'The ' +
      `target sustains ${middle.level} connections. At ${middle.first_unstable} connections P95 was 2.55 ms, ` +
      '33 % above the baseline of 1.91 ms; 20 % are allowed.',
    upper_bound: 90,
    history,
    ...(repeat > 1 && {
      repetitions,
      spread: {
        asked: repeat,
        finished: repeat,
        found: repeat,
        level: spread(repetitions.map((r) => r.level)),
        qps: spread(repetitions.map((r) => r.qps ?? 0)),
      },
    }),
  };
}

/** searchState is a search after some seconds of measurement; each step takes length of them. */
export function searchState(seconds: number, { repeat = 1, length = 6, seed = 4 } = {}): FindMaxState {
  const all = searchResult({ seed, repeat });
  const history = all.history ?? [];
  const done = Math.min(history.length, Math.floor(seconds / length));
  const over = done === history.length;
  const now = history[Math.min(done, history.length - 1)]!;
  const mine = history.slice(0, done).filter((s) => s.repetition === now.repetition);
  const stable = mine.filter((s) => s.outcome === 'STABLE').map((s) => s.total_target_connections);
  const unstable = mine.filter((s) => s.outcome !== 'STABLE').map((s) => s.total_target_connections);
  return {
    unit: 'connections',
    current_step: now.step_number,
    target_workers: now.total_target_connections,
    target_qps: null,
    baseline_p95_ms: mine[0]?.p95_latency_ms ?? null,
    last_updated: null,
    p95_vs_baseline_pct: now.p95_vs_baseline_pct,
    qps_vs_prior_pct: now.qps_vs_prior_pct,
    current_p95_ms: now.p95_latency_ms,
    qps: now.qps,
    error_rate: 0,
    queue_detected: false,
    status: over ? 'DONE' : now.stage,
    step_elapsed_seconds: over ? length : seconds % length,
    step_duration_seconds: length,
    upper_bound: 90,
    last_stable: stable.length ? Math.max(...stable) : null,
    first_unstable: unstable.length ? Math.min(...unstable) : null,
    steps: history.slice(0, done),
    repetition: now.repetition,
    repeat,
    repetitions: repeat > 1 ? (all.repetitions ?? []).filter((r) => r.repetition < now.repetition) : [],
    result: over ? all : null,
  };
}
