// A server for developing the page without the real one: npm run mock [-- --port 8088] [--empty]. It serves dist, the
// API and the live socket, under the same content policy as the real server. Any token works except "wrong".
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { parseArgs } from 'node:util';
import type {
  ConnectionInput,
  NodeTokenInputBody,
  RunCreateBody,
  TemplateInput,
  Token,
  TokenInputBody,
  User,
} from '../src/api/types';
import {
  checkDsn,
  detail,
  findOr404,
  listRuns,
  matrixOf,
  plugin,
  saveTemplate,
  scenarioOf,
  workerPoints,
} from './answers';
import { compare, compareParts, kindCurves } from './compare';
import { iso, relations } from './data';
import { plan, plugins } from './plugins';
import { endNodeToken, listNodes, makeNodeToken, nodeEvents, nodeTokens, setDesiredState, setNodes } from './nodes';
import { exploreRoutes } from './explore';
import { extraRoutes } from './extras';
import { failureRoutes } from './failures';
import { noteRoutes } from './runNotes';
import { notificationRoutes, seedNotifications } from './notifications';
import { prices } from './prices';
import { Refusal } from './refusal';
import { retentionRoutes } from './retention';
import { scheduleRoutes, seedSchedules } from './schedules';
import {
  addBuiltins,
  addConnection,
  connections,
  create,
  matrices,
  runs,
  seed,
  start,
  templates,
  tokens,
  useOf,
} from './state';
import { page } from './static';
import { streamRoutes } from './streams';
import { queryRoutes, tableRoutes } from './tables';
import { receive } from './uploads';
import { validate } from './validate';
import { seedViews, viewRoutes } from './views';
import { accept, frame } from './ws';

const { values: flags } = parseArgs({
  options: { port: { type: 'string', default: '8088' }, empty: { type: 'boolean', default: false } },
});
let broken = ''; // a path prefix that answers 503, set by POST /mock/break
const sockets = new Set<Duplex>();
const admin: User = {
  user_id: 'u1',
  name: 'admin',
  role: 'admin',
  created_at: iso(Date.now()),
  disabled_at: null,
  has_password: true,
  external: false,
  last_seen_at: iso(Date.now()),
};
const users: User[] = [
  admin,
  { ...admin, user_id: 'u2', name: 'grace@example.com', role: 'operator', last_seen_at: iso(Date.now() - 864e5) },
  { ...admin, user_id: 'u3', name: 'eve', role: 'viewer', has_password: false, last_seen_at: null },
];
const hidden = (dsn = '') => dsn.replace(/:[^:@/]+@/, ':***@');
addBuiltins();
if (!flags.empty) {
  seed();
  seedNotifications();
  seedSchedules();
  seedViews();
}

/** Body is the union of all request bodies. */
type Body = Partial<
  Omit<RunCreateBody, 'source'> &
    TemplateInput &
    ConnectionInput &
    TokenInputBody &
    NodeTokenInputBody & { prefix: string; token: string; version: number; count: number; role: User['role'] }
>;
type Handle = (parts: string[], body: Body, query: URLSearchParams, res: ServerResponse, text: string) => unknown;

