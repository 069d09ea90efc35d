import type { FindMaxResult, FindMaxStep } from '../api/types';
import { count, latency, plain, rate } from '../design/format';

/** answerLevel is the level of the answer; null without one. */
export const answerLevel = (
  r: Pick<FindMaxResult, 'found' | 'max_target_qps' | 'max_connections'> | null | undefined,
) => (r?.found ? (r.max_target_qps ?? r.max_connections ?? null) : null);

/** levelText names a level of a search. */
export const levelText = (unit: FindMaxResult['unit'], n: number): string =>
  unit === 'rate' ? plain(rate(n)) : `${plain(count(n))} ${n === 1 ? 'connection' : 'connections'}`;

type Steps = Pick<FindMaxStep, 'outcome' | 'target_qps' | 'total_target_connections'>[];
const levelOf = (s: Steps[number]) => s.target_qps ?? s.total_target_connections;

/**
 * answerAdvice says what to try when a search ended at its own first level, or below it; '' when its answer lies
 * between levels that were tried.
 */
export function answerAdvice(
  r: Pick<FindMaxResult, 'found' | 'max_target_qps' | 'max_connections' | 'unit' | 'upper_bound'> & {
    history: Steps | null;
  },
): string {
  const steps = r.history ?? [];
  if (steps.length === 0) return '';
  const found = answerLevel(r);
  const first = levelOf(steps[0]!);
  const lowest = Math.min(...steps.map(levelOf));
  if (found === null)
    return `No level held, not even ${levelText(r.unit, lowest)}. Try a lower first step, or a higher objective.`;
  if (found >= r.upper_bound && steps.every((s) => s.outcome === 'STABLE'))
    return (
      `Every level held up to ${levelText(r.unit, found)}, the maximum of the search. ` +
      'Raise the maximum to find the limit.'
    );
  if (found <= first && steps.some((s) => levelOf(s) > found))
    return (
      `The answer is the first step of the search: nothing above ${levelText(r.unit, found)} held. ` +
      'Try a lower first step and a smaller increment to see how throughput grows below it.'
    );
  return '';
}

interface Confirmation {
  /** How many steps at the answer's level passed. */
  passes: number;
  attempts: number;
  /** How many repeated searches reached the answer; null for a single search. */
  searches: { reached: number; of: number } | null;
  /** Whether every repetition agreed. */
  confirmed: boolean;
  text: string;
}

/** confirmation counts the steps at the answer's level that passed. */
export function confirmation(r: FindMaxResult): Confirmation | null {
  const found = answerLevel(r);
  if (found === null) return null;
  const at = (r.history ?? []).filter((s) => (s.target_qps ?? s.total_target_connections) === found);
  // On a plateau more connections bring no more throughput, but the level still passes. A missed rate does not.
  const n = at.filter((s) => s.outcome === 'STABLE' || (s.outcome === 'PLATEAU' && s.target_qps === null)).length;
  const searches = r.spread
    ? {
        reached: (r.repetitions ?? []).filter((x) => x.level !== null && x.level >= found).length,
        of: r.spread.asked,
      }
    : null;
  const times = at.length === 1 && n === 1 ? 'passed once, not confirmed' : `passed ${n} of ${at.length} times`;
  return {
    passes: n,
    attempts: at.length,
    searches,
    // One failure is measured again before it counts.
    confirmed: r.confirmed && n > 1 && 2 * n > at.length && (!searches || searches.reached === searches.of),
    text: searches ? `${times}, ${searches.reached} of ${searches.of} searches reached it` : times,
  };
}

/** levelLabel is 'limit' only when a higher level failed. */
export function levelLabel(
  steps: Pick<FindMaxStep, 'outcome' | 'target_qps' | 'total_target_connections'>[],
  found: number,
) {
  const above = steps.some((s) => (s.target_qps ?? s.total_target_connections) > found && s.outcome !== 'STABLE');
  return above ? 'limit' : 'sustained';
}

/** searchHeadline is the answer as the run's headline. */
export function searchHeadline(r: FindMaxResult): string {
  const found = answerLevel(r);
  if (found === null && (r.late_steps ?? 0) > 0 && r.limit === undefined)
    return 'has no answer because the generator was late';
  if (found === null)
    return r.history?.length ? 'sustained none of the tested levels' : 'finished no step of the search';
  const level = levelText(r.unit, found);
  const atLevel = [
    r.unit === 'rate' ? '' : plain(rate(r.qps)),
    r.p95_latency_ms === null ? '' : `P95 ${plain(latency(r.p95_latency_ms))}`,
  ].filter(Boolean);
  return `sustains ${level}${atLevel.length ? ` with ${atLevel.join(', ')}` : ''} (${confirmation(r)!.text})`;
}

/** partialAnswer is the answer so far, when a search ended early. */
export function partialAnswer(r: FindMaxResult): string {
  const attempts = answerLevel(r) !== null || (r.history ?? []).length > 0;
  return attempts ? `so far, the target ${searchHeadline(r)}` : searchHeadline(r);
}
