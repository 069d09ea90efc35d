import { describe, expect, it } from 'vitest';
import type { Payload } from '../src/api/types';
import { timeOfDay } from '../src/design/format';
import { unresponsive } from '../src/runs/unresponsive';

const at = '2026-11-29T14:03:20.000Z';

function live(...workers: Partial<NonNullable<Payload['workers']>[number]>[]): Payload {
  return {
    status: 'RUNNING',
    timestamp: '2026-11-29T14:02:30.000Z',
    workers: workers.map((w, i) => ({
      worker_id: `worker-${i}`,
      node_id: `node-${i}`,
      health: 'HEALTHY',
      status: 'RUNNING',
      last_heartbeat: '2026-11-29T14:02:20.000Z',
      silent_since: null,
      load_ends_by: null,
      ...w,
    })),
  } as unknown as Payload;
}

describe('a node that cannot be reached', () => {
  it('is named with the time by which its load ends, once for all of its workers', () => {
    const u = unresponsive(
      live({}, { load_ends_by: at }, { node_id: 'node-1', load_ends_by: '2026-11-29T14:03:10.000Z' }),
      0,
    );
    const end = timeOfDay(at).slice(0, 8);
    expect(u?.details).toEqual([`node-1 cannot be reached. Its load stops by ${end} at the latest.`]);
    expect(u?.title).toBe('2/3 workers unresponsive');
  });

  it('is not there while all report', () => {
    expect(unresponsive(live({}, {}), 0)).toBeNull();
  });
});