const routes: [method: string, path: RegExp, handle: Handle][] = [
  ['POST', /^\/mock\/break$/, (_m, b) => ((broken = b.prefix ?? ''), {})],
  ['POST', /^\/mock\/role$/, (_m, b) => ((admin.role = b.role ?? 'admin'), {})],
  ['POST', /^\/mock\/nodes$/, (_m, b) => setNodes(b.count ?? 3)],
  ['GET', /^\/api\/v1\/nodes$/, listNodes],
  ['GET', /^\/api\/v1\/node-events$/, nodeEvents],
  [
    'GET',
    /^\/api\/v1\/tokens$/,
    () => ({
      tokens: [...tokens.values()].map((t) => ({
        ...t,
        user_name: 'grace@example.com',
        user_role: 'operator',
        locked_out: false,
      })),
      total: tokens.size,
    }),
  ],
  ['GET', /^\/api\/v1\/node-tokens$/, nodeTokens],
  ['POST', /^\/api\/v1\/node-tokens$/, (_m, b) => makeNodeToken(b)],
  ['DELETE', /^\/api\/v1\/node-tokens\/([^/]+)$/, ([, id]) => endNodeToken(id!)],
  ['POST', /^\/api\/v1\/nodes\/([^/]+)\/(drain|resume|remove)$/, ([, id, verb]) => setDesiredState(id!, verb!)],
  ...exploreRoutes,
  ...failureRoutes,
  ...notificationRoutes,
  ...(scheduleRoutes as unknown as [string, RegExp, Handle][]),
  ...([...viewRoutes, ...noteRoutes, ...extraRoutes] as unknown as [string, RegExp, Handle][]),
  ...([...tableRoutes, ...queryRoutes, ...streamRoutes, ...retentionRoutes] as unknown as [string, RegExp, Handle][]),
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
      return { user: admin };
    },
  ],
  [
    'POST',
    /^\/api\/auth\/signout$/,
    (_m, _b, _q, res) => (res.setHeader('Set-Cookie', 'loadstone_session=; Max-Age=0; Path=/'), null),
  ],
  ['GET', /^\/api\/auth\/me$/, () => ({ user: admin, token: {} })],
  ['GET', /^\/api\/users$/, () => ({ users })],
  [
    'GET',
    /^\/api\/auth\/tokens$/,
    (_m, _b, q) => ({
      tokens:
        q.get('kind') === 'session'
          ? [{ token_id: 's1', created_at: iso(Date.now() - 36e5), last_used_at: iso(Date.now()) }]
          : [...tokens.values()],
    }),
  ],
  [
    'POST',
    /^\/api\/auth\/tokens$/,
    (_m, b) => {
      const t: Token = {
        token_id: randomUUID(),
        user_id: 'u1',
        kind: 'api',
        name: b.name ?? '',
        scope: b.scope ?? 'write',
        expires_at: b.expires_in_days ? iso(Date.now() + b.expires_in_days * 864e5) : null,
        last_used_at: null,
        created_at: iso(Date.now()),
      };
      tokens.set(t.token_id, t);
      return { ...t, secret: `lst_${randomUUID().replaceAll('-', '')}` };
    },
  ],
  ['DELETE', /^\/api\/auth\/tokens\/([^/]+)$/, ([, id]) => (tokens.delete(id!), null)],
  [
    'GET',
    /^\/api\/info$/,
    () => ({
      version: '0.2.0',
      go_version: 'go1.26.0',
      started_at: iso(Date.now() - 7200_000),
      data_dir_free_bytes: 81_233_412_096,
      control_store: 'embedded',
      playground: true,
      nodes: 1,
      websocket_clients: sockets.size,
    }),
  ],
  ['GET', /^\/api\/templates$/, () => ({ templates: [...templates.values()] })],
  ['POST', /^\/api\/templates$/, (_m, b) => saveTemplate(b)],
  ['POST', /^\/api\/templates\/validate$/, (_m, b) => validate(b)],
  ['GET', /^\/api\/templates\/([^/]+)$/, ([, id]) => findOr404(templates, id, 'template')],
  ['PUT', /^\/api\/templates\/([^/]+)$/, ([, id], b) => saveTemplate(b, findOr404(templates, id, 'template'))],
  ['DELETE', /^\/api\/templates\/([^/]+)$/, ([, id]) => (templates.delete(id!), null)],
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
              'The role BENCH is not granted UPDATE and DELETE on the table ' +
              '"LOADSTONE"."PUBLIC"."ORDERS", and the run\'s operations need them.',
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
  ['GET', /^\/api\/runs\/([^/]+)$/, ([, id]) => detail(findOr404(runs, id, 'run'))],
  ['DELETE', /^\/api\/runs\/([^/]+)$/, ([, id]) => (runs.delete(id!), null)],
  ['POST', /^\/api\/runs\/([^/]+)\/start$/, ([, id]) => start(findOr404(runs, id, 'run')).run],
  [
    'POST',
    /^\/api\/runs\/([^/]+)\/stop$/,
    ([, id]) => {
      const r = findOr404(runs, id, 'run');
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
      const r = findOr404(runs, id, 'run');
      const [from, until] = [Number(q.get('from_seconds') ?? 0), Number(q.get('until_seconds') ?? Infinity)];
      const points: { elapsed_seconds: number }[] = q.get('worker_id') ? workerPoints(r) : r.points;
      return {
        resolution_seconds: 1,
        points: points.filter((p) => p.elapsed_seconds >= from && p.elapsed_seconds <= until),
      };
    },
  ],
  [
    'GET',
    /^\/api\/runs\/([^/]+)\/logs$/,
    ([, id], _b, q) => {
      const logs = findOr404(runs, id, 'run').logs.filter((l) => l.seq > Number(q.get('after') ?? 0));
      return { logs, last_seq: logs.at(-1)?.seq ?? 0 };
    },
  ],
  ['GET', /^\/api\/audit\/retention$/, () => ({ keep_days: 365 })],
  [
    'GET',
    /^\/api\/audit$/,
    () => ({
      entries: ['run.start', 'connection.delete', 'auth.signin'].map((action, i) => ({
        audit_id: 3 - i,
        at: iso(Date.now() - i * 60_000),
        action,
        object: i === 1 ? 'n'.repeat(189) : '4db759bc-78e9-41c2-bd6d-4deb587b4d24',
        outcome: i === 2 ? 'refused' : 'done',
        user_name: i === 2 ? '' : 'grace@example.com',
        address: '192.0.2.7',
        detail: i === 2 ? 'no user with this name and password' : '',
      })),
      next_before: 0,
    }),
  ],
  ['GET', /^\/api\/runs\/([^/]+)\/export$/, () => ({ record: null, account: null })],
  ['GET', /^\/api\/v1\/shares$/, () => ({ shares: [] })],
  ['GET', /^\/api\/v1\/prices$/, () => prices],
  ['GET', /^\/api\/runs\/([^/]+)\/summary$/, ([, id]) => findOr404(runs, id, 'run').summary ?? {}],
  ['GET', /^\/api\/matrices\/([^/]+)$/, ([, id]) => matrixOf(id)],
  [
    'POST',
    /^\/api\/matrices\/([^/]+)\/stop$/,
    ([, id]) => {
      const m = findOr404(matrices, id, 'matrix');
      m.status = 'CANCELLING';
      m.members.forEach((r) => r.live?.stop());
      return matrixOf(id);
    },
  ],
  [
    'GET',
    /^\/api\/compare$/,
    (_m, _b, q) => {
      const a = findOr404(runs, q.get('a'), 'run');
      const b = findOr404(runs, q.get('b'), 'run');
      if (!a.summary || !b.summary) throw new Refusal(409, 'conflict', 'A run has no figures yet.', 'wait for its end');
      return compare(a.summary, b.summary, Number(q.get('tolerance_pct') ?? 5));
    },
  ],
  [
    'GET',
    /^\/api\/v1\/compare\/parts$/,
    (_m, _b, q) => {
      const a = findOr404(runs, q.get('a'), 'run');
      const b = findOr404(runs, q.get('b'), 'run');
      if (!a.summary || !b.summary) throw new Refusal(409, 'conflict', 'A run has no figures yet.', 'wait for its end');
      return compareParts(a.summary, b.summary, Number(q.get('tolerance_pct') ?? 5));
    },
  ],
  ['GET', /^\/api\/v1\/runs\/([^/]+)\/kinds$/, ([, id]) => kindCurves(id!, findOr404(runs, id, 'run').points)],
  ['GET', /^\/api\/auth\/ways$/, () => ({ provider: '' })],
  ['POST', /^\/api\/statements\/catalog$/, () => ({ relations: relations, truncated: false })],
  ['GET', /^\/api\/connections$/, () => ({ connections: [...connections.values()] })],
  ['POST', /^\/api\/connections$/, (_m, b) => addConnection(b.name ?? '', hidden(b.dsn), false, b.description)],
  ['POST', /^\/api\/connections\/test$/, (_m, b) => checkDsn(b.dsn ?? '')],
  ['GET', /^\/api\/connections\/([^/]+)\/use$/, ([, id]) => useOf(findOr404(connections, id, 'connection'))],
  ['POST', /^\/api\/connections\/([^/]+)\/test$/, ([, id]) => checkDsn(findOr404(connections, id, 'connection').dsn)],
  [
    'PUT',
    /^\/api\/connections\/([^/]+)$/,
    ([, id], b) => Object.assign(findOr404(connections, id, 'connection'), { ...b, dsn: hidden(b.dsn) }),
  ],
  [
    'DELETE',
    /^\/api\/connections\/([^/]+)$/,
    ([, id]) => {
      const c = findOr404(connections, id, 'connection');
      if ([...templates.values()].some((t) => t.config.target?.connection === c.name))
        throw new Refusal(
          409,
          'conflict',
          `Connection “${c.name}” is used by a template.`,
          'Change the template first.',
        );
      connections.delete(id!);
      return null;
    },
  ],
  [
    'GET',
    /^\/api\/plugins$/,
    () => ({ plugins: plugins.map((p) => ({ ...p, manifest: { ...p.manifest, statements: undefined } })) }),
  ],
  ['GET', /^\/api\/plugins\/([^/]+)$/, ([, sha]) => plugin(sha)],
  ['POST', /^\/api\/plugins$/, (_m, _b, _q, _res, text) => receive(plugins, text)],
  [
    'POST',
    /^\/api\/plugins\/([^/]+)\/(enable|disable)$/,
    ([, sha, verb]) =>
      Object.assign(plugin(sha), {
        enabled: verb === 'enable',
        state: verb === 'enable' ? ('enabled' as const) : ('disabled' as const),
        enabled_by: 'admin',
        enabled_at: iso(Date.now()),
      }),
  ],
  [
    'DELETE',
    /^\/api\/plugins\/([^/]+)$/,
    ([, sha]) => {
      const p = plugin(sha);
      if (p.templates?.length)
        throw new Refusal(
          409,
          'conflict',
          `A template uses the plugin ${p.name}@${p.version}: "${p.templates[0]!.name}".`,
          'Change the template to another plugin or version, or delete it.',
        );
      plugins.splice(plugins.indexOf(p), 1);
      return null;
    },
  ],
];

