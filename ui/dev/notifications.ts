// Notifications of the mock: nothing is sent, but hooks and deliveries behave as on the server.
import type { Delivery, GivenHook, Hook } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

const minutes = 60_000;
let version = 1;
let hooks: Hook[] = [];
let deliveries: Delivery[] = [];

/** seedNotifications adds example data. */
export function seedNotifications() {
  hooks = [
    {
      id: 'hook-1',
      name: 'nightly runs',
      kind: 'webhook',
      address: 'https://ci.example.com:443',
      events: ['finished', 'regressed', 'failed'],
      tags: { suite: 'nightly' },
      signed: true,
    },
    {
      id: 'hook-2',
      name: 'database channel',
      kind: 'slack',
      address: 'https://hooks.example.com:443',
      events: ['regressed', 'failed'],
      signed: false,
    },
  ];
  const attempt = (ago: number, h: Hook, event: string, error?: string): Delivery => ({
    delivery_id: `d-${ago}`,
    at: iso(Date.now() - ago * minutes),
    hook_id: h.id,
    hook_name: h.name,
    event,
    attempt: error ? 2 : 1,
    arrived: !error,
    ...(event !== 'test' && { run_id: 'r1' }),
    ...(error && { error }),
  });
  deliveries = [
    attempt(4, hooks[1]!, 'regressed', 'HTTP 503: no healthy upstream'),
    attempt(61, hooks[0]!, 'finished'),
    attempt(90, hooks[0]!, 'test'),
  ];
}

const all = () => ({ version, hooks, deliveries });

function save(b: { version?: number; hooks?: GivenHook[] }) {
  if (b.version !== version)
    throw new Refusal(409, 'conflict', 'The notifications were changed meanwhile.', 'Look at them, and save again.');
  hooks = (b.hooks ?? []).map((g, i) => {
    const old = hooks.find((h) => h.id === g.id);
    return {
      id: g.id ?? `hook-${version}-${i}`,
      name: g.name,
      kind: g.kind,
      address: g.url ? g.url.replace(/^([a-z+]+:\/\/[^/]*).*$/, '$1') : (old?.address ?? ''),
      events: g.events,
      from: g.from,
      to: g.to,
      user: g.user,
      template_id: g.template_id,
      tags: g.tags,
      signed: g.secret === undefined ? (old?.signed ?? false) : g.secret !== '',
    };
  });
  version++;
  return all();
}

function test(id: string): Delivery {
  const h = hooks.find((x) => x.id === id);
  if (!h) throw new Refusal(404, 'not_found', `There is no notification ${id}.`);
  const d = {
    delivery_id: `d-${Date.now()}`,
    at: iso(Date.now()),
    hook_id: h.id,
    hook_name: h.name,
    event: 'test',
    attempt: 1,
    arrived: true,
  };
  deliveries = [d, ...deliveries];
  return d;
}

export const notificationRoutes: [method: string, path: RegExp, handle: (parts: string[], body: object) => unknown][] =
  [
    ['GET', /^\/api\/v1\/notifications$/, all],
    ['PUT', /^\/api\/v1\/notifications$/, (_m, b) => save(b)],
    ['POST', /^\/api\/v1\/notifications\/([^/]+)\/test$/, ([, id]) => test(id!)],
  ];
