import { describe, expect, it } from 'vitest';
import type { ServerSecond, ServerTime } from '../src/api/types';
import { classLines, interval, shareText, timeParts } from '../src/runs/serverTime';

const second = (elapsed: number, looks: number, ours: Record<string, number>, inFlight: number | null = null) =>
  ({ elapsed_seconds: elapsed, seconds: 1, looks, ours, others: {}, in_flight: inFlight }) as unknown as ServerSecond;

describe('the server’s view of a run', () => {
  it('draws the classes that occur, with gaps where nobody looked', () => {
    const lines = classLines([second(0, 10, { lock: 3 }, 4), second(1, 0, {}, 4), second(2, 10, { cpu: 1 }, 4)]);
    expect(lines.map((l) => l.key)).toEqual(['cpu', 'lock', 'in_flight']);
    expect(lines[0]!.values).toEqual([0, null, 1]);
    expect(lines[1]!.values).toEqual([3, null, 0]);
    expect(lines[2]!.unstacked).toBe(true);
    // While a run goes on it is not known how many operations are under way.
    expect(classLines([second(0, 10, { cpu: 1 })]).map((l) => l.key)).toEqual(['cpu']);
  });

  it('says where a finding is, and how large', () => {
    const start = '2026-01-01T00:00:00.000Z';
    expect(interval({ from: '2026-01-01T00:00:10.000Z', to: '2026-01-01T00:00:14.000Z' }, start)).toEqual({
      from: 10,
      to: 14,
    });
    expect(interval({ from: null, to: null }, start)).toBeNull();
    expect(shareText({ share: 0.613, share_low: 0.55, share_high: 0.7 })).toBe('61 % (55 to 70 %)');
  });

  it('leaves out parts of nearly nothing', () => {
    const t = {
      in_flight_seconds: 100,
      waiting_seconds: 0.1,
      network_seconds: 60,
      remainder_seconds: -2,
      classes: { lock: 38 },
    };
    expect(timeParts(t as unknown as ServerTime)).toEqual([
      { label: 'Network and driver', color: '--accent', pct: 60 },
      { label: 'Locks', color: '--e-1', pct: 38 },
      { label: 'Not explained', color: '--line-strong', pct: -2 },
    ]);
  });
});
