import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { makeReach, makeWatch } from '../src/api/reach';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A server that answers the short question after a while; null is never. */
function server(after: number | null) {
  const reach = makeReach();
  const asked: number[] = [];
  const begin = Date.now();
  const watch = makeWatch(reach, (signal) => {
    asked.push(Date.now() - begin);
    return new Promise((answer, fail) => {
      signal.addEventListener('abort', () => fail(new Error('too late')));
      if (after !== null) setTimeout(() => answer(true), after);
    });
  });
  return { reach, watch, asked, begin };
}

it('notices a server that stands still, which refuses nothing', async () => {
  const { reach, watch, begin } = server(null);
  const ended = watch();
  await vi.advanceTimersByTimeAsync(6_900);
  expect(reach.since()).toBeNull();
  await vi.advanceTimersByTimeAsync(200);
  expect(reach.since()).toBe(begin);
  // It goes on, and answers what was asked long ago.
  ended();
  reach.answered();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reach.since()).toBeNull();
});

it('does not take a long question for silence', async () => {
  const { reach, watch, asked } = server(200);
  const ended = watch();
  await vi.advanceTimersByTimeAsync(25_000);
  expect(reach.since()).toBeNull();
  expect(asked.length).toBeGreaterThan(1);
  ended();
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(25_000);
  expect(asked.length, 'nothing is asked when nothing is under way').toBe(before);
});

it('asks nothing while other requests are answered, and once for many', async () => {
  const { reach, watch, asked } = server(null);
  const poll = setInterval(() => reach.answered(), 3_000);
  const all = [watch(), watch(), watch()];
  await vi.advanceTimersByTimeAsync(20_000);
  expect(asked).toEqual([]);
  clearInterval(poll);
  await vi.advanceTimersByTimeAsync(7_500);
  expect(asked.length).toBe(1);
  for (const ended of all) ended();
});
