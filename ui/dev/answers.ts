// Responses of the mock server, in the real server's types.
import type {
  ConnectionCheck,
  MatrixState,
  Plugin,
  RunCreateBody,
  RunDetail,
  RunList,
  RunResult,
  RunRow,
  Scenario,
  Template,
  TemplateInput,
  WorkerPoint,
} from '../src/api/types';
import { iso, notEnriched } from './data';
import { plugins } from './plugins';
import type { RunHolder } from './live';
import { Refusal } from './refusal';
import { addTemplate, matrices, runs, templates } from './state';
import { validate } from './validate';

/** plugin finds a plugin by hash. */
export function plugin(sha: string | undefined): Plugin {
  const p = plugins.find((o) => o.sha256 === sha);
  if (!p) throw new Refusal(404, 'not_found', `There is no plugin '${sha}'.`);
  return p;
}

const missing = (what: string) => new Refusal(404, 'not_found', `There is no such ${what}.`, 'Perhaps it was deleted.');

function row(r: RunHolder): RunRow {
  const s = r.summary;
  return {
    ...r.run,
    simulated: r.run.simulated ?? s?.simulated ?? false,
    emulated: r.run.emulated ?? s?.emulated ?? false,
    qps: s?.qps ?? null,
    p50_ms: s?.latency_ms?.p50 ?? null,
    p95_ms: s?.latency_ms?.p95 ?? r.live?.payload?.latency.p95 ?? null,
    p99_ms: s?.latency_ms?.p99 ?? null,
    error_rate: s?.errors.rate ?? null,
    measured_seconds: s?.duration_seconds ?? null,
    validity: s?.validity ?? null,
    passed: s?.thresholds?.length ? s.passed : null,
    failed_thresholds: s?.thresholds?.filter((t) => !t.passed).length ?? 0,
  };
}

/** sorts are the sort keys of the run list; null where a run has no figure. */
const sorts: Record<string, (r: RunRow) => number | string | null> = {
  name: (r) => r.test_name.toLowerCase(),
  status: (r) => r.status,
  validity: (r) => r.validity ?? null,
  created_by: (r) => r.created_by ?? null,
  qps: (r) => r.qps,
  p50_ms: (r) => r.p50_ms,
  p95_ms: (r) => r.p95_ms,
  p99_ms: (r) => r.p99_ms,
  error_rate: (r) => r.error_rate,
  total_ops: (r) => r.total_ops,
  connections: (r) => r.scenario_config.workload.concurrent_connections,
  ended: (r) => (r.end_time ? Date.parse(r.end_time) : null),
  length: (r) => (r.start_time && r.end_time ? Date.parse(r.end_time) - Date.parse(r.start_time) : null),
  created: (r) => Date.parse(r.created_at ?? ''),
};

/** inOrder sorts runs, newest first by default; runs without the figure come last. */
function inOrder(rows: RunRow[], q: URLSearchParams): RunRow[] {
  const of = sorts[q.get('sort') ?? 'created'];
  if (!of) throw new Refusal(422, 'invalid', 'Runs are in no such order.');
  const way = q.get('order') === 'asc' ? 1 : -1;
  return rows.toSorted((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return x < y ? -way : x > y ? way : 0;
  });
}

export function listRuns(q: URLSearchParams): RunList {
  const statuses = (q.get('status') ?? '').split(',').filter(Boolean);
  const text = (q.get('search') ?? '').toLowerCase();
  const since = Date.parse(q.get('since') ?? '') || 0;
  const all = [...runs.values()]
    .filter((r) => !statuses.length || statuses.includes(r.run.status))
    .filter((r) => r.run.test_name.toLowerCase().includes(text))
    .filter((r) => !q.get('template_id') || r.run.template_id === q.get('template_id'))
    .filter((r) => Date.parse(r.run.created_at ?? '') >= since)
    .filter((r) =>
      q.getAll('tag').every((t) => `${t.split(':')[0]}:${r.run.scenario_config.tags?.[t.split(':')[0]!]}` === t),
    );
  if (q.get('latest_of_template') === 'true') {
    const newest = new Map<string, RunHolder>();
    for (const r of all) {
      const before = newest.get(r.run.template_id ?? '');
      if (!before || (r.run.created_at ?? '') > (before.run.created_at ?? '')) newest.set(r.run.template_id ?? '', r);
    }
    newest.delete('');
    all.splice(0, all.length, ...newest.values());
  }
  const from = Number(q.get('cursor') ?? 0);
  const limit = Number(q.get('limit') ?? 50);
  return {
    runs: inOrder(all.map(row), q).slice(from, from + limit),
    next_cursor: from + limit < all.length ? String(from + limit) : undefined,
    total: all.length,
  };
}

