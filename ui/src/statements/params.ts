// Finds and colours parameters in SQL by the rules of the server's parser: text that only looks like a parameter is
// ignored.
import type { Piece } from '../editor/Editor';
import { colourSql } from '../tables/sql';

/** Param is a parameter in SQL: :name, or the unsupported forms $1 and ?. */
export interface Param {
  at: number;
  end: number;
  name: string;
  form: 'name' | 'number' | 'mark';
  /** Its inline cast, such as "timestamptz"; "" without one. */
  cast: string;
}

// Each pattern matches at one position: text to skip, or a parameter.
const passed = new RegExp(
  [
    /--[^\n]*/,
    /'(?:[^']|'')*(?:'|$)/,
    /[eE]'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)/,
    /"(?:[^"]|"")*(?:"|$)/,
    /(\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?(?:\1|$)/,
    /::|:=/,
    /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|\d[\w.]*/,
  ]
    .map((r) => r.source)
    .join('|'),
  'y',
);
const parameter = /:([A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)|\$(\d+)|\?(?![?|&-])/y;
const castTo = /\s*::\s*([A-Za-z_][\w ]*?)(?=\s*(?:\(|\[|[^\w\s]|$|\s))/y;

function comment(sql: string, at: number): number {
  let depth = 0;
  for (let i = at; i < sql.length;) {
    if (sql.startsWith('/*', i)) {
      depth++;
      i += 2;
    } else if (sql.startsWith('*/', i)) {
      i += 2;
      if (--depth === 0) return i;
    } else i++;
  }
  return sql.length;
}

/** parametersOf lists every occurrence in order. Those of what PREPARE prepares have numbers, and are none. */
export function parametersOf(sql: string): Param[] {
  const list: Param[] = [];
  let prepared = /^\s*prepare\b/i.test(sql);
  for (let at = 0; at < sql.length;) {
    if (sql.startsWith('/*', at)) {
      at = comment(sql, at);
      continue;
    }
    parameter.lastIndex = at;
    const m = parameter.exec(sql);
    if (m) {
      const end = at + m[0].length;
      castTo.lastIndex = end;
      const cast = castTo.exec(sql)?.[1]?.trim().toLowerCase() ?? '';
      const form = m[1] !== undefined ? 'name' : m[2] !== undefined ? 'number' : 'mark';
      if (!prepared || form !== 'number') list.push({ at, end, name: m[1] ?? m[2] ?? '', form, cast });
      at = end;
      continue;
    }
    if (sql[at] === ';') prepared = false;
    passed.lastIndex = at;
    at += passed.exec(sql)?.[0].length ?? 1;
  }
  return list;
}

const copied = /^\s*copy\s+[^()]*\(([^)]*)\)\s*from\s+stdin\b/i;

/** copiedColumns lists the columns of COPY table (…) FROM STDIN, each of which is a parameter. */
function copiedColumns(sql: string): string[] {
  const columns = copied.exec(sql)?.[1]?.match(/"(?:[^"]|"")*"|[^\s,]+/g) ?? [];
  return columns.map((c) => (c.startsWith('"') ? c.slice(1, -1).replaceAll('""', '"') : c.toLowerCase()));
}

/** namesOf lists each name once, in order of first occurrence. */
export function namesOf(sql: string): { name: string; cast: string }[] {
  const columns = copiedColumns(sql);
  if (columns.length) return columns.map((name) => ({ name, cast: '' }));
  const seen = new Map<string, string>();
  for (const p of parametersOf(sql))
    if (p.form === 'name' && !seen.get(p.name)) seen.set(p.name, p.cast || (seen.get(p.name) ?? ''));
  return [...seen].map(([name, cast]) => ({ name, cast }));
}

/** withNamedParameters rewrites $1, $2 and ? as :p1, :p2. */
export function withNamedParameters(sql: string): string {
  let out = '';
  let at = 0;
  let marks = 0;
  for (const p of parametersOf(sql)) {
    if (p.form === 'name') continue;
    out += `${sql.slice(at, p.at)}:p${p.form === 'number' ? p.name : ++marks}`;
    at = p.end;
  }
  return out + sql.slice(at);
}

// Keywords that change rows, which the SQL console does not support.
const writes =
  /^(?:insert|into|update|set|delete|merge|returning|default|conflict|do|nothing|matched|call|for|skip|locked)$/i;

/** colourStatement colours SQL and its parameters. */
export function colourStatement(text: string): Piece[][] {
  return colourSql(text).map((line) =>
    line.flatMap((piece): Piece[] => {
      if (piece.kind !== '') return [piece];
      return piece.text
        .split(/((?<![:\w]):[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*|(?<![:\w".])\b[A-Za-z]+\b(?![\w".]))/)
        .filter(Boolean)
        .map((part, i, all) => ({
          text: part,
          kind:
            /^:[A-Za-z_\u0080-\uffff]/.test(part) && !all[i - 1]?.endsWith(':')
              ? 'param'
              : writes.test(part)
                ? 'key'
                : '',
        }));
    }),
  );
}
