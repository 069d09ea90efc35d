/** Schema is the subset of JSON Schema that forms support. */
export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  examples?: unknown[];
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
}

type FieldKind = 'number' | 'integer' | 'text' | 'choice' | 'switch' | 'group' | 'weights' | 'list' | 'json';

export function schemaType(s: Schema): string {
  const t = Array.isArray(s.type) ? s.type.find((x) => x !== 'null') : s.type;
  if (t) return t;
  if (s.properties) return 'object';
  return s.enum ? typeof s.enum[0] : 'any';
}

/** fieldKind picks a parameter's control. */
export function fieldKind(s: Schema): FieldKind {
  if (s.enum) return 'choice';
  switch (schemaType(s)) {
    case 'integer':
      return 'integer';
    case 'number':
      return 'number';
    case 'boolean':
      return 'switch';
    case 'string':
      return 'text';
    case 'object': {
      const all = Object.values(s.properties ?? {});
      if (all.length === 0) return 'json';
      // A few non-negative numbers without a common unit are weights.
      const shares =
        all.length > 2 && all.every((p) => ['number', 'integer'].includes(schemaType(p)) && p.minimum === 0 && !p.enum);
      return shares ? 'weights' : 'group';
    }
    case 'array':
      return s.items && ['string', 'number', 'integer'].includes(schemaType(s.items)) ? 'list' : 'json';
    default:
      return 'json';
  }
}

/** limits describes a parameter's range: "0 to 5", "at least 1", "". */
export function limits(s: Schema): string {
  const lo = s.minimum ?? s.exclusiveMinimum;
  const hi = s.maximum ?? s.exclusiveMaximum;
  const n = (v: number) => v.toLocaleString('en-US');
  if (lo !== undefined && hi !== undefined)
    return `${s.exclusiveMinimum !== undefined ? 'above ' : ''}${n(lo)} to ${n(hi)}`;
  if (lo !== undefined) return `${s.exclusiveMinimum !== undefined ? 'above' : 'at least'} ${n(lo)}`;
  if (hi !== undefined) return `at most ${n(hi)}`;
  return '';
}

/** check validates a value against its schema. Only "required" concerns missing values. */
export function check(value: unknown, s: Schema, path: string): { field: string; message: string; hint?: string }[] {
  if (value === undefined || value === null) return [];
  const types = Array.isArray(s.type) ? s.type.filter((x) => x !== 'null') : [];
  if (types.length > 1) {
    const found = types.map((type) => check(value, { ...s, type }, path));
    return found.find((f) => f.length === 0) ?? found[Math.max(types.indexOf(typeof value), 0)]!;
  }
  const out: { field: string; message: string; hint?: string }[] = [];
  const wrong = (message: string, hint?: string) => out.push({ field: path, message, hint });
  if (s.enum && !s.enum.includes(value)) {
    wrong(`is not one of ${s.enum.join(', ')}`);
    return out;
  }
  switch (schemaType(s)) {
    case 'integer':
    case 'number': {
      if (typeof value !== 'number' || !Number.isFinite(value)) wrong('is not a number');
      else if (schemaType(s) === 'integer' && !Number.isInteger(value)) wrong('is not a whole number');
      else if (
        (s.minimum !== undefined && value < s.minimum) ||
        (s.maximum !== undefined && value > s.maximum) ||
        (s.exclusiveMinimum !== undefined && value <= s.exclusiveMinimum) ||
        (s.exclusiveMaximum !== undefined && value >= s.exclusiveMaximum)
      )
        wrong('is out of range', limits(s));
      break;
    }
    case 'boolean':
      if (typeof value !== 'boolean') wrong('is not true or false');
      break;
    case 'string':
      if (typeof value !== 'string') wrong('is not text');
      else if (s.minLength !== undefined && value.length < s.minLength)
        wrong('is too short', `at least ${s.minLength} characters`);
      else if (s.maxLength !== undefined && value.length > s.maxLength)
        wrong('is too long', `at most ${s.maxLength} characters`);
      break;
    case 'array':
      if (!Array.isArray(value)) wrong('is not a list');
      else out.push(...value.flatMap((v, i) => check(v, s.items ?? {}, `${path}[${i}]`)));
      break;
    case 'object': {
      if (typeof value !== 'object' || Array.isArray(value)) {
        wrong('is not an object');
        break;
      }
      const obj = value as Record<string, unknown>;
      for (const k of s.required ?? [])
        if (obj[k] === undefined) out.push({ field: `${path}.${k}`, message: 'is required' });
      for (const [k, v] of Object.entries(obj)) {
        const p = s.properties?.[k];
        if (p) out.push(...check(v, p, `${path}.${k}`));
        else if (s.additionalProperties === false)
          out.push({ field: `${path}.${k}`, message: 'is not a parameter of this plugin' });
      }
      break;
    }
  }
  return out;
}

interface Described {
  path: string;
  type: string;
  fallback: string;
  description: string;
}

/** describe lists all parameters with their paths. */
export function describe(s: Schema, prefix = ''): Described[] {
  return Object.entries(s.properties ?? {}).flatMap(([k, p]) => {
    const path = prefix ? `${prefix}.${k}` : k;
    if (p.properties) return describe(p, path);
    const range = limits(p);
    return [
      {
        path,
        type: p.enum ? p.enum.join(' | ') : `${schemaType(p)}${range ? `, ${range}` : ''}`,
        fallback: p.default === undefined ? '–' : JSON.stringify(p.default),
        description: p.description ?? p.title ?? '',
      },
    ];
  });
}

/** shownAs formats a value for a control: '' for none, JSON for objects and arrays. */
export function shownAs(v: unknown): string {
  if (v === undefined || v === null) return '';
  return typeof v === 'string' ? v : JSON.stringify(v);
}

/** get reads a path such as "workload.params.keys". */
export function get(doc: unknown, path: string): unknown {
  let at: unknown = doc;
  for (const key of path.split('.')) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}

/** set returns a copy with the value at a path replaced; undefined removes it. The rest is shared. */
export function set<T>(doc: T, path: string, value: unknown): T {
  const [key, ...rest] = path.split('.');
  const base = (typeof doc === 'object' && doc !== null ? doc : {}) as Record<string, unknown>;
  const next = { ...base };
  const v = rest.length ? set(base[key!], rest.join('.'), value) : value;
  if (v === undefined) delete next[key!];
  else next[key!] = v;
  return next as T;
}
