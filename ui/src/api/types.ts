// Names for the server's documents, whose types are generated from docs/openapi.json (schema.d.ts).
// Times are RFC 3339 in UTC, or null.
import type * as schema from './schema';

export type * from './schema';

export type Instant = string | null;
export type Status = schema.Run['status'];
export type Phase = schema.Run['phase'];
export type Verdict = schema.Validity['verdict'];
export type Health = schema.PayloadWorker['health'];
export type LogLevel = schema.LogEntry['level'];
export type Kind = schema.Statement['kind'];
export type LoadMode = schema.Workload['load_mode'];
export type GuardrailName = schema.GuardrailState['name'];
export type EnrichmentStatus = schema.Enrichment['status'];
export type ConnectionRef = schema.Target['connection'];

// Names that say more on the page than the server's own.
export type Plugin = schema.PluginEntry;
export type RunEvent = schema.Event;
export type ConnectionCheck = schema.ConnectionTest;
export type LatencySplit = schema.SplitMs;
export type ServerSplit = schema.ServerSplitMs;
export type PercentilesMs = schema.LatencyMs;
/** A stage, a scenario that is being written: what is left out has a default. */
export type SketchStage = Omit<schema.Stage, 'ramp'> & Partial<Pick<schema.Stage, 'ramp'>>;
export type SketchRule = Omit<schema.Rule, 'do'> & Partial<Pick<schema.Rule, 'do'>>;
export type Sketch = Omit<schema.Scenario, 'workload' | 'scaling' | 'find_max' | 'guardrails' | 'rules'> & {
  rules?: SketchRule[] | null;
  workload: Partial<Omit<schema.Workload, 'stages'>> & { stages?: SketchStage[] | null };
  scaling: Partial<schema.Scaling>;
  find_max?: Partial<schema.FindMax>;
  guardrails?: Partial<schema.Guardrails>;
};
/** One workload on several targets, with a run for each. */
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

/** Whether a run has rates: it has, unless its record is lost. */
export function isRated(f: Pick<schema.Figures, 'covered_seconds'>): boolean {
  return f.covered_seconds !== 0;
}

export function isTerminal(s: Status): boolean {
  return s === 'COMPLETED' || s === 'FAILED' || s === 'CANCELLED';
}

/** Reports whether figures of this run may still change: it has load, or its figures are being computed. */
export function isLive(run: { status: Status; phase: Phase | null }): boolean {
  return run.status !== 'PREPARED' && (!isTerminal(run.status) || run.phase === 'PROCESSING');
}

/** The points of a time series that was asked for without a run worker. */
export function ofRun(points: schema.Series['points']): schema.Point[] {
  return points.filter((p): p is schema.Point => !('worker_id' in p));
}

/** The points of a time series that was asked for by run worker. */
export function ofWorkers(points: schema.Series['points']): schema.WorkerPoint[] {
  return points.filter((p): p is schema.WorkerPoint => 'worker_id' in p);
}
