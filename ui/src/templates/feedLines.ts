// What the lines of a replay's file name, held against the statements beside it. The server reads them before a run.
import { harmless } from '../api/harmless';
import type { Sketch } from '../api/types';
import type { Finding } from './findings';
import { distance } from './relations';
import { get } from './schema';

/** What stands in the place of a statement and is none. */
const controls = new Set(['BEGIN', 'COMMIT', 'ROLLBACK']);

/** The lines of CSV that begin a record, counted from 1, and their second fields. */
function* ofCsv(text: string): Generator<[line: number, statement: string]> {
  let line = 1;
  for (let at = 0; at < text.length;) {
    const begun = line;
    const fields: string[] = [];
    for (let ended = false; !ended;) {
      let field = '';
      if (text[at] === '"') {
        let to = at + 1;
        for (; to < text.length; to++) {
          if (text[to] === '\n') line++;
          if (text[to] !== '"') continue;
          if (text[to + 1] !== '"') break;
          to++;
        }
        field = text.slice(at + 1, to).replaceAll('""', '"');
        at = to + 1;
      }
      let to = at;
      while (to < text.length && text[to] !== ',' && text[to] !== '\n') to++;
      if (fields.length < 2) fields.push(field + text.slice(at, to));
      ended = text[to] !== ',';
      at = to + 1;
    }
    line++;
    const [ms, statement] = fields;
    const heading = begun === 1 && ms!.trim().toLowerCase() === 'at_ms';
    if (statement !== undefined && !heading) yield [begun, statement.trim()];
  }
}

/** The same of JSON lines; one that is no JSON is passed over. */
function* ofJson(text: string): Generator<[line: number, statement: string]> {
  let line = 0;
  for (const one of text.split('\n')) {
    line++;
    try {
      const o = JSON.parse(one) as { statement?: unknown } | null;
      if (typeof o?.statement === 'string') yield [line, o.statement.trim()];
    } catch {
      // The server says what is wrong with it.
    }
  }
}

/** The first line of a file that names none of these statements; null when there is none. */
export function unknownStatement(text: string, ids: ReadonlySet<string>): { line: number; name: string } | null {
  const plain = text.replace(/^\ufeff/, '');
  for (const [line, name] of /^\s*\{/.test(plain) ? ofJson(plain) : ofCsv(plain))
    if (!ids.has(name) && !controls.has(name)) return { line, name };
  return null;
}

/** What is to be said at the field of a file whose lines name a statement that is not there. */
export function strangeLines(feed: unknown, statements: unknown): Finding[] {
  const text = (feed as Sketch['workload']['feed'])?.csv;
  if (typeof text !== 'string' || !Array.isArray(statements)) return [];
  const ids = statements.map((s) => get(s, 'id')).filter((id) => typeof id === 'string');
  const strange = unknownStatement(text, new Set(ids));
  if (!strange) return [];
  const { line, name } = strange;
  const far = (id: string) => distance(name.toLowerCase(), id.toLowerCase());
  const near = ids.toSorted((a, b) => far(a) - far(b))[0];
  const meant = near !== undefined && far(near) <= Math.max(2, Math.floor(near.length / 3)) ? near : null;
  return [
    {
      field: 'workload.feed.csv',
      message: `line ${line}: there is no statement "${harmless(name)}"`,
      hint:
        meant === null ? 'add it to the statements below, or correct the line' : `did you mean "${harmless(meant)}"?`,
    },
  ];
}
