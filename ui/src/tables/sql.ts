// Colours and completion of SQL. Only the database parses.

import type { QueryRelation } from '../api/types';
import type { Completion } from '../editor/Editor';

type SqlKind = '' | 'key' | 'string' | 'number' | 'comment';

interface SqlPiece {
  text: string;
  kind: SqlKind;
}

const keywords = (
  'select from where group by having order limit offset join left right full inner outer cross lateral on using as ' +
  'and or not in is null like ilike between exists case when then else end distinct all union intersect except with ' +
  'recursive values over partition rows range filter within asc desc nulls first last cast true false interval date ' +
  'timestamp array any some fetch window explain table'
).split(' ');
const known = new Set(keywords);

const functions = [
  'avg(',
  'count(',
  'max(',
  'min(',
  'sum(',
  'round(',
  'coalesce(',
  'date_trunc(',
  'percentile_cont(',
  'row_number()',
  'lag(',
  'now()',
  'rollup.histogram_merge(',
  'rollup.histogram_quantile_ms(',
  'rollup.histogram_count(',
];

const shapes: [RegExp, SqlKind][] = [
  [/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y, 'comment'],
  [/[eE]'(?:[^'\\]|\\[\s\S]|'')*'?|'(?:[^']|'')*'?|(\$\w*\$)[\s\S]*?(?:\1|$)/y, 'string'],
  [/"(?:[^"]|"")*"?/y, ''],
  [/\d+(?:\.\d+)?(?:e[-+]?\d+)?/iy, 'number'],
  [/[\p{L}_][\p{L}\p{N}_$]*/uy, ''],
];

function nextPiece(text: string, at: number): SqlPiece {
  for (const [shape, kind] of shapes) {
    shape.lastIndex = at;
    const m = shape.exec(text)?.[0];
    if (!m) continue;
    return { text: m, kind: kind === '' && known.has(m.toLowerCase()) ? 'key' : kind };
  }
  return { text: text[at]!, kind: '' };
}

/** colourSql colours SQL by line; joined, the pieces equal the text. */
export function colourSql(text: string): SqlPiece[][] {
  const lines: SqlPiece[][] = [[]];
  for (let at = 0; at < text.length;) {
    const piece = nextPiece(text, at);
    at += piece.text.length;
    for (const [i, part] of piece.text.split('\n').entries()) {
      if (i > 0) lines.push([]);
      const line = lines.at(-1)!;
      const last = line.at(-1);
      if (part === '') continue;
      if (last && last.kind === piece.kind) last.text += part;
      else line.push({ text: part, kind: piece.kind });
    }
  }
  return lines;
}

/** quoted quotes a name where necessary. */
export function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !known.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** fullName is a table's name in a query; roll-ups keep their schema, since a derived table may have the same name. */
export function fullName(r: Pick<QueryRelation, 'schema' | 'name'>): string {
  return r.schema === 'tables' ? quoted(r.name) : `${r.schema}.${quoted(r.name)}`;
}

const bare = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase());

const relation =
  /\b(?:from|join|into|update)\s+((?:"(?:[^"]|"")+"|\w+)(?:\.(?:"(?:[^"]|"")+"|\w+))?)(?:\s+(?:as\s+)?("?[\w]+"?))?/gi;

/** referencedTables maps the names and aliases in a text to tables. */
function referencedTables(text: string, catalog: QueryRelation[]): Map<string, QueryRelation> {
  const found = new Map<string, QueryRelation>();
  for (const m of text.matchAll(relation)) {
    const parts = m[1]!.match(/"(?:[^"]|"")+"|\w+/g)!.map(bare);
    const name = parts.at(-1)!;
    const schema = parts.length > 1 ? parts[0] : undefined;
    const r =
      catalog.find((c) => c.name === name && c.schema === (schema ?? 'tables')) ??
      catalog.find((c) => c.name === name && (!schema || c.schema === schema));
    if (!r) continue;
    const alias = m[2] && !known.has(m[2].toLowerCase()) ? bare(m[2]) : name;
    found.set(alias, r);
  }
  return found;
}

/** wordAt is the word at the caret, where it begins, and what precedes its last dot. */
export function wordAt(text: string, caret: number): { from: number; word: string; before: string } {
  const m = /(?:((?:"(?:[^"]|"")*"|[\p{L}_][\p{L}\p{N}_$]*))\.)?("(?:[^"]|"")*|[\p{L}_][\p{L}\p{N}_$]*)?$/u.exec(
    text.slice(0, caret),
  )!;
  const word = m[2] ?? '';
  return { from: caret - word.length, word, before: m[1] ? bare(m[1]) : '' };
}

/** inText reports that the caret is in a string or comment, where nothing is completed. */
export function inText(text: string, caret: number): boolean {
  for (let at = 0; at < caret;) {
    const piece = nextPiece(text, at);
    const end = at + piece.text.length;
    const open = piece.kind === 'comment' ? piece.text.startsWith('--') : !/(?:'|\$)$/.test(piece.text.slice(1));
    if ((piece.kind === 'string' || piece.kind === 'comment') && (caret < end || (caret === end && open))) return true;
    at = end;
  }
  return false;
}

const maxCompletions = 12;

/** sqlCompletions returns the completions at a caret, best first. */
export function sqlCompletions(text: string, caret: number, catalog: QueryRelation[]): Completion[] {
  if (inText(text, caret)) return [];
  const { from, word, before } = wordAt(text, caret);
  const prefix = word.replace(/^"/, '').toLowerCase();
  const referenced = referencedTables(text, catalog);
  const columns = (r: QueryRelation): Completion[] =>
    r.columns.map((c) => ({ text: quoted(c.name), label: c.name, detail: `${c.type} · ${r.name}` }));
  let all: Completion[];
  if (before) {
    const r = referenced.get(before) ?? catalog.find((c) => c.name === before && c.schema === 'tables');
    const ofSchema = catalog.filter((c) => c.schema === before);
    all = [
      ...(r ? columns(r) : []),
      ...ofSchema.map((c) => ({ text: quoted(c.name), label: c.name, detail: `table · ${c.schema}` })),
    ];
  } else {
    const relations = catalog.map((r) => ({
      text: fullName(r),
      label: r.name,
      detail: r.schema === 'tables' ? 'table' : `roll-up`,
    }));
    const wantsTable = /\b(?:from|join|table)\s+$/i.test(text.slice(0, from));
    const words = [...functions, ...keywords.map((k) => k.toUpperCase())].map((k) => ({
      text: k,
      label: k,
      detail: k.endsWith('(') || k.endsWith(')') ? 'function' : '',
    }));
    const ofReach = [...referenced.values()].flatMap(columns);
    all = wantsTable ? relations : [...ofReach, ...words, ...relations];
    if (!wantsTable && prefix === '') all = [...ofReach, ...relations];
  }
  const seen = new Set<string>();
  const fit = all.filter((o) => {
    const label = o.label.toLowerCase();
    // A roll-up is also found by its schema.
    if (!`${label} ${o.text.toLowerCase()}`.includes(prefix) || seen.has(o.text)) return false;
    seen.add(o.text);
    return true;
  });
  const rank = (o: Completion) => (o.label.toLowerCase().startsWith(prefix) ? 0 : 1);
  const sorted = fit.map((o, i) => ({ o, i })).sort((a, b) => rank(a.o) - rank(b.o) || a.i - b.i);
  const done = sorted.length === 1 && sorted[0]!.o.text.toLowerCase() === word.toLowerCase();
  return done ? [] : sorted.slice(0, maxCompletions).map((s) => s.o);
}
