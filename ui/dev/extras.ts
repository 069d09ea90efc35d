// Further mock endpoints: telemetry export, node demand, second factor, and marks.
import { randomUUID } from 'node:crypto';
import type { components } from '../src/api/schema';
import type { Mark } from '../src/api/types';
import { findOr404 } from './answers';
import { iso } from './data';
import { Refusal } from './refusal';
import { runs } from './state';

type Schemas = components['schemas'];

const needs = (): Schemas['Needs'] => ({
  at: iso(Date.now()),
  nodes: [],
  oldest_wait_seconds: 0,
  pending_refresh_count: 0,
  queue_depth: 0,
  refresh_backlog_seconds: 0,
  refresh_duration_p95_seconds: 0,
  reserved_connections: 0,
  runs_running: 1,
  typical_node_capacity: 0,
  waiting: [],
  waiting_connections: 0,
  wanted_nodes: 0,
});

const out = (): Schemas['Destinations'] => ({
  destinations: [
    {
      name: 'remote_write',
      address: 'https://prometheus.example.com/api/v1/write',
      failing: false,
      lost_counts: {},
      retry_count: 0,
      sent_count: 81_240,
      waiting_bytes: 0,
      waiting_count: 0,
    },
    {
      name: 'grafana',
      address: 'https://grafana.example.com',
      failing: true,
      last_error: '<b>401</b> Unauthorized: invalid API key',
      last_error_at: iso(Date.now() - 40_000),
      lost_counts: { given_up: 3, refused: 1 },
      retry_count: 12,
      sent_count: 2,
      waiting_bytes: 812,
      waiting_count: 2,
    },
  ],
});

const marks = new Map<string, Mark[]>();

/** marksOf returns a run's marks; a started run has one of a user. */
function marksOf(id: string): Mark[] {
  const { run } = findOr404(runs, id, 'run');
  const startTime = Date.parse(run.start_time ?? '');
  if (!marks.has(id))
    marks.set(id, startTime ? [mark(id, 'index <b>orders_customer</b> created', iso(startTime + 9_000))] : []);
  return marks.get(id)!;
}

const mark = (run_id: string, text: string, at: string): Mark => ({
  mark_id: randomUUID(),
  run_id,
  text,
  at,
  made_at: at,
  made_by: 'grace@example.com',
  changed_at: null,
  changed_by: '',
});

const ofRun = /^\/api\/v1\/runs\/([^/]+)\/marks$/;
const oneOf = /^\/api\/v1\/runs\/([^/]+)\/marks\/([^/]+)$/;

interface Body {
  text?: string;
  at?: string;
  was?: Schemas['MarkWas'];
}

export const extraRoutes: [string, RegExp, (parts: string[], body: Body) => unknown][] = [
  ['GET', /^\/api\/v1\/scaling$/, needs],
  ['GET', /^\/api\/v1\/out$/, out],
  [
    'GET',
    /^\/api\/auth\/totp$/,
    (): Schemas['State'] => ({ enabled: true, enabled_at: iso(Date.now() - 864e5), recovery_left: 7 }),
  ],
  ['GET', ofRun, ([, id]) => ({ marks: marksOf(id!) })],
  [
    'POST',
    ofRun,
    ([, id], b) => {
      const made = mark(id!, b.text ?? '', b.at ?? iso(Date.now()));
      marksOf(id!).push(made);
      return made;
    },
  ],
  [
    'PUT',
    oneOf,
    ([, id, which], b) => {
      const m = marksOf(id!).find((x) => x.mark_id === which)!;
      if (b.was && (b.was.text !== m.text || Date.parse(b.was.at) !== Date.parse(m.at ?? '')))
        throw new Refusal(409, 'conflict', 'The mark was changed by ada, after you had opened it.', 'Load it again.');
      return Object.assign(m, { text: b.text, at: b.at });
    },
  ],
];
