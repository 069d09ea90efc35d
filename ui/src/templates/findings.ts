// Errors of a template, mapped to positions in the current text.
import type { FieldError } from '../api/types';

/** Finding is an error, or a warning that does not prevent saving. */
export interface Finding extends FieldError {
  warning?: true;
}

/**
 * moveFindings maps findings from one text to another: before the changed lines they stay, after them they shift.
 * Inside, a line keeps its number only when the line count is unchanged.
 */
export function moveFindings<F extends FieldError>(found: F[], from: string, to: string): F[] {
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

/** sortByLine puts findings without a line last. */
export function sortByLine<F extends FieldError>(found: F[]): F[] {
  const at = (e: F) => (e.line ? e.line * 1e6 + (e.column ?? 0) : Number.POSITIVE_INFINITY);
  return found
    .map((e, i) => ({ e, i }))
    .sort((x, y) => (at(x.e) === at(y.e) ? x.i - y.i : at(x.e) - at(y.e)))
    .map((x) => x.e);
}

const steps = (field: string) => field.match(/[^.[\]]+/g) ?? [];

/**
 * lineOf finds a field, or its nearest parent, in block YAML; undefined without either. It is for the page's own
 * findings: the server reports lines itself.
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
    // Children are indented further, or on the same line.
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

/** labels are the form's names of template fields. */
const labels: Record<string, string> = {
  'workload.concurrent_connections': 'Connections',
  'workload.target_qps': 'Target rate',
  'workload.duration_seconds': 'Duration',
  'workload.warmup_seconds': 'Warm-up',
  'workload.think_time_ms': 'Think time',
  'workload.max_in_flight': 'Maximum in flight',
  'workload.statement_timeout_ms': 'Statement timeout',
  'workload.stages': 'Stages',
  'workload.load_mode': 'Load mode',
  'workload.arrival': 'Arrivals',
  'workload.plugin': 'Plugin',
  'scaling.worker_count': 'Workers',
  'scaling.per_worker_capacity': 'Capacity of a worker',
  'scaling.min_workers': 'Minimum workers',
  'scaling.max_workers': 'Maximum workers',
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

/** withFormLabels replaces paths and values in a server message by the form's labels. */
export function withFormLabels(text: string): string {
  let out = text.replace(/ \(load_mode: [A-Z_]+\)/g, '');
  for (const [value, words] of Object.entries(values)) out = out.replaceAll(value, words);
  for (const [path, label] of Object.entries(labels)) out = out.replaceAll(path, `“${label}”`);
  return out.replace(/(?<![\w.“])[a-z]+(?:_[a-z]+)+(?![\w.(:])/g, (word) => (bare[word] ? `“${bare[word]}”` : word));
}
