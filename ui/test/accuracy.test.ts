import { expect, it } from 'vitest';
import type { Calibration } from '../src/api/types';
import { liveErrors, worst } from '../src/runs/Accuracy';

it('says what live percentiles were off by', () => {
  expect(
    liveErrors([
      { percentile: 50, live_ms: 1.01, exact_ms: 1, error_pct: 1 },
      { percentile: 95, live_ms: 0, exact_ms: 0, error_pct: null },
      { percentile: 99, live_ms: 1.99, exact_ms: 2, error_pct: -0.5 },
    ]),
  ).toBe('P50 +1.00 %, P99 −0.50 %');
  expect(liveErrors(null)).toBe('');
});

it('names the error that is furthest from zero', () => {
  const of = (...errors: number[]) =>
    worst({
      percentiles: errors.map((error_ms) => ({ percentile: 50, target_ms: 1, measured_ms: 1, error_ms })),
    } as Calibration);
  expect(of(0.1, -0.3, 0.2)).toBe(-0.3);
  expect(of()).toBeNull();
});
