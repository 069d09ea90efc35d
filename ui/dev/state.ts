// The mock server's data: it starts with the runs and templates generated here.
import { randomUUID } from 'node:crypto';
import YAML from 'yaml';
import type { Connection, ConnectionUse, MatrixState, Scenario, Template, Token } from '../src/api/types';
import { emptyRun, type Ending, finish, iso, scenario, type ScenarioOptions } from './data';
import { plugins } from './plugins';
import { Live, type RunHolder, type StartOptions } from './live';
import { searchResult } from './search';
import { uploads } from './uploads';

/** A default rule, and the webhook of another. */
const slow = {
  name: 'slow',
  do: 'stop' as const,
  when: `SELECT MAX(p99Ms) AS p99 FROM worker_statistics WHERE phase = 'MEASUREMENT'
WINDOW SLIDING(timestamp, SIZE 10 SEC, ADVANCE BY 1 SEC) HAVING MIN(p99Ms) > 200`,
};
const hook = 'https://hooks.example.com/services/T0/B0/a-very-long-token-of-a-hook-that-nobody-would-read-aloud';

type Members = Omit<MatrixState, 'runs'> & { members: RunHolder[] };

export const runs = new Map<string, RunHolder>();
export const templates = new Map<string, Template>();
export const matrices = new Map<string, Members>();
export const connections = new Map<string, Connection>();
export const tokens = new Map<string, Token>();

export function addTemplate(config: Scenario, source?: string): Template {
  const t = {
    template_id: randomUUID(),
    name: config.name,
    description: config.description,
    config,
    source: source ?? YAML.stringify(config),
    version: 1,
    created_by: 'admin',
    access: { restricted: false },
    created_at: iso(Date.now()),
    updated_at: iso(Date.now() - 3600_000 * templates.size),
  };
  templates.set(t.template_id, t);
  return t;
}

export function addConnection(name: string, dsn: string, builtin = false, description = ''): Connection {
  const c = {
    connection_id: randomUUID(),
    name,
    driver: 'postgres',
    dsn,
    description,
    builtin,
    production: false,
    version: 1,
    access: { restricted: false },
    created_at: iso(Date.now()),
    updated_at: iso(Date.now()),
  };
  connections.set(c.connection_id, c);
  return c;
}

/** addBuiltins adds what every server has. */
export function addBuiltins(): void {
  addConnection(
    'playground',
    'postgres:///playground?host=%2Fdata%2Fpg&user=loadstone',
    true,
    'The built-in Postgres.',
  );
}

