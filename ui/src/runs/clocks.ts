import type { Payload, Phase } from '../api/types';
import type { LinkState } from '../api/socket';
import { clock } from '../design/format';

interface Clocks {
  /** Time since the run started, with preparation. */
  elapsed: string;
  /** Expected total with preparation; empty while unknown. */
  total: string;
  /** What follows the preparation, whose length is unknown. */
  then: string;
  phase: { at: string; of: string } | null;
}

/** clocks of a live run. All include preparation, so elapsed never exceeds total. */
export function clocks(t: Payload['timing'], phase: Phase | null): Clocks {
  const elapsed = clock(t.elapsed_display_seconds);
  const load = t.expected_seconds_total;
  const begin = t.warmup_start_time ?? t.measurement_start_time;
  const preparing = phase === 'PREPARING' || !begin || !t.start_time;
  const lead = preparing ? 0 : Math.max(0, (Date.parse(begin) - Date.parse(t.start_time!)) / 1000);
  const length = phase === 'WARMUP' ? t.warmup_seconds : phase === 'MEASUREMENT' ? t.duration_seconds : 0;
  return {
    elapsed,
    total: load > 0 && !preparing ? clock(lead + load) : '',
    then: load > 0 && preparing ? clock(load) : '',
    phase:
      length > 0 && t.phase_elapsed_seconds !== null
        ? { at: clock(Math.min(t.phase_elapsed_seconds, length)), of: clock(length) }
        : null,
  };
}

/** staleAfter: payloads arrive once a second; after this silence the page shows their age. */
const staleAfter = 2_000;

/** freshness describes stale figures; null while they are fresh. */
export function freshness(link: LinkState | 'off', lastMessageAt: number, now: number): string | null {
  const age = Math.max(0, now - lastMessageAt);
  const seconds = Math.round(age / 1000);
  if (link === 'lost') return `reconnecting, last update ${seconds} s ago`;
  if ((link === 'open' || link === 'connecting') && age >= staleAfter) return `no update for ${seconds} s`;
  return null;
}
