// Schedules of the mock: they are saved, and nothing starts.
import type { Schedule, ScheduleInput } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

const hour = 3_600_000;
let schedules: Schedule[] = [];

/** seedSchedules adds example data. */
export function seedSchedules() {
  const one = (n: number, of: Partial<Schedule>): Schedule => ({
    schedule_id: `00000000-0000-4000-8000-00000000000${n}`,
    name: 'nightly',
    template_id: 't1',
    template_name: 'Orders, mixed',
    cron: '0 2 * * *',
    time_zone: 'Europe/Berlin',
    paused: false,
    next_due: iso(Date.now() + 5 * hour),
    owner_id: 'u1',
    owner: 'ada',
    version: 1,
    updated_by: 'ada',
    created_at: iso(Date.now() - 99 * hour),
    updated_at: iso(Date.now() - 99 * hour),
    last: null,
    ...of,
  });
  const last = (of: Partial<NonNullable<Schedule['last']>>) => ({
    schedule_id: '',
    due_at: iso(Date.now() - 19 * hour),
    outcome: 'STARTED' as const,
    noted_at: iso(Date.now() - 19 * hour),
    ...of,
  });
  schedules = [
    one(1, { last: last({ run_id: 'r1' }) }),
    one(2, {
      name: 'weekly limit',
      cron: '@weekly',
      last: last({ outcome: 'MISSED', missed: 3, reason: 'No server was there to start 3 runs.' }),
    }),
    one(3, { name: 'old', next_due: null, suspended_reason: 'bob, who owns the schedule, is locked out' }),
  ];
}

function find(id: string): Schedule {
  const s = schedules.find((x) => x.schedule_id === id);
  if (!s) throw new Refusal(404, 'not_found', `There is no schedule "${id}".`);
  return s;
}

function save(old: Schedule | null, b: Partial<ScheduleInput>): Schedule {
  const s: Schedule = {
    ...(old ?? schedules[0]!),
    schedule_id: old?.schedule_id ?? `00000000-0000-4000-8000-${String(Date.now()).padStart(12, '0').slice(-12)}`,
    name: b.name ?? '',
    template_id: b.template_id ?? '',
    cron: b.cron ?? '',
    time_zone: b.time_zone || 'UTC',
    paused: b.paused ?? false,
    next_due: b.paused ? null : iso(Date.now() + 5 * hour),
    suspended_reason: undefined,
    version: (old?.version ?? 0) + 1,
    last: old?.last ?? null,
  };
  schedules = [...schedules.filter((x) => x !== old), s];
  return s;
}

export const scheduleRoutes: [method: string, path: RegExp, handle: (parts: string[], body: object) => unknown][] = [
  ['GET', /^\/api\/v1\/schedules$/, () => ({ schedules })],
  ['POST', /^\/api\/v1\/schedules$/, (_m, b) => save(null, b)],
  ['PUT', /^\/api\/v1\/schedules\/([^/]+)$/, ([, id], b) => save(find(id!), b)],
  [
    'DELETE',
    /^\/api\/v1\/schedules\/([^/]+)$/,
    ([, id]) => {
      schedules = schedules.filter((x) => x !== find(id!));
      return null;
    },
  ],
  [
    'GET',
    /^\/api\/v1\/schedules\/([^/]+)\/starts$/,
    ([, id]) => ({ starts: [find(id!).last].filter((x) => x !== null && x !== undefined) }),
  ],
  ['GET', /^\/api\/v1\/schedule-times/, () => ({ times: [1, 2, 3].map((n) => iso(Date.now() + n * 24 * hour)) })],
];
