import { useSyncExternalStore } from 'react';

/**
 * OfflineSince is the time of the server's last response before it went silent, in Unix milliseconds; null while it
 * answers.
 */
type OfflineSince = number | null;

/** createConnectivity tracks from the outcome of every request whether the server answers. */
export function createConnectivity(now: () => number = Date.now) {
  let last = now();
  let silent: OfflineSince = null;
  const listeners = new Set<() => void>();
  const set = (to: OfflineSince) => {
    if (to === silent) return;
    silent = to;
    for (const f of listeners) f();
  };
  return {
    answered: () => {
      last = now();
      set(null);
    },
    failed: () => {
      set(silent ?? last);
    },
    since: (): OfflineSince => silent,
    /** Time of the last response, in Unix milliseconds. */
    last: () => last,
    /** The time up to which the page's data is known. Running clocks stop here while the server is silent. */
    lastContact: () => silent ?? now(),
    subscribe: (f: () => void) => {
      listeners.add(f);
      return () => listeners.delete(f);
    },
  };
}

export const connectivity = createConnectivity();

/** probeAfter is how long a request may take before the server is probed; probeTimeout limits the probe. */
const probeAfter = 4_000;
const probeTimeout = 3_000;

/**
 * createWatchdog probes the server when a request takes long: a stopped process or a network that drops packets rejects
 * nothing. The returned function is called at the start of a request, and what it returns at the end.
 */
export function createWatchdog(
  of: Pick<ReturnType<typeof createConnectivity>, 'answered' | 'failed' | 'last'>,
  alive: (signal: AbortSignal) => Promise<boolean>,
  now: () => number = Date.now,
) {
  let asking = false;
  const look = async () => {
    if (asking || now() - of.last() < probeAfter) return;
    asking = true;
    const stop = new AbortController();
    const late = setTimeout(() => stop.abort(), probeTimeout);
    const reachable = await alive(stop.signal).catch(() => false);
    clearTimeout(late);
    asking = false;
    if (reachable) of.answered();
    // Another request may have succeeded meanwhile.
    else if (now() - of.last() >= probeAfter) of.failed();
  };
  return (): (() => void) => {
    const timer = setInterval(() => void look(), probeAfter);
    return () => clearInterval(timer);
  };
}

export const watchdog = createWatchdog(
  connectivity,
  async (signal) => (await fetch('/healthz', { signal, cache: 'no-store' })).ok,
);

/** useOfflineSince is the time of the last response; null while the server answers. */
export const useOfflineSince = (): OfflineSince => useSyncExternalStore(connectivity.subscribe, connectivity.since);

/** isServerResponse is false for the error page of a proxy whose server is down. */
export function isServerResponse(status: number, contentType: string | null): boolean {
  return !(status === 502 || status === 503 || status === 504) || /json/.test(contentType ?? '');
}
