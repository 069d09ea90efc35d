// Retention of the mock: rules are stored and previewed, nothing is deleted.
import type { Preview, Retention } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

let retention: Retention = {
  on: true,
  keep_runs_days: 365,
  keep_executions_days: 30,
  executions_budget_gb: 50,
  keep_tags: ['ticket'],
  version: 3,
  updated_by: 'ada',
  updated_at: iso(Date.now() - 864e5),
  last_pass: {
    started_at: iso(Date.now() - 36e5),
    ended_at: iso(Date.now() - 36e5 + 4_000),
    planned: 12,
    done: 12,
    runs_deleted: 2,
    executions_deleted: 10,
    bytes_freed: 4.1e9,
    files_left: 0,
    stayed: 0,
    over_budget_bytes: 0,
    cut_short: false,
  },
  over_budget_bytes: 1.4e9,
  over_budget_since: iso(Date.now() - 36e5),
  leftovers: [
    {
      place: 'p1',
      label: 's3://results/loadstone',
      runs: 2,
      seen_at: iso(Date.now() - 9 * 36e5),
      since: iso(Date.now() - 9 * 36e5),
      tried_at: iso(Date.now() - 6e5),
      problem: 'AccessDenied: the key may not delete.',
    },
  ],
};

const preview = (days: number): Preview => ({
  ended_runs: 48,
  deleted_runs: days > 0 ? 3 : 0,
  deleted_executions: days > 0 ? 17 : 0,
  executions_bytes: 21.4e9,
  executions_bytes_after: days > 0 ? 12.2e9 : 21.4e9,
  freed_bytes: days > 0 ? 9.2e9 : 0,
  over_budget_bytes: 0,
  kept: [{ by: 'baseline', count: 2 }],
  first: [],
});

type Route = [method: string, path: RegExp, handle: (parts: string[], body: never) => unknown];

export const retentionRoutes: Route[] = [
  ['GET', /^\/api\/v1\/retention$/, () => retention],
  [
    'PUT',
    /^\/api\/v1\/retention$/,
    (_m, b: Retention) => {
      if (b.version !== retention.version)
        throw new Refusal(409, 'conflict', 'The retention was changed meanwhile.', 'Look at it, and save again.');
      return (retention = {
        ...retention,
        ...b,
        version: retention.version + 1,
        updated_by: 'admin',
        updated_at: iso(Date.now()),
      });
    },
  ],
  ['POST', /^\/api\/v1\/retention\/preview$/, (_m, b: Retention) => preview(b.keep_runs_days)],
];
