// A server for developing the page without the real one: node dev/mock.mjs
// [--port 8088] [--empty]. It serves dist, the API and the live socket, under the same
// content policy as the real server. Anything may be typed as a token except "wrong".
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import YAML from 'yaml';
import { emptyRun, finish, iso, plan, plugins, scenario } from './data.mjs';
import { compare } from './compare.mjs';
import { Live } from './live.mjs';
import { searchResult } from './search.mjs';
import { page } from './static.mjs';
import { receive, uploads } from './uploads.mjs';
import { validate } from './validate.mjs';
import { accept, frame } from './ws.mjs';

const { values: flags } = parseArgs({
  options: { port: { type: 'string', default: '8088' }, empty: { type: 'boolean', default: false } },
});
const runs = new Map(); // id → {run, summary, plan, points, logs, artifacts, live}
const templates = new Map();
const matrices = new Map();
const connections = new Map();
const tokens = new Map();
let broken = ''; // a path prefix that answers 503, set by POST /mock/break

function addTemplate(config, source) {
  const t = {
    template_id: randomUUID(),
    name: config.name,
    description: config.description,
    config,
    source: source ?? YAML.stringify(config),
    version: 1,
    created_by: 'admin',
    created_at: iso(Date.now()),
    updated_at: iso(Date.now() - 3600_000 * templates.size),
  };
  templates.set(t.template_id, t);
  return t;
}

function addConnection(name, dsn, builtin = false, description = '') {
  const c = {
    connection_id: randomUUID(),
    name,
    driver: 'postgres',
    dsn,
    description,
    builtin,
    created_at: iso(Date.now()),
    updated_at: iso(Date.now()),
  };
  connections.set(c.connection_id, c);
  return c;
}

addConnection('playground', 'postgres:///playground?host=%2Fdata%2Fpg&user=loadstone', true, 'The built-in Postgres.');
if (!flags.empty) seed();

function plugin(sha) {
  const p = plugins.find((o) => o.sha256 === sha);
  if (!p) throw new Refusal(404, 'not_found', `There is no plugin '${sha}'.`);
  return p;
}

