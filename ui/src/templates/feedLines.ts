// Checks the statement names of a replay file against the statements. The server checks them before a run.
import { safeText } from '../api/safeText';
import type { ScenarioDraft } from '../api/types';
import type { Finding } from './findings';
import { distance } from './relations';
import { get } from './schema';

/** controls are transaction commands, not statements. */
const controls = new Set(['BEGIN', 'COMMIT', 'ROLLBACK']);

/** ofCsv yields the line and second field of each CSV record. */
function* ofCsv(text: string): Generator<[line: number, statement: string]> {
  let line = 1;
  for (let at = 0; at < text.length;) {
    const startLine = line;
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
    const heading = startLine === 1 && ms!.trim().toLowerCase() === 'at_ms';
    if (statement !== undefined && !heading) yield [startLine, statement.trim()];
  }
}

/** ofJson does the same for JSON lines; invalid lines are skipped. */
function* ofJson(text: string): Generator<[line: number, statement: string]> {
  let line = 0;
  for (const one of text.split('\n')) {
    line++;
    try {
      const o = JSON.parse(one) as { statement?: unknown } | null;
      if (typeof o?.statement === 'string') yield [line, o.statement.trim()];
    } catch {
      // The server reports the error.
    }
  }
}

/** unknownStatement is the first line that names an unknown statement; null without one. */
export function unknownStatement(text: string, ids: ReadonlySet<string>): { line: number; name: string } | null {
  const plain = text.replace(/^\ufeff/, '');
  for (const [line, name] of /^\s*\{/.test(plain) ? ofJson(plain) : ofCsv(plain))
    if (!ids.has(name) && !controls.has(name)) return { line, name };
  return null;
}

/** unknownStatementFindings reports unknown statement names at the file's field. */
export function unknownStatementFindings(feed: unknown, statements: unknown): Finding[] {
  const text = (feed as ScenarioDraft['workload']['feed'])?.csv;
  if (typeof text !== 'string' || !Array.isArray(statements)) return [];
  const ids = statements.map((s) => get(s, 'id')).filter((id) => typeof id === 'string');
  const unknown = unknownStatement(text, new Set(ids));
  if (!unknown) return [];
  const { line, name } = unknown;
  const distanceTo = (id: string) => distance(name.toLowerCase(), id.toLowerCase());
  const nearest = ids.toSorted((a, b) => distanceTo(a) - distanceTo(b))[0];
  const suggestion =
    nearest !== undefined && distanceTo(nearest) <= Math.max(2, Math.floor(nearest.length / 3)) ? nearest : null;
  return [
    {
      field: 'workload.feed.csv',
      message: `line ${line}: there is no statement "${safeText(name)}"`,
      hint:
        suggestion === null
          ? 'add the statement below, or correct the line'
          : `did you mean "${safeText(suggestion)}"?`,
    },
  ];
}
