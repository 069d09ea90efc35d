// A simplified template check for the mock.
import YAML, { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import type { FieldError, Scenario, Validation } from '../src/api/types';
import { scenario } from './data';

const known = [
  'name',
  'description',
  'template_id',
  'template_name',
  'target',
  'workload',
  'scaling',
  'find_max',
  'guardrails',
  'rules',
  'thresholds',
  'tags',
];
const workloadFields = Object.keys(scenario('x').workload);

/** Document is unvalidated input of the editor. */
interface Document {
  name?: string;
  target?: Partial<NonNullable<Scenario['target']>>;
  workload?: Partial<Scenario['workload']>;
  scaling?: Partial<Scenario['scaling']>;
  thresholds?: string[];
}

export function validate(body: { source?: string; config?: unknown }): Validation {
  let config = (body.config ?? {}) as Document;
  const errors: FieldError[] = [];
  let lineOf: (field: string) => number | undefined = () => undefined;
  if (body.source !== undefined && body.source !== '') {
    const counter = new LineCounter();
    const doc = parseDocument(body.source, { lineCounter: counter });
    if (doc.errors.length) {
      const line = counter.linePos(doc.errors[0]!.pos[0]).line;
      return {
        valid: false,
        warnings: [],
        errors: [
          {
            field: `(line ${line})`,
            message: 'is not YAML: mapping values are not allowed here',
            hint: 'check the indentation, quotes and colons there',
            line,
          },
        ],
        config: null,
        source: body.source,
      };
    }
    config = (doc.toJS() ?? {}) as Document;
    lineOf = (field) => {
      for (let path = field.split('.'); path.length; path = path.slice(0, -1)) {
        const parent = path.length > 1 ? doc.getIn(path.slice(0, -1), true) : doc.contents;
        const pair = isMap(parent) ? parent.items.find((i) => isScalar(i.key) && i.key.value === path.at(-1)) : null;
        if (pair && isScalar(pair.key) && pair.key.range) return counter.linePos(pair.key.range[0]).line;
      }
      return undefined;
    };
  }
  const wrong = (field: string, message: string, hint: string) =>
    errors.push({ field, message, hint, line: lineOf(field) });
  const w = config.workload ?? {};
  if (!config.name) wrong('name', 'is required', 'a name for people, 1 to 200 characters');
  for (const k of Object.keys(config))
    if (!known.includes(k))
      wrong(k, 'is not a field of a template', `did you mean ${known.find((n) => n[0] === k[0]) ?? 'name'}?`);
  for (const k of Object.keys(w))
    if (!workloadFields.includes(k))
      wrong(
        `workload.${k}`,
        'is not a field of workload',
        `did you mean ${workloadFields.find((n) => n.startsWith(k.slice(0, 3))) ?? 'plugin'}?`,
      );
  if (!config.target?.table_name) wrong('target.table_name', 'is required', "the table's name");
  const range = (field: string, v: unknown, lo: number, hi: number) => {
    if (v === undefined || v === null) return;
    if (typeof v !== 'number') wrong(field, 'is not a number', `${lo} to ${hi}`);
    else if (v < lo || v > hi) wrong(field, `${String(v)} is out of range`, `${lo} to ${hi}`);
  };
  range('workload.concurrent_connections', w.concurrent_connections, 1, 20000);
  range('workload.duration_seconds', w.duration_seconds, 0.1, 604800);
  range('workload.warmup_seconds', w.warmup_seconds, 0, 86400);
  range('target.prepare.rows', config.target?.prepare?.rows, 1, 1e9);
  const s = config.scaling ?? {};
  if (
    s.worker_count &&
    s.per_worker_capacity &&
    (w.concurrent_connections ?? 0) > s.worker_count * s.per_worker_capacity
  )
    wrong(
      'workload.concurrent_connections',
      `${w.concurrent_connections} connections do not fit: scaling.worker_count ${s.worker_count} × ` +
        `scaling.per_worker_capacity ${s.per_worker_capacity} = ${s.worker_count * s.per_worker_capacity}`,
      'raise worker_count or per_worker_capacity, or ask for fewer connections',
    );
  (config.thresholds ?? []).forEach((t, i) => {
    if (!/^[\w.]+\s*[<>]=?\s*[\d.]+$/.test(t))
      wrong(`thresholds[${i}]`, `“${t}” is not a threshold`, 'write it like p95_ms < 50');
  });
  if (errors.length) return { valid: false, errors, warnings: [], config: null, source: body.source ?? '' };
  const base = scenario(config.name ?? '');
  const full: Scenario = {
    ...base,
    guardrails: {},
    thresholds: [],
    tags: {},
    ...config,
    target: { ...base.target, ...config.target },
    workload: { ...base.workload, params: {}, ...w },
    scaling: { ...base.scaling, ...s },
  };
  return { valid: true, errors: [], warnings: [], config: full, source: body.source || YAML.stringify(full) };
}
