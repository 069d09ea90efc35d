// Statements of the workload sql as the form edits them, and the generators of their parameters.
import { namesOf } from './params';

export interface Bind {
  name: string;
  generator?: string;
  [field: string]: unknown;
}

export interface Statement {
  id: string;
  sql?: string;
  weight?: number;
  binds?: Bind[];
  transaction?: Statement[];
  [field: string]: unknown;
}

export interface GeneratorField {
  name: string;
  label: string;
  kind: 'number' | 'text' | 'values' | 'numbers';
  placeholder?: string;
}

const number = (name: string, label: string, placeholder?: string): GeneratorField => ({
  name,
  label,
  kind: 'number',
  placeholder,
});
const text = (name: string, label: string, placeholder?: string): GeneratorField => ({
  name,
  label,
  kind: 'text',
  placeholder,
});

/** The generators, in the order in which they are offered, with what each takes. */
export const generators: Record<string, { label: string; fields: GeneratorField[]; start: Record<string, unknown> }> = {
  uniform: {
    label: 'Uniform: any number of a range',
    fields: [number('min', 'From'), number('max', 'To'), number('decimals', 'Decimals', 'none')],
    start: { min: 1, max: 100_000 },
  },
  zipfian: {
    label: 'Zipfian: few numbers often',
    fields: [number('min', 'From'), number('max', 'To'), number('theta', 'Skew', '0.99')],
    start: { min: 1, max: 100_000 },
  },
  key: {
    label: 'Key of the table',
    fields: [number('theta', 'Skew', 'uniform'), text('column', 'Column', 'the key')],
    start: {},
  },
  new_key: { label: 'New key of the table', fields: [], start: {} },
  row: { label: 'Column of a row of the table', fields: [text('column', 'Column')], start: {} },
  sequence: {
    label: 'Sequence: each number once',
    fields: [number('start', 'From', '1'), number('step', 'Step', '1')],
    start: { start: 1 },
  },
  choice: {
    label: 'One of a list',
    fields: [
      { name: 'values', label: 'Values', kind: 'values', placeholder: 'new, paid, cancelled' },
      { name: 'weights', label: 'Weights', kind: 'numbers', placeholder: 'all alike' },
    ],
    start: { values: ['a', 'b'] },
  },
  text: {
    label: 'Text',
    fields: [number('length', 'Length', '16'), text('pattern', 'or a pattern', '??-####')],
    start: { length: 16 },
  },
  timestamp: {
    label: 'Time',
    fields: [text('from', 'From', '2024-01-01'), text('to', 'To', '2025-12-31')],
    start: { from: '2024-01-01', to: '2025-12-31' },
  },
  uuid: { label: 'UUID', fields: [], start: {} },
  normal: {
    label: 'Normal: around a mean',
    fields: [
      number('mean', 'Mean'),
      number('stddev', 'Deviation'),
      number('min', 'At least'),
      number('max', 'At most'),
    ],
    start: { mean: 100, stddev: 15 },
  },
  constant: { label: 'Always the same', fields: [text('value', 'Value')], start: { value: 1 } },
};

/** The generator of a bind; a list alone is a choice, a value alone is constant. */
export function generatorOf(b: Bind): string {
  if (b.ref !== undefined) return 'ref';
  return b.generator ?? (b.values !== undefined ? 'choice' : b.value !== undefined ? 'constant' : '');
}

/** The bind with another generator, which takes other fields. */
export function withGenerator(b: Bind, generator: string): Bind {
  if (generator === 'ref') return { name: b.name, ref: '' };
  const kept = Object.fromEntries(
    Object.entries(b).filter(
      ([k]) => ['nulls', 'type'].includes(k) || generators[generator]!.fields.some((f) => f.name === k),
    ),
  );
  return { name: b.name, generator, ...generators[generator]!.start, ...kept };
}

/** What a new parameter likely is, by its cast and its name. */
export function guess(name: string, cast: string): Bind {
  const is = (generator: string, more: Record<string, unknown> = {}) => ({
    ...withGenerator({ name }, generator),
    ...more,
  });
  if (/^(?:timestamp|timestamptz|date)/.test(cast) || (!cast && /(?:_at|_on|date|time|since|until)$/i.test(name)))
    return is('timestamp');
  if (cast === 'uuid' || (!cast && /uuid$/i.test(name))) return is('uuid');
  if (/^(?:numeric|decimal|real|double|float)/.test(cast) || (!cast && /(?:amount|price|total|balance)$/i.test(name)))
    return is('uniform', { min: 1, max: 1000, decimals: 2 });
  if (/^(?:text|varchar|char)/.test(cast) || (!cast && /(?:name|note|text|mail|comment|code|status)$/i.test(name)))
    return is('text');
  if (/^bool/.test(cast)) return is('choice', { values: [true, false] });
  if (/^(?:limit|offset|n)$/i.test(name)) return is('constant', { value: 10 });
  return is('uniform');
}

/**
 * The statement with another text: parameters that came have a generator, those that went have none. What a parameter
 * had is remembered, so that one that is written again is as it was. Names in shared belong to the transaction.
 */
export function withSql(s: Statement, sql: string, memory: Map<string, Bind>, shared: string[] = [], plain = false) {
  for (const b of s.binds ?? []) memory.set(b.name, b);
  const binds = namesOf(sql)
    .filter(({ name }) => !shared.includes(name))
    .map(({ name, cast }) => memory.get(name) ?? (plain ? { name, type: 'i64' } : guess(name, cast)));
  const next: Statement = { ...s, sql };
  if (binds.length) next.binds = binds;
  else delete next.binds;
  return next;
}

/** An id that no statement has yet. */
export function freshId(list: Statement[], begin = 'statement'): string {
  const used = new Set(list.flatMap((s) => [s.id, ...(s.transaction ?? []).map((t) => t.id)]));
  for (let n = 1; ; n++) if (!used.has(`${begin}_${n}`)) return `${begin}_${n}`;
}

/** Reads "new, paid, 3, null" as a list of values; what is in quotes is text. */
export function readValues(text: string): unknown[] {
  const parts = text.match(/\s*"(?:[^"]|"")*"\s*|[^,]+/g) ?? [];
  return parts
    .map((p) => p.trim())
    .filter((p) => p !== '')
    .map((p) => {
      if (/^".*"$/s.test(p)) return p.slice(1, -1).replaceAll('""', '"');
      if (p === 'null') return null;
      if (p === 'true' || p === 'false') return p === 'true';
      return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(p) && String(Number(p)) === p ? Number(p) : p;
    });
}

/** Writes a list of values so that readValues reads it. */
export function writeValues(list: unknown): string {
  if (!Array.isArray(list)) return '';
  return list
    .map((v) => {
      if (typeof v !== 'string') return String(v);
      const back = readValues(v);
      return back.length === 1 && back[0] === v ? v : `"${v.replaceAll('"', '""')}"`;
    })
    .join(', ');
}
