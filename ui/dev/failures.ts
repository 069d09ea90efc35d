// Failed and slow executions of the mock with parameters, masked or plain.
import type {
  Execution,
  ExecutionPage,
  Failure,
  Failures,
  KeptBinds,
  KeptExecution,
  KeptValue,
} from '../src/api/types';
import { findOr404 } from './answers';
import { iso } from './data';
import type { RunHolder } from './live';
import { Refusal } from './refusal';
import { runs } from './state';

const sql =
  'INSERT INTO "orders" (id, customer, note, placed_at, paid, total) VALUES ($1, $2, $3, $4, $5, $6)\n' +
  'ON CONFLICT (id) DO UPDATE SET note = EXCLUDED.note, total = "orders".total + EXCLUDED.total';

const began = (r: RunHolder) => Date.parse(r.run.start_time ?? '') || Date.now();

function failures(r: RunHolder): Failures {
  const of = (more: Partial<Failure>): Failure => ({
    count: 412,
    error_class: 'constraint',
    error_code: '23505',
    kind: 'INSERT',
    statement_id: 'insert',
    inside_transaction: false,
    first_at: iso(began(r) + 4_200),
    last_at: iso(began(r) + 17_900),
    worker_count: 2,
    slowest_ms: 41.2,
    warmup_count: 0,
    messages_count: 9,
    examples: [{ count: 400, message: 'duplicate key value violates unique constraint "orders_pkey"' }],
    sql,
    ...more,
  });
  const list = r.summary?.errors.count
    ? [
        of({}),
        of({ count: 3, error_class: 'timeout', error_code: '57014', kind: 'UPDATE', statement_id: 'update', sql: '' }),
      ]
    : [];
  return {
    failures: list,
    total_count: list.length,
    record: read,
  };
}

const long = 'x'.repeat(1_024);
const texts: [string, KeptValue['type'], string | null][] = [
  ['id', 'i64', '4711'],
  ['customer', 'text', '<b>Ann</b> Smith'],
  ['note', 'text', long],
  ['placed_at', 'timestamp', '2026-11-24T14:03:12.000417Z'],
  ['paid', 'bool', 'true'],
  ['total_of_all_items_of_this_order', 'null', null],
];

function keptExecution(
  r: RunHolder,
  why: KeptExecution['why'],
  statement: string,
  i: number,
  plain: boolean,
): KeptExecution {
  const at = began(r) + 4_200 + i * 611;
  return {
    why,
    worker_id: `worker-${i % 2}`,
    connection_id: i,
    seq: 4_100 + i * 37,
    position: 0,
    retries: why === 'failed' ? i : 0,
    phase: 'MEASUREMENT',
    kind: 'INSERT',
    statement_id: statement,
    started_at: iso(at - 40),
    ended_at: iso(at),
    service_ms: 41.2 - i,
    app_elapsed_ms: 41.9 - i,
    error_class: why === 'failed' ? 'constraint' : '',
    error_code: why === 'failed' ? '23505' : '',
    error_message: why === 'failed' ? `duplicate key: Key (id)=(${plain ? '4711' : '?'}) already exists.` : '',
    calls: [
      {
        statement_id: statement,
        position: 0,
        sql,
        values: texts.map(([name, type, text], n) => ({
          name,
          parameters: [n + 1],
          type,
          length: text && type === 'text' ? (text === long ? 40_000 : text.length) : 0,
          text: plain ? text : null,
          cut: plain && text === long,
        })),
        values_left_out: 0,
      },
    ],
    calls_left_out: 0,
  };
}

function binds(r: RunHolder, q: URLSearchParams, plain: boolean): KeptBinds {
  const why = q.get('why') === 'slow' ? 'slow' : 'failed';
  const n = q.get('statement') === 'update' ? 0 : 4;
  return {
    mode: 'plain',
    values_shown: plain,
    executions: Array.from({ length: n }, (_, i) => keptExecution(r, why, q.get('statement') ?? '', i, plain)),
    total_count: n,
    left_out: why === 'failed' ? 1_207 : 0,
  };
}

const read = { complete: true, elapsed_ms: 12, parts_count: 2, rows_count: 412_000, rows_read_count: 412_000 };

/** executions returns two pages of a run's executions, without filtering. */
function executions(r: RunHolder, q: URLSearchParams): ExecutionPage {
  const second = q.get('cursor') === 'second';
  const list = Array.from({ length: 30 }, (_, i): Execution => {
    const at = began(r) + 4_200 + i * 61;
    const bad = i % 7 === 3;
    return {
      app_elapsed_ms: 41.9 - i,
      connection_id: i % 16,
      decode_ms: 0.02,
      due_at: iso(at - 42),
      started_at: iso(at - 40),
      ended_at: iso(at),
      error_class: bad ? 'constraint' : '',
      error_code: bad ? '23505' : '',
      error_message: bad ? 'duplicate key value violates unique constraint "orders_pkey"' : '',
      kind: 'INSERT',
      phase: 'MEASUREMENT',
      pool_wait_ms: 0,
      position: 0,
      retries: 0,
      rolled_back: false,
      rows: bad ? 0 : 1,
      schedule_lag_ms: 0.01,
      seq: (second ? 9_000 : 4_100) + i * 37,
      server_query_id: '',
      statement_id: 'insert',
      step: 0,
      success: !bad,
      worker_id: `worker-${i % 2}`,
    };
  });
  return { executions: list, next_cursor: second ? '' : 'second', record: read };
}

const path = /^\/api\/v1\/runs\/([^/]+)\/(failures|binds|executions)$/;
export const failureRoutes: [string, RegExp, (parts: string[], body: unknown, query: URLSearchParams) => unknown][] = [
  [
    'GET',
    path,
    ([, id, what], _b, q) => {
      const r = findOr404(runs, id, 'run');
      return what === 'binds' ? binds(r, q, false) : what === 'failures' ? failures(r) : executions(r, q);
    },
  ],
  [
    'POST',
    path,
    ([, id, what], _b, q) => {
      if (what !== 'binds') throw new Refusal(405, 'method_not_allowed', 'Failures are read.');
      return binds(findOr404(runs, id, 'run'), q, true);
    },
  ],
];
