import { describe, expect, it } from 'vitest';
import type { Schedule, ScheduledStart } from '../src/api/types';
import { draftOf, fieldErrors, outcomeText, outcomeTone, stateText, zonedTime } from '../src/schedules/schedules';

const nightly = {
  schedule_id: 's',
  name: 'nightly',
  template_id: 't',
  template_name: 'Orders',
  cron: '30 2 * * *',
  time_zone: 'Europe/Berlin',
  paused: false,
  next_due: '2026-03-29T01:00:00.000Z',
  owner_id: 'u',
  owner: 'ada',
  version: 3,
  updated_by: 'ada',
  created_at: null,
  updated_at: null,
  last: null,
} as Schedule;

const start = (of: Partial<ScheduledStart>): ScheduledStart => ({
  schedule_id: 's',
  due_at: '2026-03-29T01:00:00.000Z',
  outcome: 'STARTED',
  noted_at: null,
  ...of,
});

describe('schedules', () => {
  it('shows moments as a clock in the zone of the schedule does', () => {
    expect(zonedTime('2026-03-29T01:00:00.000Z', 'Europe/Berlin')).toContain('03:00');
    expect(zonedTime('2026-03-29T00:59:00.000Z', 'Europe/Berlin')).toContain('01:59');
    expect(zonedTime('2026-03-29T01:00:00.000Z', 'No/Where')).toBe('2026-03-29T01:00:00.000Z');
  });

  it('says why a schedule starts nothing', () => {
    expect(stateText(nightly)).toMatch(/^Next: .*03:00/);
    expect(stateText({ ...nightly, paused: true, next_due: null })).toBe('Paused.');
    expect(stateText({ ...nightly, next_due: null, suspended_reason: 'ada is locked out' })).toBe(
      'Suspended: ada is locked out.',
    );
  });

  it('names what became of a start', () => {
    expect(outcomeText(start({}))).toBe('Started');
    expect(outcomeText(start({ outcome: 'MISSED', missed: 1 }))).toBe('Missed');
    expect(outcomeText(start({ outcome: 'MISSED', missed: 4 }))).toBe('Missed 4 times');
    expect([outcomeTone(start({})), outcomeTone(start({ outcome: 'SKIPPED' }))]).toEqual(['ok', 'bad']);
  });

  it('sends back what is edited', () => {
    expect(draftOf(nightly)).toEqual({
      name: 'nightly',
      template_id: 't',
      cron: '30 2 * * *',
      time_zone: 'Europe/Berlin',
      paused: false,
    });
    expect(draftOf(null, 't2').template_id).toBe('t2');
  });

  it('finds the errors of fields', () => {
    expect(fieldErrors([{ field: 'body.cron', message: 'has 4 fields', hint: 'Write five' }])).toEqual({
      cron: 'has 4 fields. Write five',
    });
  });
});