function seed() {
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
  const now = Date.now();
  const put = (name, t, opts, sc = {}) => {
    const r = finish(
      emptyRun(name, scenario(name, { ...(t?.config && { thresholds: t.config.thresholds }), ...sc }), {
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
    { guardrails: { max_cpu_percent: 85, max_memory_percent: 90, max_p95_ms: 40, hold_seconds: 5 } },
  );
  const search = (name, seed, start, repeat) => {
    const sc = scenario(name, { duration: 240, warmup: 5 });
    Object.assign(sc.workload, { load_mode: 'FIND_MAX_CONCURRENCY', repeat });
    sc.find_max = {
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
  Object.assign(unrated.summary, { covered_seconds: 0, qps: 0 });
  put('lost records', null, { seed: 13, start: now - 22_000_000, lost: 1204 });
  for (let i = 0; i < 44; i++)
    put(
      ['first run', 'checkout peak', 'insert only'][i % 3],
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
    const r = i === 2 ? create(sc) : finish(emptyRun(sc.name, sc), { seed: 41 + i, start: now - (3 - i) * 90_000 });
    if (i === 2) start(r, { skip: 30 });
    else r.run.simulated = r.summary.simulated = r.summary.environment.simulated = true;
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
  start(
    create(
      scenario('checkout peak', {
        duration: 300,
        warmup: 20,
        thresholds: peak.config.thresholds,
        tags: { ticket: 'PERF-1' },
      }),
      peak.template_id,
    ),
    { skip: 96, errors: 0.00002 },
  );
}

function create(sc, templateId) {
  const run = emptyRun(sc.name, sc, { template_id: templateId });
  const r = { run, summary: null, plan: null, points: [], logs: [], artifacts: [] };
  runs.set(run.run_id, r);
  return r;
}

function start(r, opts = {}) {
  r.live = new Live(r, opts);
  return r;
}

class Refusal extends Error {
  constructor(status, code, detail, hint = '', errors = []) {
    super(detail);
    Object.assign(this, { status, code, detail, hint, errors });
  }
}
const missing = (what) => new Refusal(404, 'not_found', `There is no such ${what}.`, 'Perhaps it was deleted.');

function row(r) {
  const s = r.summary;
  return {
    ...r.run,
    qps: s?.qps ?? null,
    p50_ms: s?.latency_ms?.p50 ?? null,
    p95_ms: s?.latency_ms?.p95 ?? r.live?.payload?.latency.p95 ?? null,
    p99_ms: s?.latency_ms?.p99 ?? null,
    error_rate: s?.errors.rate ?? null,
    validity: s?.validity ?? null,
    passed: s?.thresholds?.length ? s.passed : null,
  };
}

function listRuns(q) {
  const statuses = (q.get('status') ?? '').split(',').filter(Boolean);
  const text = (q.get('search') ?? '').toLowerCase();
  const since = q.get('since') ? Date.parse(q.get('since')) : 0;
  const all = [...runs.values()]
    .filter((r) => !statuses.length || statuses.includes(r.run.status))
    .filter((r) => r.run.test_name.toLowerCase().includes(text))
    .filter((r) => !q.get('template_id') || r.run.template_id === q.get('template_id'))
    .filter((r) => Date.parse(r.run.created_at) >= since)
    .filter((r) =>
      q.getAll('tag').every((t) => `${t.split(':')[0]}:${r.run.scenario_config.tags?.[t.split(':')[0]]}` === t),
    )
    .sort((a, b) => Date.parse(b.run.created_at) - Date.parse(a.run.created_at));
  const from = Number(q.get('cursor') ?? 0);
  const limit = Number(q.get('limit') ?? 50);
  return {
    runs: all.slice(from, from + limit).map(row),
    next_cursor: from + limit < all.length ? String(from + limit) : undefined,
    total: all.length,
  };
}

/** Two halves of a finished run's figures, one for each run worker. */
function workersOf(r) {
  const s = r.summary;
  if (!s) return [];
  return [0, 1].map((i) => ({
    test_id: `${r.run.run_id}-${i}`,
    worker_id: `worker-${i}`,
    worker_group_id: i,
    status: r.run.status,
    figures: { ...s, qps: s.qps * (i ? 0.51 : 0.49), operations: Math.round(s.operations / 2) },
  }));
}

function workerPoints(r) {
  return r.points.flatMap((p) =>
    [0, 1].map((i) => ({
      timestamp: p.timestamp,
      elapsed_seconds: p.elapsed_seconds,
      worker_id: `worker-${i}`,
      phase: p.phase,
      qps: p.qps * (i ? 0.51 : 0.49),
      p95_latency_ms: p.p95_latency_ms,
    })),
  );
}

function detail(r) {
  return {
    ...r.run,
    summary: r.summary,
    simulated: r.summary?.simulated,
    plan: r.plan,
    workers: workersOf(r),
    artifacts: r.artifacts,
    events: [],
    enrichment: { status: 'SKIPPED', ratio: null },
    live: r.live?.payload ?? null,
  };
}

function scenarioOf(b) {
  if (b.template_id) {
    const t = templates.get(b.template_id);
    if (!t) throw missing('template');
    return [t.config, t.template_id];
  }
  const v = validate(b.source ? { source: b.source } : { config: b.scenario });
  if (!v.valid) throw new Refusal(422, 'invalid', 'The template has a field that cannot be used.', '', v.errors);
  return [v.config];
}

function saveTemplate(b, old) {
  const v = validate(b);
  if (!v.valid)
    throw new Refusal(422, 'invalid', `The template has ${v.errors.length} fields that cannot be used.`, '', v.errors);
  if (old && b.version !== old.version)
    throw new Refusal(
      409,
      'conflict',
      'Somebody has saved this template since you opened it.',
      'Load the saved version and make your change again.',
    );
  if ([...templates.values()].some((t) => t.name === v.config.name && t !== old))
    throw new Refusal(
      409,
      'name_taken',
      `There is a template named “${v.config.name}” already.`,
      'Choose another name.',
      [{ field: 'name', message: 'is taken', hint: 'choose another name' }],
    );
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

async function checkDsn(dsn) {
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
    server: { version: '15.14', database: 'shop', user: 'bench', local: false, max_connections: 100 },
    round_trip_ms: 1.84,
  };
}

const need = (map, id, what) => {
  const x = map.get(id);
  if (!x) throw missing(what);
  return x;
};

function matrixOf(id) {
  const { members, ...m } = need(matrices, id, 'matrix');
  if (m.status === 'CANCELLING' && members.every((r) => !r.live)) m.status = matrices.get(id).status = 'CANCELLED';
  return { ...m, runs: members.map((r) => ({ ...row(r), simulated: r.run.simulated })) };
}

const routes = [
  ['POST', /^\/mock\/break$/, (_m, b) => ((broken = b.prefix ?? ''), {})],
  ['GET', /^\/mock\/sockets$/, () => ({ cut: cutSockets() })],
  [
    'POST',
    /^\/api\/auth\/signin$/,
    (_m, b, _q, res) => {
      if (b.token === 'wrong')
        throw new Refusal(
          401,
          'unauthorized',
          'This sign-in link has been used or has expired.',
          'Restart loadstone serve for a new one.',
        );
      res.setHeader('Set-Cookie', 'loadstone_session=mock; HttpOnly; SameSite=Strict; Path=/');
      return { user: { user_id: 'u1', name: 'admin', role: 'admin' } };
    },
  ],
  [
    'POST',
    /^\/api\/auth\/signout$/,
    (_m, _b, _q, res) => (res.setHeader('Set-Cookie', 'loadstone_session=; Max-Age=0; Path=/'), null),
  ],
  ['GET', /^\/api\/auth\/me$/, () => ({ user: { user_id: 'u1', name: 'admin', role: 'admin' }, token: {} })],
  ['GET', /^\/api\/auth\/tokens$/, () => ({ tokens: [...tokens.values()] })],
  [
    'POST',
    /^\/api\/auth\/tokens$/,
    (_m, b) => {
      const t = {
        token_id: randomUUID(),
        user_id: 'u1',
        kind: 'api',
        name: b.name,
        scope: b.scope ?? 'write',
        expires_at: b.expires_in_days ? iso(Date.now() + b.expires_in_days * 864e5) : null,
        last_used_at: null,
        created_at: iso(Date.now()),
      };
      tokens.set(t.token_id, t);
      return { ...t, secret: `lst_${randomUUID().replaceAll('-', '')}` };
    },
  ],
  ['DELETE', /^\/api\/auth\/tokens\/([^/]+)$/, ([, id]) => (tokens.delete(id), null)],
  [
    'GET',
    /^\/api\/info$/,
    () => ({
      version: '0.1.0',
      go_version: 'go1.26.0',
      started_at: iso(Date.now() - 7200_000),
      data_dir_free_bytes: 81_233_412_096,
      control_store: 'embedded',
      playground: true,
      nodes: 1,
    }),
  ],
  ['GET', /^\/api\/templates$/, () => ({ templates: [...templates.values()] })],
  ['POST', /^\/api\/templates$/, (_m, b) => saveTemplate(b)],
  ['POST', /^\/api\/templates\/validate$/, (_m, b) => validate(b)],
  ['GET', /^\/api\/templates\/([^/]+)$/, ([, id]) => need(templates, id, 'template')],
  ['PUT', /^\/api\/templates\/([^/]+)$/, ([, id], b) => saveTemplate(b, need(templates, id, 'template'))],
  ['DELETE', /^\/api\/templates\/([^/]+)$/, ([, id]) => (templates.delete(id), null)],
  [
    'POST',
    /^\/api\/runs$/,
    (_m, b) => {
      const [sc, t] = scenarioOf(b);
      const r = create(sc, t);
      if (b.start) start(r);
      return r.run;
    },
  ],
  [
    'POST',
    /^\/api\/preflight$/,
    (_m, b) => {
      scenarioOf(b);
      return {
        ok: false,
        checks: [
          { name: 'plugins', outcome: 'ok', message: 'mix 1.0.0 drives postgres 1.0.0; the parameters are valid.' },
          { name: 'connection', outcome: 'ok', message: 'playground answers, version 15.14, as loadstone.' },
          {
            name: 'capacity',
            outcome: 'warning',
            message: '16 connections are close to the 20 that the target allows.',
            fix: 'lower them, or raise the limit of the database',
          },
          {
            name: 'privileges',
            outcome: 'failed',
            message:
              'The role BENCH is not granted UPDATE and DELETE on the table "LOADSTONE"."PUBLIC"."ORDERS", and the run\'s operations need them.',
            fix: 'GRANT UPDATE, DELETE ON TABLE "LOADSTONE"."PUBLIC"."ORDERS" TO ROLE "BENCH"',
          },
          {
            name: 'privileges',
            outcome: 'warning',
            message:
              'The role BENCH may have CREATE TABLE in the schema "LOADSTONE"."PUBLIC" only through the role LOADER.',
            fix: 'to be certain: GRANT CREATE TABLE ON SCHEMA "LOADSTONE"."PUBLIC" TO ROLE "BENCH"',
          },
          { name: 'statements', outcome: 'ok', message: '4 statements are frozen; nothing else can be executed.' },
        ],
        plan,
        server: null,
        creates: [{ name: 'orders', rows: 100000, drops: false }],
      };
    },
  ],
  ['GET', /^\/api\/runs$/, (_m, _b, q) => listRuns(q)],
  ['GET', /^\/api\/runs\/([^/]+)$/, ([, id]) => detail(need(runs, id, 'run'))],
  ['DELETE', /^\/api\/runs\/([^/]+)$/, ([, id]) => (runs.delete(id), null)],
  ['POST', /^\/api\/runs\/([^/]+)\/start$/, ([, id]) => start(need(runs, id, 'run')).run],
  [
    'POST',
    /^\/api\/runs\/([^/]+)\/stop$/,
    ([, id]) => {
      const r = need(runs, id, 'run');
      if (r.live) r.live.stop();
      else
        Object.assign(r.run, {
          status: 'CANCELLED',
          phase: '',
          cancellation_reason: 'User requested cancellation',
          end_time: iso(Date.now()),
        });
      return r.run;
    },
  ],
  [
    'GET',
    /^\/api\/runs\/([^/]+)\/timeseries$/,
    ([, id], _b, q) => {
      const r = need(runs, id, 'run');
      return { resolution_seconds: 1, points: q.get('worker_id') ? workerPoints(r) : r.points };
    },
  ],
  [
    'GET',
    /^\/api\/runs\/([^/]+)\/logs$/,
    ([, id], _b, q) => {
      const logs = need(runs, id, 'run').logs.filter((l) => l.seq > Number(q.get('after') ?? 0));
      return { logs, last_seq: logs.at(-1)?.seq ?? 0 };
    },
  ],
  ['GET', /^\/api\/runs\/([^/]+)\/summary$/, ([, id]) => need(runs, id, 'run').summary ?? {}],
  ['GET', /^\/api\/matrices\/([^/]+)$/, ([, id]) => matrixOf(id)],
  [
    'POST',
    /^\/api\/matrices\/([^/]+)\/stop$/,
    ([, id]) => {
      const m = need(matrices, id, 'matrix');
      m.status = 'CANCELLING';
      m.members.forEach((r) => r.live?.stop());
      return matrixOf(id);
    },
  ],
  [
    'GET',
    /^\/api\/compare$/,
    (_m, _b, q) => {
      const [a, b] = ['a', 'b'].map((side) => need(runs, q.get(side), 'run'));
      if (!a.summary || !b.summary) throw new Refusal(409, 'conflict', 'A run has no figures yet.', 'wait for its end');
      return compare(a.summary, b.summary, Number(q.get('tolerance_pct') ?? 5));
    },
  ],
  ['GET', /^\/api\/connections$/, () => ({ connections: [...connections.values()] })],
  [
    'POST',
    /^\/api\/connections$/,
    (_m, b) => addConnection(b.name, b.dsn.replace(/:[^:@/]+@/, ':***@'), false, b.description),
  ],
  ['POST', /^\/api\/connections\/test$/, (_m, b) => checkDsn(b.dsn)],
  ['POST', /^\/api\/connections\/([^/]+)\/test$/, ([, id]) => checkDsn(need(connections, id, 'connection').dsn)],
  [
    'PUT',
    /^\/api\/connections\/([^/]+)$/,
    ([, id], b) =>
      Object.assign(need(connections, id, 'connection'), { ...b, dsn: b.dsn.replace(/:[^:@/]+@/, ':***@') }),
  ],
  [
    'DELETE',
    /^\/api\/connections\/([^/]+)$/,
    ([, id]) => {
      const c = need(connections, id, 'connection');
      if ([...templates.values()].some((t) => t.config.target.connection === c.name))
        throw new Refusal(
          409,
          'conflict',
          `Connection “${c.name}” is used by a template.`,
          'Change the template first.',
        );
      connections.delete(id);
      return null;
    },
  ],
  [
    'GET',
    /^\/api\/plugins$/,
    () => ({ plugins: plugins.map((p) => ({ ...p, manifest: { ...p.manifest, statements: undefined } })) }),
  ],
  ['GET', /^\/api\/plugins\/([^/]+)$/, ([, sha]) => plugin(sha)],
  ['POST', /^\/api\/plugins$/, (_m, file) => receive(plugins, file, Refusal)],
  [
    'POST',
    /^\/api\/plugins\/([^/]+)\/(enable|disable)$/,
    ([, sha, verb]) =>
      Object.assign(plugin(sha), {
        enabled: verb === 'enable',
        state: `${verb}d`,
        enabled_by: 'admin',
        enabled_at: iso(Date.now()),
      }),
  ],
  [
    'DELETE',
    /^\/api\/plugins\/([^/]+)$/,
    ([, sha]) => {
      const p = plugin(sha);
      if (p.templates.length)
        throw new Refusal(
          409,
          'conflict',
          `A template uses the plugin ${p.name}@${p.version}: "${p.templates[0].name}".`,
          'Change the template to another plugin or version, or delete it.',
        );
      plugins.splice(plugins.indexOf(p), 1);
      return null;
    },
  ],
];

const server = createServer(async (req, res) => {
  const url = new URL(req.url, 'http://mock');
  const isApi = url.pathname.startsWith('/api') || url.pathname.startsWith('/mock');
  if (!isApi) return page(url.pathname, res);
  let text = '';
  for await (const chunk of req) text += chunk;
  try {
    if (broken && url.pathname.startsWith(broken))
      throw new Refusal(503, 'unavailable', 'The control store is away.', 'It is tried again; nothing is lost.');
    if (
      !url.pathname.startsWith('/api/auth/signin') &&
      isApi &&
      !url.pathname.startsWith('/mock') &&
      !/loadstone_session=mock/.test(req.headers.cookie ?? '')
    )
      throw new Refusal(401, 'unauthorized', 'You are not signed in.', 'Open the sign-in link.');
    for (const [method, pattern, handle] of routes) {
      const m = pattern.exec(url.pathname);
      if (!m || method !== req.method) continue;
      const given = /json/.test(req.headers['content-type'] ?? '') && text ? JSON.parse(text) : text || {};
      const out = await handle(m, given, url.searchParams, res);
      if (out === null) return res.writeHead(204).end();
      return res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(out));
    }
    throw new Refusal(404, 'not_found', `There is nothing at ${url.pathname}.`);
  } catch (err) {
    const status = err.status ?? 500;
    if (status === 500) console.error(err);
    res.writeHead(status, { 'Content-Type': 'application/problem+json' }).end(
      JSON.stringify({
        type: `urn:loadstone:problem:${err.code}`,
        status,
        detail: err.detail ?? String(err),
        code: err.code ?? 'internal',
        hint: err.hint,
        errors: err.errors,
      }),
    );
  }
});

const sockets = new Set();
function cutSockets() {
  const n = sockets.size;
  for (const s of sockets) s.destroy();
  return n;
}

server.on('upgrade', (req, socket) => {
  const id = /^\/ws\/(?:runs|test)\/([^/?]+)/.exec(req.url)?.[1];
  const live = runs.get(id)?.live;
  if (!live || (broken && '/ws'.startsWith(broken))) return socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept(req.headers['sec-websocket-key'])}\r\n\r\n`,
  );
  sockets.add(socket);
  const off = live.subscribe(
    (p) => socket.write(frame(1, Buffer.from(JSON.stringify({ event: 'RUN_UPDATE', data: p })))),
    () => socket.end(frame(8, Buffer.from([0x03, 0xe8]))),
  );
  const gone = () => {
    sockets.delete(socket);
    off();
  };
  socket.on('close', gone).on('error', gone).resume();
});

server.listen(Number(flags.port), '127.0.0.1', () =>
  console.log(`mock on http://127.0.0.1:${server.address().port}/signin?token=mock`),
);
