import type { FieldError, ScenarioDraft } from '../api/types';
import { get, set } from './schema';

/** Draft is the document as form and as text, and which of them was edited last. */
export interface Draft {
  config: ScenarioDraft;
  source: string;
  edited: 'form' | 'yaml' | null;
}

/** builtin is the server's built-in connection. */
const builtin = 'playground';
type Connections = readonly { name: string }[] | undefined;
const without = (connections: Connections) => connections?.every((c) => c.name !== builtin);

/** exampleSource drops the built-in connection from an example when the server has none. */
export const exampleSource = (source: string, connections: Connections) =>
  without(connections)
    ? source.replaceAll(new RegExp(`^([ -]*connection:) ${builtin}\\b.*$`, 'gm'), "$1 ''   # the name of a connection")
    : source;

/** blank is a new template. Without the built-in connection it names none. */
export function blank(connections?: Connections): ScenarioDraft {
  return {
    name: '',
    target: {
      connection: without(connections) ? '' : builtin,
      adapter: 'postgres',
      table_name: 'orders',
      prepare: { rows: 100_000, if_exists: 'use' },
    },
    workload: {
      plugin: 'mix',
      params: {},
      load_mode: 'CONCURRENCY',
      concurrent_connections: 16,
      duration_seconds: 60,
      warmup_seconds: 5,
      seed: 42,
    },
    scaling: { mode: 'FIXED', worker_count: 2, per_worker_capacity: 8 },
    thresholds: ['error_rate < 0.001'],
  };
}

/** asNewTemplate drops the fields that identify the original. */
export function asNewTemplate(s: ScenarioDraft, name: string): ScenarioDraft {
  const { template_id: _id, template_name: _name, ...rest } = s;
  return { ...rest, name };
}

/**
 * edit changes one field. A capacity that just fits the connections grows with them, so that raising the load is one
 * change.
 */
export function edit(config: ScenarioDraft, path: string, value: unknown): ScenarioDraft {
  let next = set(config, path, value);
  if (path === 'workload.concurrent_connections' || path === 'scaling.worker_count') {
    const c = config.workload.concurrent_connections ?? 0;
    const n = config.scaling.worker_count ?? 0;
    const required = Math.ceil(c / Math.max(1, n));
    const c2 = next.workload.concurrent_connections ?? 0;
    const n2 = next.scaling.worker_count ?? 0;
    if (config.scaling.per_worker_capacity === required && c2 > 0 && n2 > 0)
      next = set(next, 'scaling.per_worker_capacity', Math.ceil(c2 / n2));
  }
  // Without a retry count there is no policy, rather than one with the default count.
  if (path === 'workload.retry.max' && value === undefined) next = set(next, 'workload.retry', undefined);
  // An empty drain removes its group.
  if (path === 'workload.stop.drain_seconds' && value === undefined) next = set(next, 'workload.stop', undefined);
  // An empty objective is none; without objectives the group goes.
  if (path.startsWith('find_max.slo.') && value === undefined) {
    const slo = get(next, 'find_max.slo') as Record<string, unknown> | undefined;
    if (Object.values(slo ?? {}).every((v) => v == null)) next = set(next, 'find_max.slo', undefined);
  }
  if (path === 'find_max.unit') next = searchOver(next, value === 'rate');
  if (path === 'workload.load_mode') {
    // Fields of the other mode go; fields of this mode appear.
    next = set(next, 'workload.stages', undefined);
    if (value === 'QPS') {
      next = set(next, 'workload.think_time_ms', undefined);
      if (get(next, 'workload.target_qps') == null) next = set(next, 'workload.target_qps', 500);
    } else {
      for (const field of ['target_qps', 'arrival', 'max_in_flight']) next = set(next, `workload.${field}`, undefined);
    }
    if (value === 'FIND_MAX_CONCURRENCY') next = searchOver(next, false);
    else if (config.workload.load_mode === 'FIND_MAX_CONCURRENCY') {
      next = set(next, 'find_max', undefined);
      next = set(next, 'workload.concurrent_connections', 16);
      next = set(next, 'scaling.per_worker_capacity', Math.ceil(16 / Math.max(1, next.scaling.worker_count ?? 0)));
      if (get(next, 'workload.duration_seconds') == null) next = set(next, 'workload.duration_seconds', 60);
    }
  }
  if (path === 'workload.arrival') {
    if (value === 'workload') {
      next = set(next, 'workload.target_qps', undefined);
      next = set(next, 'workload.stages', undefined);
    } else if (get(next, 'workload.target_qps') == null) next = set(next, 'workload.target_qps', 500);
  }
  // The stages define the measurement's length.
  if (next.workload.stages?.length) next = set(next, 'workload.duration_seconds', undefined);
  else if (config.workload.stages?.length) next = set(next, 'workload.duration_seconds', 60);
  return next;
}

/** searchOver prepares a search over rate or connections: required fields, and enough worker capacity. */
function searchOver(config: ScenarioDraft, rate: boolean): ScenarioDraft {
  let next = set(config, 'find_max.enabled', true);
  next = set(next, 'find_max.unit', rate ? 'rate' : 'connections');
  next = set(next, 'find_max.start_rate', rate ? (get(next, 'find_max.start_rate') ?? 500) : undefined);
  next = set(next, 'scaling.per_worker_capacity', undefined);
  if (rate) {
    next = set(next, 'workload.concurrent_connections', 64);
    next = set(next, 'workload.think_time_ms', undefined);
    return set(next, 'find_max.max_concurrency', undefined);
  }
  if (get(next, 'find_max.start_concurrency') == null) next = set(next, 'find_max.start_concurrency', 4);
  for (const field of ['rate_increment', 'max_rate']) next = set(next, `find_max.${field}`, undefined);
  return next;
}

/** draftBody is the request body: the text when it was edited, else the document. */
export function draftBody(d: Draft): { source: string } | { config: ScenarioDraft } {
  return d.edited === 'yaml' ? { source: d.source } : { config: d.config };
}

/** shownPaths are always visible in the form as a whole. */
const shownPaths = ['target', 'matrix', 'workload.params', 'guardrails', 'thresholds', 'rules', 'tags'];

/** unplacedErrors are errors without a control; fieldPaths are the visible controls. */
export function unplacedErrors(errors: FieldError[], fieldPaths: string[]): FieldError[] {
  return errors.filter((e) => ![...shownPaths, ...fieldPaths].some((p) => appliesTo(p, e.field)));
}

/** appliesTo reports whether an error belongs to a control: its field, or a part of it. */
export function appliesTo(path: string, field: string): boolean {
  return field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);
}