export function seed(): void {
  plugins.push(...uploads);
  addConnection(
    'staging',
    'postgres://bench:***@db.staging.example.com:5432/shop?sslmode=verify-full',
    false,
    'Copy of production, refreshed on Sundays.',
  );
  const first = addTemplate(
    scenario('first run', { description: 'A mixed workload on the built-in Postgres, for 20 seconds.' }),
    '# The first run: a mixed workload on the built-in Postgres, for 20 seconds.\n' +
      YAML.stringify(
        scenario('first run', { description: 'A mixed workload on the built-in Postgres, for 20 seconds.' }),
      ),
  );
  const peak = addTemplate(
    scenario('checkout peak', {
      duration: 300,
      warmup: 30,
      thresholds: ['p95_ms < 50', 'error_rate < 0.001', 'qps > 5000'],
      tags: { ticket: 'PERF-1' },
      description: 'What the orders table sees at noon on the last Friday of November.',
    }),
  );
  addTemplate(scenario('insert only', { connections: 32, table: 'events', connection: 'staging' }));
  addTemplate(scenario('watched by rules', { rules: [slow, { ...slow, name: 'told', do: 'webhook', url: hook }] }));
  const now = Date.now();
  const put = (name: string, t: Template | null | undefined, opts: Ending, sc: ScenarioOptions = {}) => {
    const r = finish(
      emptyRun(name, scenario(name, { ...(t?.config && { thresholds: t.config.thresholds ?? undefined }), ...sc }), {
        template_id: t?.template_id,
      }),
      opts,
    );
    runs.set(r.run.run_id, r);
    return r;
  };
  put('first run', first, { seed: 3, start: now - 260_000 });
  put(
    'orders under contention',
    peak,
    { seed: 5, start: now - 3_000_000, errors: 0.0042, degraded: true },
    { duration: 40, thresholds: ['p95_ms < 50', 'error_rate < 0.001'] },
  );
  put('nightly insert', null, {
    seed: 9,
    start: now - 9_000_000,
    status: 'CANCELLED',
    reason: 'User requested cancellation',
    gap: [9, 15],
  });
  put(
    'memory guard',
    null,
    {
      seed: 11,
      start: now - 12_000_000,
      status: 'FAILED',
      reason: 'Guardrail triggered: generator memory was over 90 % for 5 s',
    },
    {
      guardrails: { max_cpu_percent: 85, max_memory_percent: 90, max_p95_ms: 40, hold_seconds: 5 },
      rules: [slow],
    },
  );
  const ruled = put(
    'stopped by a rule',
    null,
    { seed: 12, start: now - 13_000_000, status: 'FAILED', reason: "Rule 'slow' triggered: p99 251.3" },
    { rules: [slow, { ...slow, name: 'told', do: 'webhook', url: hook }] },
  );
  ruled.run.rules = [
    {
      name: 'slow',
      do: 'stop',
      status: 'TRIGGERED',
      failure: '',
      last_at: iso(now - 12_990_000),
      last_row: 'p99 251.3',
      rows_in: 34,
      rows_out: 1,
    },
    {
      name: 'told',
      do: 'webhook',
      status: 'FAILED',
      failure: `NetworkError: 1 row could not be posted: ${hook}: the endpoint answers 404`,
      last_at: iso(now - 12_990_000),
      last_row: 'p99 251.3',
      rows_in: 34,
      rows_out: 1,
    },
  ];
  const search = (name: string, seed: number, start: number, repeat: number) => {
    const sc = scenario(name, { duration: 240, warmup: 5 });
    Object.assign(sc.workload, { load_mode: 'FIND_MAX_CONCURRENCY', repeat });
    sc.find_max = {
      ...sc.find_max,
      enabled: true,
      unit: 'connections',
      start_concurrency: 4,
      concurrency_increment: 8,
      step_duration_seconds: 30,
    };
    const r = finish(emptyRun(name, sc), { seed, start });
    r.summary.find_max = searchResult({ seed, repeat, start });
    runs.set(r.run.run_id, r);
  };
  search('limit of orders', 21, now - 26_000_000, 1);
  search('limit of orders, five times', 22, now - 30_000_000, 5);
  const simulated = put('hybrid table', null, { seed: 31, start: now - 33_000_000 });
  simulated.run.simulated = simulated.summary.simulated = simulated.summary.environment.simulated = true;
  const emulated = put('emulated table', null, { seed: 33, start: now - 34_000_000 });
  for (const of of [emulated.run, emulated.summary, emulated.summary.environment]) of.simulated = of.emulated = true;
  const unrated = put('record lost', null, { seed: 35, start: now - 35_000_000 });
  Object.assign(unrated.summary, { record_partial: true, qps: null });
  for (const part of [...Object.values(unrated.summary.by_kind ?? {}), ...(unrated.summary.by_statement ?? [])])
    part.qps = null;
  put('lost records', null, { seed: 13, start: now - 22_000_000, lost: 1204 });
  for (let i = 0; i < 44; i++)
    put(
      ['first run', 'checkout peak', 'insert only'][i % 3]!,
      [first, peak, null][i % 3],
      { seed: 100 + i, start: now - 86_400_000 - i * 7_200_000, errors: i % 9 === 4 ? 0.003 : 0 },
      { duration: 12 },
    );
  // One workload on three targets: two are done, the last one runs.
  const members = ['standard', 'hybrid', 'postgres'].map((label, i) => {
    const sc = scenario(`table types · ${label}`, {
      duration: i === 2 ? 3600 : 60,
      warmup: 5,
      table: `orders_${label}`,
    });
    sc.target.adapter = label === 'postgres' ? 'postgres' : `snowflake_${label}`;
    const r: RunHolder =
      i === 2 ? create(sc) : finish(emptyRun(sc.name, sc), { seed: 41 + i, start: now - (3 - i) * 90_000 });
    if (i === 2) start(r, { skip: 30 });
    else if (r.summary) r.run.simulated = r.summary.simulated = r.summary.environment.simulated = true;
    runs.set(r.run.run_id, r);
    Object.assign(r.run, { matrix_id: 'm-1', matrix_index: i, matrix_label: label });
    return r;
  });
  matrices.set('m-1', {
    matrix_id: 'm-1',
    name: 'table types',
    labels: ['standard', 'hybrid', 'postgres'],
    stop_on_failure: false,
    status: 'RUNNING',
    start_time: iso(now - 270_000),
    end_time: null,
    created_by: 'admin',
    created_at: iso(now - 270_000),
    members,
  });
  const climbing = scenario('limit, live', { duration: 3600, warmup: 2 });
  Object.assign(climbing.workload, { load_mode: 'FIND_MAX_CONCURRENCY', repeat: 20 });
  start(create(climbing), { skip: 82 });
  const prepared = emptyRun('index rebuild', scenario('index rebuild'), { template_id: first.template_id });
  runs.set(prepared.run_id, { run: prepared, summary: null, plan: null, points: [], logs: [], artifacts: [] });
  const lived = Number(process.env.MOCK_LIVE_SECONDS ?? 96);
  const going = scenario('checkout peak', {
    // Longer than the tests of all pages take on a busy machine, since they open it last.
    duration: Math.max(4 * 3600, 2 * lived),
    warmup: 20,
    thresholds: peak.config.thresholds ?? undefined,
    tags: { ticket: 'PERF-1' },
  });
  // An open loop shows all charts of the page.
  if (process.env.MOCK_LIVE_OPEN) going.workload.load_mode = 'QPS';
  start(create(going, peak.template_id), {
    skip: lived,
    errors: 0.00002,
    workers: Number(process.env.MOCK_LIVE_WORKERS ?? 2),
  });
}

export function create(sc: Scenario, templateId?: string): RunHolder {
  const run = emptyRun(sc.name, sc, { template_id: templateId });
  const r: RunHolder = { run, summary: null, plan: null, points: [], logs: [], artifacts: [] };
  runs.set(run.run_id, r);
  return r;
}

export function start(r: RunHolder, opts: StartOptions = {}): RunHolder {
  r.live = new Live(r, opts);
  return r;
}

/** useOf lists what uses a connection. */
export function useOf(c: Connection): ConnectionUse {
  const mine = [...runs.values()].map((r) => r.run).filter((r) => r.scenario_config.target?.connection === c.name);
  const last = mine.at(-1);
  return {
    templates: [...templates.values()].filter((t) => t.config.target?.connection === c.name),
    sinks: c.name === 'staging' ? ['seconds', 'totals'] : [],
    results: false,
    runs: mine.length,
    last_run: last ? { ...last, run_name: last.test_name } : null,
    worked: last ? { at: last.created_at, by: 'run', run_id: last.run_id, changed_since: false } : null,
  };
}
