import type { SketchStage } from '../api/types';

/** Which of the two a stage changes. */
export type StageLevel = 'target_qps' | 'connections';

const seconds = (s: SketchStage) =>
  Number.isFinite(Number(s.duration_seconds)) ? Math.max(0, Number(s.duration_seconds)) : 0;

/** How long the stages last in all, in seconds. */
export function total(stages: SketchStage[]): number {
  return stages.reduce((sum, s) => sum + seconds(s), 0);
}

/** The corners of the curve that stages describe, from the level at the start: [seconds, level] each. */
export function corners(stages: SketchStage[], start: number | null | undefined, of: StageLevel): [number, number][] {
  const level = (s: SketchStage) => Math.max(0, Number(s[of]) || 0);
  // Without a level of its own the first stage begins where it ends.
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
