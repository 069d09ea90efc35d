// Names for the server's documents, whose types are generated from docs/openapi.json (schema.d.ts). Times are RFC 3339
// in UTC, or null.
import type * as schema from './schema';

export type * from './schema';

export type Status = schema.Run['status'];
export type Phase = schema.Run['phase'];
export type Verdict = schema.Validity['verdict'];
export type Health = schema.PayloadWorker['health'];
export type LogLevel = schema.LogEntry['level'];
export type Kind = schema.Statement['kind'];
export type GuardrailName = schema.GuardrailState['name'];

// Clearer names than the schema's.
export type Plugin = schema.PluginEntry;
export type RunEvent = schema.Event;
export type ConnectionCheck = schema.ConnectionTest;
export type LatencySplit = schema.SplitMs;
export type ServerSplit = schema.ServerSplitMs;
/** A stage or scenario being edited: omitted fields have defaults. */
export type StageDraft = Omit<schema.Stage, 'ramp'> & Partial<Pick<schema.Stage, 'ramp'>>;
export type RuleDraft = Omit<schema.Rule, 'do'> & Partial<Pick<schema.Rule, 'do'>>;
export type ScenarioDraft = Omit<schema.Scenario, 'workload' | 'scaling' | 'find_max' | 'guardrails' | 'rules'> & {
  rules?: RuleDraft[] | null;
  workload: Partial<Omit<schema.Workload, 'stages'>> & { stages?: StageDraft[] | null };
  scaling: Partial<schema.Scaling>;
  find_max?: Partial<schema.FindMax>;
  guardrails?: Partial<schema.Guardrails>;
};
/** Matrix is one workload on several targets, with a run for each. */
export type Matrix = schema.MatrixState;

export const kinds = [
  'POINT_LOOKUP',
  'RANGE_SCAN',
  'INSERT',
  'UPDATE',
  'DELETE',
  'GENERIC_SQL',
  'TRANSACTION',
] as const satisfies Kind[];

/** hasRates is false when nothing was measured, and when the run's record is lost. */
export function hasRates(f: Pick<schema.Figures, 'qps'>): boolean {
  return f.qps !== null && f.qps !== undefined;
}

export function isTerminal(s: Status): boolean {
  return s === 'COMPLETED' || s === 'FAILED' || s === 'CANCELLED';
}

/** isLive reports whether the run's figures may still change: it has load, or is being processed. */
export function isLive(run: { status: Status; phase: Phase | null }): boolean {
  return run.status !== 'PREPARED' && (!isTerminal(run.status) || run.phase === 'PROCESSING');
}

/** runPoints narrows a time series of the whole run. */
export function runPoints(points: schema.Series['points']): schema.Point[] {
  return points.filter((p): p is schema.Point => !('worker_id' in p));
}

/** asWorkerPoints narrows a time series by run worker. */
export function asWorkerPoints(points: schema.Series['points']): schema.WorkerPoint[] {
  return points.filter((p): p is schema.WorkerPoint => 'worker_id' in p);
}
