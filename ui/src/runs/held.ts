import type { FindMaxResult, FindMaxStep } from '../api/types';
import { count, latency, plain, rate } from '../design/format';

/** The answer's level, null when there is none. */
export const answer = (r: Pick<FindMaxResult, 'found' | 'max_target_qps' | 'max_connections'> | null | undefined) =>
  r?.found ? (r.max_target_qps ?? r.max_connections ?? null) : null;

export interface Held {
  /** Of the steps at the answer's level, how many held. */
  held: number;
  tried: number;
  /** Of repeated searches, how many reach the answer; null for a single one. */
  searches: { reach: number; of: number } | null;
  /** Whether nothing that was repeated gave another result. */
  sure: boolean;
  words: string;
}

/** How often the answer of a search held, counted in the steps that were made at its level. */
export function held(r: FindMaxResult): Held | null {
  const found = answer(r);
  if (found === null) return null;
  const at = (r.history ?? []).filter((s) => (s.target_qps ?? s.total_target_connections) === found);
  // Where more brings no more throughput the level still bears its load.
  const n = at.filter((s) => s.outcome === 'STABLE' || s.outcome === 'PLATEAU').length;
  const searches = r.spread
    ? {
        reach: (r.repetitions ?? []).filter((x) => x.level !== null && x.level >= found).length,
        of: r.spread.asked,
      }
    : null;
  const times = at.length === 1 && n === 1 ? 'held once, not repeated' : `held ${n} of ${at.length} times`;
  return {
    held: n,
    tried: at.length,
    searches,
    sure: at.length > 1 && n === at.length && (!searches || searches.reach === searches.of),
    words: searches ? `${times}, ${searches.reach} of ${searches.of} searches reach it` : times,
  };
}

/**
 * What to call the answer's level in a chart of the steps: a limit is known only where something above it did not hold.
 */
export function word(steps: Pick<FindMaxStep, 'outcome' | 'target_qps' | 'total_target_connections'>[], found: number) {
  const above = steps.some((s) => (s.target_qps ?? s.total_target_connections) > found && s.outcome !== 'STABLE');
  return above ? 'limit' : 'sustained';
}

/** The answer of a search as the headline of its run. */
export function headline(r: FindMaxResult): string {
  const found = answer(r);
  if (found === null)
    return r.history?.length ? 'sustains no level that was tried' : 'no step of the search was finished';
  const level =
    r.unit === 'rate' ? plain(rate(found)) : `${plain(count(found))} ${found === 1 ? 'connection' : 'connections'}`;
  const there = [
    r.unit === 'rate' ? '' : plain(rate(r.qps)),
    r.p95_latency_ms === null ? '' : `P95 ${plain(latency(r.p95_latency_ms))}`,
  ].filter(Boolean);
  return `sustains ${level}${there.length ? ` with ${there.join(', ')}` : ''} (${held(r)!.words})`;
}

/** The same behind the reason for which a search ended before its answer. */
export function soFar(r: FindMaxResult): string {
  const tried = answer(r) !== null || (r.history ?? []).length > 0;
  return tried ? `as far as it came, the target ${headline(r)}` : headline(r);
}
