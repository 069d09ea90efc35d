import type { StageDraft } from '../api/types';

/** StageLevel is what a stage changes. */
export type StageLevel = 'target_qps' | 'connections';

const seconds = (s: StageDraft) =>
  Number.isFinite(Number(s.duration_seconds)) ? Math.max(0, Number(s.duration_seconds)) : 0;

/** totalSeconds is the length of all stages. */
export function totalSeconds(stages: StageDraft[]): number {
  return stages.reduce((sum, s) => sum + seconds(s), 0);
}

/** corners returns the curve of the stages as [seconds, level], starting at start. */
export function corners(stages: StageDraft[], start: number | null | undefined, of: StageLevel): [number, number][] {
  const level = (s: StageDraft) => Math.max(0, Number(s[of]) || 0);
  // Without a start level the first stage begins at its end level.
  let at = Number(start) || (stages[0] ? level(stages[0]) : 0);
  let t = 0;
  const out: [number, number][] = [[0, at]];
  for (const s of stages) {
    if (s.ramp === 'step') out.push([t, level(s)]);
    t += seconds(s);
    at = level(s);
    out.push([t, at]);
  }
  return out;
}
