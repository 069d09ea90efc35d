import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createConnectivity, createWatchdog } from '../src/api/connectivity';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** server answers the probe after a delay; null is never. */
function server(after: number | null) {
  const reach = createConnectivity();
  const probes: number[] = [];
  const begin = Date.now();
  const watch = createWatchdog(reach, (signal) => {
    probes.push(Date.now() - begin);
    return new Promise((answer, fail) => {
      signal.addEventListener('abort', () => fail(new Error('too late')));
      if (after !== null) setTimeout(() => answer(true), after);
    });
  });
  return { reach, watch, probes, begin };
}

it('notices a server that stands still, which refuses nothing', async () => {
  const { reach, watch, begin } = server(null);
  const ended = watch();
  await vi.advanceTimersByTimeAsync(6_900);
  expect(reach.since()).toBeNull();
  await vi.advanceTimersByTimeAsync(200);
  expect(reach.since()).toBe(begin);
  // The server continues and answers old requests.
  ended();
  reach.answered();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reach.since()).toBeNull();
});

it('does not take a long question for silence', async () => {
  const { reach, watch, probes } = server(200);
  const ended = watch();
  await vi.advanceTimersByTimeAsync(25_000);
  expect(reach.since()).toBeNull();
  expect(probes.length).toBeGreaterThan(1);
  ended();
  const before = probes.length;
  await vi.advanceTimersByTimeAsync(25_000);
  expect(probes.length, 'nothing is asked when nothing is under way').toBe(before);
});

it('asks nothing while other requests are answered, and once for many', async () => {
  const { reach, watch, probes } = server(null);
  const poll = setInterval(() => reach.answered(), 3_000);
  const all = [watch(), watch(), watch()];
  await vi.advanceTimersByTimeAsync(20_000);
  expect(probes).toEqual([]);
  clearInterval(poll);
  await vi.advanceTimersByTimeAsync(7_500);
  expect(probes.length).toBe(1);
  for (const ended of all) ended();
});
