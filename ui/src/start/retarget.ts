// Carries the connection and table of a run over to the next question.
import type { RunDetail, ScenarioDraft } from '../api/types';
import { edit } from '../templates/draft';
import { get, set } from '../templates/schema';
import { scalar } from '../templates/yaml';

/** UsedTarget is the target of an earlier run. */
export interface UsedTarget {
  connection: string;
  adapter: string;
  table: string;
  /** The table existed before the run, so that no sample rows are loaded into it. */
  own: boolean;
}

/** usedTarget is the target of a run; null for a matrix, and for an address written into the template. */
export function usedTarget(run: Pick<RunDetail, 'scenario_config'>): UsedTarget | null {
  const t = run.scenario_config.target;
  if (!t || typeof t.connection !== 'string' || !t.connection) return null;
  return { connection: t.connection, adapter: t.adapter ?? '', table: t.table_name ?? '', own: !t.prepare };
}

/**
 * retarget puts a target into the text of an example and leaves the rest, with its comments, unchanged. With
 * keepsTable the table is kept too; a workload that brings its own tables takes the connection only.
 */
export function retarget(source: string, t: UsedTarget, keepsTable: boolean): string {
  const lines = source.split('\n');
  const start = lines.findIndex((l) => /^target:\s*(#.*)?$/.test(l));
  if (start < 0) return source;
  const after = lines.findIndex((l, i) => i > start && /^[^\s#]/.test(l));
  const end = after < 0 ? lines.length : after;
  const values: Record<string, string> = { connection: t.connection, ...(t.adapter && { adapter: t.adapter }) };
  if (keepsTable && t.table) values.table_name = t.table;
  const written = Object.entries(values).map(([k, v]) => `  ${k}: ${scalar(v)}`);
  let dropped = false;
  const rest = lines.slice(start + 1, end).filter((l) => {
    const key = /^ {2}(\w+):/.exec(l)?.[1];
    if (key) dropped = key in values || (key === 'prepare' && keepsTable && t.own);
    return !dropped;
  });
  return [...lines.slice(0, start + 1), ...written, ...rest, ...lines.slice(end)].join('\n');
}

/** objectiveFor proposes a P95 objective: the next round number above three times the measured one. */
export function objectiveFor(p95: number | null | undefined): number | undefined {
  if (!p95 || !Number.isFinite(p95)) return undefined;
  const unit = 10 ** Math.floor(Math.log10(3 * p95));
  const factor = [1, 2, 5, 10].find((m) => m * unit >= 3 * p95) ?? 10;
  return Number((factor * unit).toPrecision(3));
}

/** limitOf turns the template of a run into a search for the limit of the same table under the same operations. */
export function limitOf(config: ScenarioDraft, p95: number | null | undefined): ScenarioDraft {
  let next = edit({ ...config, name: `${config.name}: limit` }, 'workload.load_mode', 'FIND_MAX_CONCURRENCY');
  const objective = objectiveFor(p95);
  if (objective) next = set(next, 'find_max.slo.p95_ms', objective);
  next = set(next, 'find_max.step_duration_seconds', 5);
  next = set(next, 'workload.duration_seconds', undefined);
  next = set(next, 'rules', undefined);
  next = set(next, 'guardrails', undefined);
  // Steps beyond the limit are slow, so that thresholds on the whole run would fail it.
  const kept = (next.thresholds ?? []).filter((t) => /^(error_rate|max_)/.test(t));
  next = set(next, 'thresholds', kept.length ? kept : undefined);
  if (get(next, 'target.prepare.if_exists') === 'recreate') next = set(next, 'target.prepare.if_exists', 'use');
  return next;
}
