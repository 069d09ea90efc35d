import { useSyncExternalStore } from 'react';

/** When the server answered last before it fell silent, in Unix milliseconds; null while it answers. */
export type Reach = number | null;

/** Follows whether the server answers, from what becomes of every request. */
export function makeReach(now: () => number = Date.now) {
  let last = now();
  let silent: Reach = null;
  const heard = new Set<() => void>();
  const set = (to: Reach) => {
    if (to === silent) return;
    silent = to;
    for (const f of heard) f();
  };
  return {
    answered: () => {
      last = now();
      set(null);
    },
    failed: () => {
      set(silent ?? last);
    },
    since: (): Reach => silent,
    /** When the server answered last, in Unix milliseconds. */
    last: () => last,
    /** The time up to which what is shown is known: clocks that go on while nobody answers tell what is not so. */
    known: () => silent ?? now(),
    subscribe: (f: () => void) => {
      heard.add(f);
      return () => heard.delete(f);
    },
  };
}

export const reach = makeReach();

/** How long a request may last before it is asked whether the server is there at all, and how long that may last. */
const patience = 4_000;
const within = 3_000;

/**
 * Watches requests under way: a process that stands still, or a network that swallows all, refuses nothing, and
 * what was sent would just wait. Some questions take their time, so a short one is asked beside them. What is returned
 * takes the beginning of a request, and gives what is to be called at its end.
 */
export function makeWatch(
  of: Pick<ReturnType<typeof makeReach>, 'answered' | 'failed' | 'last'>,
  alive: (signal: AbortSignal) => Promise<boolean>,
  now: () => number = Date.now,
) {
  let asking = false;
  const look = async () => {
    if (asking || now() - of.last() < patience) return;
    asking = true;
    const stop = new AbortController();
    const late = setTimeout(() => stop.abort(), within);
    const there = await alive(stop.signal).catch(() => false);
    clearTimeout(late);
    asking = false;
    if (there) of.answered();
    // An answer to something else may have come meanwhile.
    else if (now() - of.last() >= patience) of.failed();
  };
  return (): (() => void) => {
    const timer = setInterval(() => void look(), patience);
    return () => clearInterval(timer);
  };
}

export const watch = makeWatch(reach, async (signal) => (await fetch('/healthz', { signal, cache: 'no-store' })).ok);

/** Since when the server does not answer; null while it does. */
export const useReach = (): Reach => useSyncExternalStore(reach.subscribe, reach.since);

/** Whether a response is an answer of the server, and not a proxy's about one that is away. */
export function isAnswer(status: number, contentType: string | null): boolean {
  return !(status === 502 || status === 503 || status === 504) || /json/.test(contentType ?? '');
}