const server = createServer((req, res) => void serve(req, res));

async function serve(req: IncomingMessage, res: ServerResponse): Promise<unknown> {
  const url = new URL(req.url ?? '/', 'http://mock');
  const isApi = /^\/(?:api|mock|prometheus)/.test(url.pathname);
  if (!isApi) return page(url.pathname, res);
  let text = '';
  for await (const chunk of req) text += String(chunk);
  try {
    if (broken && url.pathname.startsWith(broken))
      throw new Refusal(503, 'unavailable', 'The control store is away.', 'It is tried again; nothing is lost.');
    if (
      !/^\/api\/auth\/(signin|ways)/.test(url.pathname) &&
      isApi &&
      !url.pathname.startsWith('/mock') &&
      !/loadstone_session=mock/.test(req.headers.cookie ?? '')
    )
      throw new Refusal(401, 'unauthorized', 'You are not signed in.', 'Open the sign-in link.');
    for (const [method, pattern, handle] of routes) {
      const m = pattern.exec(url.pathname);
      if (!m || method !== req.method) continue;
      const given = /json/.test(req.headers['content-type'] ?? '') && text ? (JSON.parse(text) as Body) : {};
      const out = await handle(m, given, url.searchParams, res, text);
      if (res.headersSent) return; // it has answered itself
      if (out === null) return res.writeHead(204).end();
      return res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(out));
    }
    throw new Refusal(404, 'not_found', `There is nothing at ${url.pathname}.`);
  } catch (thrown) {
    const err = thrown instanceof Refusal ? thrown : new Refusal(500, 'internal', String(thrown));
    const status = err.status;
    if (status === 500) console.error(thrown);
    res.writeHead(status, { 'Content-Type': 'application/problem+json' }).end(
      JSON.stringify({
        type: `urn:loadstone:problem:${err.code}`,
        status,
        detail: err.detail,
        code: err.code,
        hint: err.hint,
        errors: err.errors,
      }),
    );
  }
}

function cutSockets() {
  const n = sockets.size;
  for (const s of sockets) s.destroy();
  return n;
}

server.on('upgrade', (req, socket) => {
  const id = /^\/ws\/(?:runs|test)\/([^/?]+)/.exec(req.url ?? '')?.[1];
  const live = runs.get(id ?? '')?.live;
  if (!live || (broken && '/ws'.startsWith(broken))) return socket.end('HTTP/1.1 404 Not Found\r\n\r\n');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: ` +
      `Upgrade\r\nSec-WebSocket-Accept: ${accept(req.headers['sec-websocket-key'] ?? '')}\r\n\r\n`,
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
  console.log(`mock on http://127.0.0.1:${(server.address() as AddressInfo).port}/signin?token=mock`),
);
