// Infers from the text which columns a statement's parameters stand for. Only the database knows for sure; an
// unresolved parameter goes by its name.
import type { CatalogColumn, CatalogRelation } from '../api/types';
import { parametersOf } from './params';

/** Use is how a value is used: as a lookup, a pattern, an array element, a stored value, or a row limit. */
export type Use = 'find' | 'like' | 'any' | 'store' | 'limit' | 'offset';

export interface Place {
  use: Use;
  column?: CatalogColumn;
  relation?: CatalogRelation;
  /** The column belongs to the template's own table. */
  own: boolean;
}

interface Token {
  text: string;
  kind: 'word' | 'quoted' | 'param' | 'value' | 'sign';
}

const shape = new RegExp(
  [
    /--[^\n]*|\s+|[eE]?'(?:[^']|'')*'?|"(?:[^"]|"")*"?|::/,
    /<=|>=|<>|!=|!?~~?\*?/,
    /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|\d[\w.]*|[\s\S]/,
  ]
    .map((r) => r.source)
    .join('|'),
  'y',
);

/** tokensOf splits a text into words, names and signs, without casts. */
function tokensOf(sql: string): Token[] {
  const params = new Map(parametersOf(sql).map((p) => [p.at, p]));
  const list: Token[] = [];
  for (let at = 0; at < sql.length;) {
    const p = params.get(at);
    if (p) {
      list.push({ text: p.name, kind: 'param' });
      at = p.end;
      continue;
    }
    const comment = sql.startsWith('/*', at) ? sql.indexOf('*/', at) : -1;
    if (comment > 0) {
      at = comment + 2;
      continue;
    }
    shape.lastIndex = at;
    const text = shape.exec(sql)![0];
    at += text.length;
    if (/^(?:\s|--)/.test(text)) continue;
    if (text === '::') {
      const type = /\s*"?[A-Za-z_][\w ]*?"?(?=\s*(?:\(|\[|[^\w\s]|$|\s))(?:\s*\([\d, ]*\))?(?:\s*\[\])*/y;
      type.lastIndex = at;
      at += type.exec(sql)?.[0].length ?? 0;
      continue;
    }
    const kind = /^"/.test(text)
      ? 'quoted'
      : /^[A-Za-z_\u0080-\uffff](?!')/.test(text)
        ? 'word'
        : /^(?:[eE]?'|\d)/.test(text)
          ? 'value'
          : 'sign';
    list.push({ text: kind === 'quoted' ? text.replace(/^"|"$/g, '').replaceAll('""', '"') : text, kind });
  }
  return list;
}

const is = (t: Token | undefined, ...words: string[]) =>
  t !== undefined && t.kind !== 'quoted' && t.kind !== 'param' && words.includes(t.text.toLowerCase());
const isName = (t: Token | undefined) =>
  t?.kind === 'quoted' || (t?.kind === 'word' && !reserved.has(t.text.toLowerCase()));
const nameOf = (t: Token) => (t.kind === 'quoted' ? t.text : t.text.toLowerCase());

const reserved = new Set(
  (
    'select from where group by having order limit offset join left right full inner outer cross on using as and ' +
    'or not in is null like ilike between exists case when then else end distinct all union set values ' +
    'into returning default any some true false for update delete insert with conflict do nothing matched'
  ).split(' '),
);
const compares = ['=', '<', '>', '<=', '>=', '<>', '!='];
const likes = ['like', 'ilike', '~~', '~~*', '!~~', '!~~*'];

/** referencedTables maps the names and aliases in a text to tables. */
function referencedTables(tokens: Token[], relations: CatalogRelation[]): Map<string, CatalogRelation> {
  const found = new Map<string, CatalogRelation>();
  for (let i = 0; i < tokens.length; i++) {
    if (!is(tokens[i], 'from', 'join', 'into', 'update', 'using')) continue;
    for (let at = i + 1; ;) {
      if (is(tokens[at], 'only', 'lateral')) at++;
      if (!isName(tokens[at])) break;
      const parts = [nameOf(tokens[at]!)];
      while (is(tokens[at + 1], '.') && tokens[at + 2]) parts.push(nameOf(tokens[(at += 2)]!));
      const name = parts.at(-1)!;
      const schema = parts.at(-2);
      const inSchema = (c: CatalogRelation, of: string | undefined) => !of || same(c.schema, of);
      const r =
        relations.find((c) => c.name === name && c.schema === (schema ?? 'public')) ??
        relations.find((c) => same(c.name, name) && inSchema(c, schema));
      at++;
      if (is(tokens[at], 'as')) at++;
      const alias = isName(tokens[at]) ? nameOf(tokens[at++]!) : name;
      if (r) found.set(alias, r);
      if (!is(tokens[i], 'from') || !is(tokens[at], ',')) break;
      at++;
    }
  }
  return found;
}

// Names the database stores in upper case match any case.
const same = (a: string, b: string) => a === b || (a === a.toUpperCase() && a === b.toUpperCase());

/**
 * placesOf maps each parameter to its place; a place with a column wins over one without. {table} is the template's
 * table.
 */
export function placesOf(sql: string, relations: CatalogRelation[], table = ''): Map<string, Place> {
  const own = table.trim();
  const tokens = tokensOf(own ? sql.replaceAll('{table}', own) : sql);
  const tables = referencedTables(tokens, relations);
  const ownRelation = own ? [...referencedTables(tokensOf(`from ${own}`), relations).values()][0] : undefined;
  const places = new Map<string, Place>();

  const column = (at: number, use: Use): Place | null => {
    const t = tokens[at];
    if (!t || !isName(t)) return null;
    const name = nameOf(t);
    const of = is(tokens[at - 1], '.') && tokens[at - 2] ? tables.get(nameOf(tokens[at - 2]!)) : undefined;
    for (const relation of of ? [of] : tables.values()) {
      const found = (relation.columns ?? []).find((c) => same(c.name, name));
      if (found) return { use, column: found, relation, own: relation === ownRelation };
    }
    return null;
  };
  const add = (name: string, place: Place | null) => {
    if (place && !(places.get(name)?.column || (places.has(name) && !place.column))) places.set(name, place);
  };
  /** opening is the index of the bracket around a token; -1 without one. */
  const opening = (at: number) => {
    for (let i = at - 1, deep = 0; i >= 0; i--) {
      if (is(tokens[i], ')')) deep++;
      else if (is(tokens[i], '(') && deep-- === 0) return i;
    }
    return -1;
  };

  for (const [i, t] of tokens.entries()) {
    if (t.kind !== 'param') continue;
    const before = tokens[i - 1];
    const after = tokens[i + 1];
    if (is(before, 'limit', 'offset', 'fetch', 'first')) {
      add(t.text, { use: is(before, 'offset') ? 'offset' : 'limit', own: false });
      continue;
    }
    const use: Use = storing(tokens, i) ? 'store' : 'find';
    const bracket = opening(i);
    const callee = tokens[bracket - 1];
    const not = (at: number) => (is(tokens[at], 'not') ? at - 1 : at);
    if (is(before, ...compares)) add(t.text, column(i - 2, use));
    else if (is(before, ...likes)) add(t.text, column(not(i - 2), 'like'));
    else if (is(before, '+', '-', '*', '/', '%')) add(t.text, column(i - 2, use));
    else if (is(before, 'between')) add(t.text, column(not(i - 2), 'find'));
    else if (is(before, 'and') && is(tokens[i - 3], 'between')) add(t.text, column(not(i - 4), 'find'));
    if (is(after, ...compares, '+', '-', '*', '/', '%')) add(t.text, column(last(tokens, i + 2), use));
    if (bracket < 0) continue;
    if (is(callee, 'in')) add(t.text, column(not(bracket - 2), 'find'));
    else if (is(callee, 'any', 'all', 'some') && is(tokens[bracket - 2], ...compares))
      add(t.text, column(bracket - 3, 'any'));
  }
  for (const [name, place] of stored(tokens, tables, ownRelation)) add(name, place);
  return places;
}

/** last is the end of a name such as a.b: the column. */
function last(tokens: Token[], at: number): number {
  while (is(tokens[at + 1], '.')) at += 2;
  return at;
}

/** storing reports that an UPDATE sets the value. */
function storing(tokens: Token[], at: number): boolean {
  for (let i = at; i >= 0; i--) {
    if (is(tokens[i], 'set')) return true;
    if (is(tokens[i], 'where', 'from', 'select', 'values', 'having', 'on')) return false;
  }
  return false;
}

/** stored yields the values an INSERT stores from VALUES or a SELECT list. */
function* stored(
  tokens: Token[],
  tables: Map<string, CatalogRelation>,
  own: CatalogRelation | undefined,
): Generator<[string, Place]> {
  const into = tokens.findIndex((t, i) => is(t, 'into') && is(tokens[i - 1], 'insert'));
  if (into < 0) return;
  let at = last(tokens, into + 1);
  const relation = tables.get(nameOf(tokens[at] ?? { text: '', kind: 'word' })) ?? [...tables.values()][0];
  if (!relation) return;
  at++;
  if (is(tokens[at], 'as')) at += 2;
  let names = (relation.columns ?? []).map((c) => c.name);
  if (is(tokens[at], '(')) {
    names = [];
    for (at++; at < tokens.length && !is(tokens[at], ')'); at++)
      if (!is(tokens[at], ',')) names.push(nameOf(tokens[at]!));
    at++;
  }
  if (is(tokens[at], 'overriding')) at += 3;
  const list = is(tokens[at], 'select');
  if (!list && !is(tokens[at], 'values')) return;
  for (let deep = list ? 1 : 0, nth = 0, i = at + 1; i < tokens.length; i++) {
    const t = tokens[i]!;
    if (is(t, '(')) {
      if (deep++ === 0) nth = 0;
    } else if (is(t, ')')) deep--;
    else if (deep === 1 && is(t, ',')) nth++;
    else if (deep <= 1 && is(t, 'from', 'on', 'returning', 'where', 'union')) return;
    else if (deep === 1 && t.kind === 'param') {
      const name = names[nth];
      const column = (relation.columns ?? []).find((c) => name !== undefined && same(c.name, name));
      const alone =
        is(tokens[i - 1], '(', ',', 'select') && (i + 1 === tokens.length || is(tokens[i + 1], ')', ',', 'from'));
      if (column && alone) yield [t.text, { use: 'store', column, relation, own: relation === own }];
    }
  }
}
