import type { Payload, Phase } from '../api/types';
import type { Link } from '../api/socket';
import { clock } from '../design/format';

export interface Clocks {
  /** Time since the run was started, its preparation included. */
  elapsed: string;
  /** What the whole run takes, preparation included; empty while it cannot be known. */
  total: string;
  /** What follows the preparation, which takes as long as it takes. */
  then: string;
  phase: { at: string; of: string } | null;
}

/** The clocks of a live run. Preparation counts in all of them, so that elapsed never passes the total. */
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

/** Payloads come once a second; after this silence the page says how old its figures are. */
export const staleAfter = 2_000;

/** How fresh the figures of a live run are, in words; null while they are. */
export function freshness(link: Link | 'off', newsAt: number, now: number): string | null {
  const age = Math.max(0, now - newsAt);
  const seconds = Math.round(age / 1000);
  if (link === 'lost') return `reconnecting, last update ${seconds} s ago`;
  if ((link === 'open' || link === 'connecting') && age >= staleAfter) return `no update for ${seconds} s`;
  return null;
}
