// Statements of the workload sql in the form, and the generators of their parameters.
import type { Place } from './columns';
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

/** generators are in menu order, with their fields. */
export const generators: Record<string, { label: string; fields: GeneratorField[]; start: Record<string, unknown> }> = {
  uniform: {
    label: 'Uniform: any number of a range',
    fields: [number('min', 'From'), number('max', 'To'), number('decimals', 'Decimals', 'none')],
    start: { min: 1, max: 100_000 },
  },
  zipfian: {
    label: 'Zipfian: few numbers occur often',
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
      { name: 'weights', label: 'Weights', kind: 'numbers', placeholder: 'equal' },
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

/** generatorOf: a list alone is a choice, a value alone is a constant. */
export function generatorOf(b: Bind): string {
  if (b.ref !== undefined) return 'ref';
  return b.generator ?? (b.values !== undefined ? 'choice' : b.value !== undefined ? 'constant' : '');
}

/** withGenerator switches a bind's generator and drops fields that do not apply. */
export function withGenerator(b: Bind, generator: string): Bind {
  if (generator === 'ref') return { name: b.name, ref: '' };
  const common = Object.fromEntries(
    Object.entries(b).filter(
      ([k]) => ['nulls', 'type'].includes(k) || generators[generator]!.fields.some((f) => f.name === k),
    ),
  );
  return { name: b.name, generator, ...generators[generator]!.start, ...common };
}

/**
 * guessBind picks a generator by the cast, the column, or the name. A key lookup in the template's own table uses
 * existing keys.
 */
export function guessBind(name: string, cast: string, place?: Place): Bind {
  const is = (generator: string, more: Record<string, unknown> = {}) => ({
    ...withGenerator({ name }, generator),
    ...more,
  });
  const { use, column } = place ?? {};
  if (use === 'limit' || use === 'offset') return is('constant', { value: use === 'limit' ? 10 : 0 });
  if (cast) return ofType(cast, name, is) ?? is('uniform');
  if (column) {
    if (use === 'find' && column.key && place?.own) return is('key');
    if (use === 'store' && column.key && place?.own && whole.test(column.type)) return is('new_key');
    if (use === 'like') return { name, generator: 'text', pattern: '??%' };
    if (column.values?.length) return is('choice', { values: column.values });
    const type = use === 'any' ? `${column.type}[]` : column.type;
    const found = ofType(type, name, is);
    if (found) return found;
  }
  if (/(?:_at|_on|date|time|since|until)$/i.test(name)) return is('timestamp');
  if (/uuid$/i.test(name)) return is('uuid');
  if (/(?:amount|price|total|balance)$/i.test(name)) return is('uniform', { min: 1, max: 1000, decimals: 2 });
  if (/(?:name|note|text|mail|comment|code|status)$/i.test(name)) return is('text');
  if (/^(?:limit|offset|n)$/i.test(name)) return is('constant', { value: 10 });
  return is('uniform');
}

const whole = /^(?:smallint|integer|int\d?|bigint|oid)\b/;

/** Array elements as patterns with random digits. */
const elements: [RegExp, string][] = [
  [whole, '{1#,2#}'],
  [/^(?:numeric|real|double|float)/, '{1#.#,2#.#}'],
  [/^bool/, '{t,f}'],
  [/^(?:text|character|varchar|citext)/, '{???,???}'],
];

/** Types whose values are written as a pattern. */
const patterns: [RegExp, string][] = [
  [/^(?:jsonb?|variant|object)$/, '{"n": "##"}'],
  [/^time\b/, '1#:2#:3#'],
  [/^interval/, '## minutes'],
  [/^inet/, '10.#.#.#'],
  [/^cidr/, '10.#.#.0/24'],
  [/^macaddr/, '08:00:2b:##:##:##'],
  [/^point/, '(1#,2#)'],
];

/** ofType is the generator of a database type, in lower case; null when unknown. */
function ofType(
  type: string,
  name: string,
  is: (generator: string, more?: Record<string, unknown>) => Bind,
): Bind | null {
  const pattern = (text: string): Bind => ({ name, generator: 'text', pattern: text });
  if (type.endsWith('[]')) {
    const found = elements.find(([of]) => of.test(type));
    return found ? pattern(found[1]) : is('constant', { value: '{}' });
  }
  const found = patterns.find(([of]) => of.test(type));
  if (found && !/^timestamp/.test(type)) return pattern(found[1]);
  if (/^(?:timestamp|date)/.test(type)) return is('timestamp');
  if (/^uuid/.test(type)) return is('uuid');
  if (/^bool/.test(type)) return is('choice', { values: [true, false] });
  if (/^(?:bytea|binary|varbinary)/.test(type)) return is('text', { type: 'bytes' });
  if (/^smallint/.test(type)) return is('uniform', { max: 1000 });
  if (whole.test(type)) return is('uniform');
  const digits = /^(?:numeric|decimal|number)(?:\((\d+)(?:,(-?\d+))?\))?/.exec(type);
  if (digits) {
    const decimals = digits[1] ? Math.max(0, Math.min(9, Number(digits[2] ?? 0))) : 2;
    const before = digits[1] ? Number(digits[1]) - Number(digits[2] ?? 0) : 9;
    const max = before <= 0 ? 0 : Math.min(1000, 10 ** before - 1);
    return is('uniform', { min: max > 1 ? 1 : 0, max, ...(decimals ? { decimals } : {}) });
  }
  if (/^(?:real|double|float|money)/.test(type)) return is('uniform', { max: 1000, decimals: 2 });
  const text = /^(?:text|character|varchar|char|bpchar|citext|name|string)\b[^(]*(?:\((\d+)\))?/.exec(type);
  if (text) {
    const maxLength = text[1]
      ? Number(text[1])
      : type === 'character' || type === 'char'
        ? 1
        : Number.POSITIVE_INFINITY;
    const mail = '????????@example.com';
    if (/e?_?mail$/i.test(name) && maxLength >= mail.length) return pattern(mail);
    return is('text', { length: Math.min(16, maxLength) });
  }
  return null;
}

/** plainType is the type of a replayed value, which the database reads as its column's type. */
function plainType(place?: Place): string {
  const type = place?.column?.type ?? '';
  if (!type || whole.test(type) || place?.use === 'limit' || place?.use === 'offset') return 'i64';
  if (/^(?:real|double|float)/.test(type)) return 'f64';
  if (/^bool/.test(type)) return 'bool';
  if (/^(?:timestamp|date)/.test(type)) return 'timestamp';
  return /^(?:bytea|binary)/.test(type) ? 'bytes' : 'text';
}

/** Memory keeps removed binds, and guesses the user has not changed. */
export interface Memory {
  binds: Map<string, Bind>;
  guessed: Map<string, string>;
}

export const newMemory = (): Memory => ({ binds: new Map(), guessed: new Map() });

/**
 * withSql changes a statement's text: new parameters get a generator, removed ones lose it. A parameter that returns
 * gets its old generator; guesses are repeated. Names in shared belong to the transaction.
 */
export function withSql(
  s: Statement,
  sql: string,
  memory: Memory,
  shared: string[] = [],
  plain = false,
  places = new Map<string, Place>(),
) {
  for (const b of s.binds ?? []) memory.binds.set(b.name, b);
  const binds = namesOf(sql)
    .filter(({ name }) => !shared.includes(name))
    .map(({ name, cast }) => {
      const had = memory.binds.get(name);
      if (had && JSON.stringify(had) !== memory.guessed.get(name)) return had;
      const place = places.get(name);
      const fresh = plain ? { name, type: plainType(place) } : guessBind(name, cast, place);
      memory.guessed.set(name, JSON.stringify(fresh));
      return fresh;
    });
  const next: Statement = { ...s, sql };
  if (binds.length) next.binds = binds;
  else delete next.binds;
  return next;
}

/** unusedId returns an id that no statement has. */
export function unusedId(list: Statement[], begin = 'statement'): string {
  const used = new Set(list.flatMap((s) => [s.id, ...(s.transaction ?? []).map((t) => t.id)]));
  for (let n = 1; ; n++) if (!used.has(`${begin}_${n}`)) return `${begin}_${n}`;
}

/** readValues parses "new, paid, 3, null"; quoted values are strings. */
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

/** writeValues is the inverse of readValues. */
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
