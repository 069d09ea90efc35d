import type { FieldError, Sketch } from '../api/types';
import { get, set } from './schema';

/** What the editor holds: the document in both forms, and which of them the user touched last. */
export interface Draft {
  config: Sketch;
  source: string;
  edited: 'form' | 'yaml' | null;
}

/** The connection to the database that a server brings. */
const builtin = 'playground';
type Connections = readonly { name: string }[] | undefined;
const without = (connections: Connections) => connections?.every((c) => c.name !== builtin);

/** The text of an example, which names the built-in database: none, as below, where there is none. */
export const elsewhere = (source: string, connections: Connections) =>
  without(connections)
    ? source.replaceAll(
        new RegExp(`^([ -]*connection:) ${builtin}\\b.*$`, 'gm'),
        "$1 ''   # the name of a connection of yours",
      )
    : source;

/** A new template. Where the built-in database is not among the connections, which may not be known, it names none. */
export function blank(connections?: Connections): Sketch {
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
      think_time_ms: 0,
      seed: 42,
    },
    scaling: { mode: 'FIXED', worker_count: 2, per_worker_capacity: 8 },
    thresholds: ['error_rate < 0.001'],
  };
}

/** The scenario without the fields that say where it came from. */
export function asNew(s: Sketch, name: string): Sketch {
  const { template_id: _id, template_name: _name, ...rest } = s;
  return { ...rest, name };
}

/**
 * Changes one field of the form's document. A capacity that was just enough for
 * the connections follows them, so that raising the load is one change and not two.
 */
export function edit(config: Sketch, path: string, value: unknown): Sketch {
  let next = set(config, path, value);
  if (path === 'workload.concurrent_connections' || path === 'scaling.worker_count') {
    const c = config.workload.concurrent_connections ?? 0;
    const n = config.scaling.worker_count ?? 0;
    const enough = Math.ceil(c / Math.max(1, n));
    const c2 = next.workload.concurrent_connections ?? 0;
    const n2 = next.scaling.worker_count ?? 0;
    if (config.scaling.per_worker_capacity === enough && c2 > 0 && n2 > 0)
      next = set(next, 'scaling.per_worker_capacity', Math.ceil(c2 / n2));
  }
  // Without a number of retries there is no policy, rather than one with the default number.
  if (path === 'workload.retry.max' && value === undefined) next = set(next, 'workload.retry', undefined);
  // An emptied drain leaves nothing of its group.
  if (path === 'workload.stop.drain_seconds' && value === undefined) next = set(next, 'workload.stop', undefined);
  // An emptied objective is none, and without one there are none.
  if (path.startsWith('find_max.slo.') && value === undefined) {
    const slo = get(next, 'find_max.slo') as Record<string, unknown> | undefined;
    if (Object.values(slo ?? {}).every((v) => v == null)) next = set(next, 'find_max.slo', undefined);
  }
  if (path === 'find_max.unit') next = searchOver(next, value === 'rate');
  if (path === 'workload.load_mode') {
    // What the other mode has no meaning for goes; what this one needs comes.
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
  // The stages say how long the measurement is.
  if (next.workload.stages?.length) next = set(next, 'workload.duration_seconds', undefined);
  else if (config.workload.stages?.length) next = set(next, 'workload.duration_seconds', 60);
  return next;
}

/**
 * Prepares the document for a search over the rate or over connections: with
 * the fields that it needs, and room on the workers to climb.
 */
function searchOver(config: Sketch, rate: boolean): Sketch {
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

/** What is sent to the server: the text where the user wrote text, else the document. */
export function body(d: Draft): { source: string } | { config: Sketch } {
  return d.edited === 'yaml' ? { source: d.source } : { config: d.config };
}

/** The parts of the document that the form shows whatever is chosen, as a whole. */
const always = ['target', 'matrix', 'workload.params', 'guardrails', 'thresholds', 'rules', 'tags'];

/** The errors that no control shows; there are the paths of the controls on the page. */
export function unshown(errors: FieldError[], there: string[]): FieldError[] {
  return errors.filter((e) => ![...always, ...there].some((p) => concerns(p, e.field)));
}

/** Reports whether an error at field belongs to a control for path: the field itself, or a part of it. */
export function concerns(path: string, field: string): boolean {
  return field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);
}