/** workersOf splits a finished run's figures between two run workers. */
function workersOf(r: RunHolder): RunResult[] {
  const s = r.summary;
  if (!s) return [];
  return [0, 1].map((i) => ({
    test_id: `${r.run.run_id}-${i}`,
    worker_id: `worker-${i}`,
    worker_group_id: i,
    run_id: r.run.run_id,
    test_name: r.run.test_name,
    enrichment_status: '',
    environment: null,
    find_max_result: null,
    passed: null,
    plan: null,
    thresholds: null,
    validity: null,
    start_time: r.run.start_time,
    end_time: r.run.end_time,
    created_at: r.run.created_at,
    updated_at: r.run.updated_at,
    status: r.run.status,
    figures: {
      ...s,
      beginning: {
        node_id: i ? 'bench-02-7bbc' : 'bench-01-5ccd',
        began_at: r.run.warmup_start_time,
        start_late_ms: i ? 3.4 : 0,
        clock_error_ms: i ? null : 0.21,
      },
      qps: (s.qps ?? 0) * (i ? 0.51 : 0.49),
      operations: Math.round(s.operations / 2),
    },
  }));
}

export function workerPoints(r: RunHolder): WorkerPoint[] {
  const workers = r.workers ?? 2;
  return r.points.flatMap((p) =>
    Array.from({ length: workers }, (_, i) => ({
      timestamp: p.timestamp,
      elapsed_seconds: p.elapsed_seconds,
      worker_id: `worker-${i}`,
      phase: p.phase,
      qps: (p.qps / workers) * (i ? 1.02 : 0.98),
      p50_latency_ms: p.p50_latency_ms,
      p95_latency_ms: p.p95_latency_ms,
      p99_latency_ms: p.p99_latency_ms,
      total_queries: Math.round(p.total_queries / workers),
      error_count: 0,
      active_connections: p.active_connections / workers,
      target_connections: p.target_connections / workers,
    })),
  );
}

export function detail(r: RunHolder): RunDetail {
  return {
    ...r.run,
    summary: r.summary,
    simulated: r.summary?.simulated ?? false,
    emulated: r.summary?.emulated ?? false,
    find_max: null,
    warehouse: null,
    artifacts_total: r.artifacts.length,
    events_total: 0,
    load_changes: [],
    plan: r.plan,
    workers: workersOf(r),
    artifacts: r.artifacts,
    events: [],
    enrichment: notEnriched('SKIPPED'),
    live: r.live?.payload ?? null,
  };
}

export function scenarioOf(b: RunCreateBody): [Scenario, string?] {
  if (b.template_id) {
    const t = templates.get(b.template_id);
    if (!t) throw missing('template');
    return [t.config, t.template_id];
  }
  const v = validate(b.source ? { source: b.source } : { config: b.scenario });
  if (!v.config) throw new Refusal(422, 'invalid', 'The template has a field that cannot be used.', '', v.errors ?? []);
  return [v.config];
}

export function saveTemplate(b: TemplateInput & { version?: number }, old?: Template): Template {
  const v = validate(b);
  const name = v.config?.name;
  if (!v.config)
    throw new Refusal(
      422,
      'invalid',
      `The template has ${v.errors?.length} fields that cannot be used.`,
      '',
      v.errors ?? [],
    );
  if (old && b.version !== old.version)
    throw new Refusal(
      409,
      'conflict',
      'Somebody has saved this template since you opened it.',
      'Load the saved version and make your change again.',
    );
  if ([...templates.values()].some((t) => t.name === name && t !== old))
    throw new Refusal(409, 'name_taken', `There is a template named “${name}” already.`, 'Choose another name.', [
      { field: 'name', message: 'is taken', hint: 'choose another name' },
    ]);
  if (!old) return addTemplate(v.config, v.source);
  return Object.assign(old, {
    name: v.config.name,
    description: v.config.description,
    config: v.config,
    source: v.source,
    version: old.version + 1,
    updated_at: iso(Date.now()),
  });
}

export async function checkDsn(dsn: string): Promise<ConnectionCheck> {
  await new Promise((f) => setTimeout(f, 400));
  if (/refused|wrong|nowhere/.test(dsn))
    throw new Refusal(
      422,
      'target',
      'The target refused the connection: password authentication failed for user “bench”.',
      'Check user and password.',
    );
  return {
    ok: true,
    server: {
      version: '15.14',
      database: 'shop',
      user: 'bench',
      local: false,
      max_connections: 100,
      simulated: false,
      emulated: false,
    },
    round_trip_ms: 1.84,
  };
}

export const findOr404 = <T>(map: Map<string, T>, id: string | null | undefined, what: string): T => {
  const x = map.get(id ?? '');
  if (!x) throw missing(what);
  return x;
};

export function matrixOf(id: string | undefined): MatrixState {
  const stored = findOr404(matrices, id, 'matrix');
  const { members, ...m } = stored;
  if (m.status === 'CANCELLING' && members.every((r) => !r.live)) m.status = stored.status = 'CANCELLED';
  return { ...m, runs: members.map(row) };
}
