// What is wrong with a template, at its place in the text as it is now.
import type { FieldError } from '../api/types';

/** Something found in a template: an error, or a warning that does not keep it from being saved. */
export interface Finding extends FieldError {
  warning?: true;
}

/**
 * Where the findings of one text are in another: those before the lines that were changed keep their places, those
 * after them move along. Inside, a line keeps its number only while no line came or went.
 */
export function moved<F extends FieldError>(found: F[], from: string, to: string): F[] {
  if (from === to) return found;
  const a = from.split('\n');
  const b = to.split('\n');
  const most = Math.min(a.length, b.length);
  let before = 0;
  while (before < most && a[before] === b[before]) before++;
  let after = 0;
  while (after < most - before && a[a.length - 1 - after] === b[b.length - 1 - after]) after++;
  return found.map((e) => {
    if (!e.line || e.line <= before) return e;
    if (e.line > a.length - after) return { ...e, line: e.line + b.length - a.length };
    return { ...e, line: a.length === b.length ? e.line : undefined, column: undefined };
  });
}

/** Sorts findings by their lines; those without one come last. */
export function inOrder<F extends FieldError>(found: F[]): F[] {
  const at = (e: F) => (e.line ? e.line * 1e6 + (e.column ?? 0) : Number.POSITIVE_INFINITY);
  return found
    .map((e, i) => ({ e, i }))
    .sort((x, y) => (at(x.e) === at(y.e) ? x.i - y.i : at(x.e) - at(y.e)))
    .map((x) => x.e);
}

const steps = (field: string) => field.match(/[^.[\]]+/g) ?? [];

/**
 * The line of a field in block YAML, or of the nearest group around it; undefined when the text has neither. It need
 * not understand what it passes: the server knows the lines of what it checks, this is for what the page finds.
 */
export function lineOf(source: string, field: string): number | undefined {
  const lines = source.split('\n');
  let from = 0;
  let to = lines.length;
  let indent = -1;
  let best: number | undefined;
  for (const step of steps(field)) {
    const item = /^\d+$/.test(step);
    const key = step.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const shape = item ? /^(\s*)-(?:\s|$)/ : new RegExp(`^(\\s*(?:-\\s+)*)["']?${key}["']?\\s*:(?:\\s|$)`);
    let nth = item ? Number(step) : 0;
    let level = -1;
    let at = -1;
    for (let i = from; i < to; i++) {
      const line = lines[i]!;
      if (/^\s*(?:#|$)/.test(line)) continue;
      const m = shape.exec(line);
      if (!m) continue;
      const deep = m[1]!.length;
      if (deep < indent || (deep === indent && !item) || (level >= 0 && deep !== level)) continue;
      level = deep;
      if (nth-- > 0) continue;
      at = i;
      break;
    }
    if (at < 0) break;
    best = at + 1;
    indent = level;
    // What belongs to it is indented further, or is on its own line.
    let end = at + 1;
    while (end < to) {
      const line = lines[end]!;
      const deep = /^\s*/.exec(line)![0].length;
      const listOf = !item && deep === indent && /^\s*-(?:\s|$)/.test(line);
      if (/\S/.test(line) && !/^\s*#/.test(line) && deep <= indent && !listOf) break;
      end++;
    }
    from = item ? at : at + 1;
    to = end;
    if (item) indent = level;
  }
  return best;
}

/** What the fields of a template are called in its form. */
const labels: Record<string, string> = {
  'workload.concurrent_connections': 'Connections',
  'workload.target_qps': 'Target rate',
  'workload.duration_seconds': 'Duration',
  'workload.warmup_seconds': 'Warm-up',
  'workload.think_time_ms': 'Think time',
  'workload.max_in_flight': 'Most in flight',
  'workload.statement_timeout_ms': 'Statement timeout',
  'workload.stages': 'Stages',
  'workload.load_mode': 'Load mode',
  'workload.arrival': 'Arrivals',
  'workload.plugin': 'Plugin',
  'scaling.worker_count': 'Workers',
  'scaling.per_worker_capacity': 'Capacity of a worker',
  'scaling.min_workers': 'Fewest workers',
  'scaling.max_workers': 'Most workers',
  'target.prepare.if_exists': 'If the table exists',
  'target.prepare.rows': 'Rows',
  'target.table_name': 'Table',
  'target.connection': 'Connection',
  'target.adapter': 'Table type',
};

const bare: Record<string, string> = Object.fromEntries(
  Object.entries(labels)
    .filter(([path]) => path.includes('_'))
    .map(([path, label]) => [path.split('.').at(-1)!, label]),
);

const values: Record<string, string> = {
  'mode BOUNDED': 'Scaling “Bounded”',
  'arrival: workload': 'Arrivals “Workload”',
};

/** A message of the server as the form says it: its labels in place of paths, and its choices in place of values. */
export function inForm(text: string): string {
  let out = text.replace(/ \(load_mode: [A-Z_]+\)/g, '');
  for (const [value, words] of Object.entries(values)) out = out.replaceAll(value, words);
  for (const [path, label] of Object.entries(labels)) out = out.replaceAll(path, `“${label}”`);
  return out.replace(/(?<![\w.“])[a-z]+(?:_[a-z]+)+(?![\w.(:])/g, (word) => (bare[word] ? `“${bare[word]}”` : word));
}
