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
    /** The time up to which what is shown is known: clocks that go on while nobody answers tell what is not so. */
    known: () => silent ?? now(),
    subscribe: (f: () => void) => {
      heard.add(f);
      return () => heard.delete(f);
    },
  };
}

export const reach = makeReach();

/** Since when the server does not answer; null while it does. */
export const useReach = (): Reach => useSyncExternalStore(reach.subscribe, reach.since);

/** Whether a response is an answer of the server, and not a proxy's about one that is away. */
export function isAnswer(status: number, contentType: string | null): boolean {
  return !(status === 502 || status === 503 || status === 504) || /json/.test(contentType ?? '');
}
