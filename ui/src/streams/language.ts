// Editor support for stream statements. Only the server parses.
import type { StreamCatalog } from '../api/types';
import type { Completion, Language, Piece } from '../editor/Editor';
import { colourSql, inText, wordAt } from '../tables/sql';
import { quotedName } from './model';

const keywords = (
  'CREATE DROP RESUME GET SHOW EXPLAIN LOGICAL PHYSICAL SOURCE SOURCES SINK SINKS QUERY QUERIES WORKER WORKERS FOR ' +
  'ON SELECT FROM WHERE GROUP BY HAVING WINDOW TUMBLING SLIDING SIZE ADVANCE LATENESS INTO AS AND OR NOT NULL IS IN ' +
  'BETWEEN LIKE CASE WHEN THEN ELSE END CAST JOIN INNER OVER PARTITION OVERFLOW WAIT STATE GRACEFUL FORCEFUL MODE ' +
  'TYPE SET TRUE FALSE MS SEC SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS'
).split(' ');
const known = new Set(keywords.map((k) => k.toLowerCase()));
const types = 'BOOLEAN INT32 INT64 UINT32 UINT64 FLOAT32 FLOAT64 DECIMAL( TEXT TIMESTAMP'.split(' ');
const functions = (
  'COUNT(*) SUM( AVG( MIN( MAX( STDDEV( LAST( QUANTILE( LAG( ABS( ROUND( FLOOR( CEIL( SQRT( LOWER( UPPER( LENGTH( ' +
  'CONCAT( COALESCE( NULLIF('
).split(' ');
const sourceTypes = ['SYSTEM', 'FILE', 'TCP'];
const sinkTypes = ['PRINT', 'GUARDRAIL', 'WEBHOOK', 'FILE', 'METRIC', 'POSTGRES'];
const settings = [
  'SOURCE.STREAM',
  'SOURCE.FOLLOW',
  'SOURCE.RECONNECT',
  'SOURCE.FILE_PATH',
  'SOURCE.SOCKET_HOST',
  'SOURCE.SOCKET_PORT',
  'SOURCE.BATCH_ROWS',
  'PARSER.TYPE',
  'PARSER.HEADER',
  'PARSER.FIELD_DELIMITER',
  'PARSER.TUPLE_DELIMITER',
  'SINK.FILE_PATH',
  'SINK.INPUT_FORMAT',
  'SINK.APPEND',
  'SINK.URL',
  'SINK.RUN_ID',
  'SINK.METRIC',
  'SINK.SERIES',
  'SINK.CONNECTION',
  'SINK.TABLE',
  'SINK.SCHEMA',
];

/** colour extends the SQL colours by stream keywords. */
function colour(text: string): Piece[][] {
  return colourSql(text).map((line) =>
    line.flatMap((p) =>
      p.kind !== ''
        ? [p]
        : p.text
            .split(/(\w+)/)
            .filter(Boolean)
            .map((t) => ({ text: t, kind: known.has(t.toLowerCase()) ? 'key' : '' })),
    ),
  );
}

const maxCompletions = 12;
const offer = (detail: string) => (text: string) => ({ text, label: text, detail });

/** streamCompletions returns the completions at a caret, best first. */
export function streamCompletions(text: string, caret: number, catalog: StreamCatalog | undefined): Completion[] {
  if (inText(text, caret)) return [];
  const { from, word, before } = wordAt(text, caret);
  const statement = text.slice(text.lastIndexOf(';', from - 1) + 1, from);
  const rest = text.slice(from).split(';')[0]!;
  const sources = (catalog?.sources ?? []).map((s) => ({ text: quotedName(s.name), label: s.name, detail: 'source' }));
  const sinks = (catalog?.sinks ?? []).map((s) => ({
    text: quotedName(s.name),
    label: s.name,
    detail: `sink ${s.type}`,
  }));
  const queries = (catalog?.queries ?? []).map((q) => ({ text: quotedName(q.name), label: q.name, detail: 'query' }));
  const workers = (catalog?.workers ?? []).map((w) => ({
    text: quotedName(w.host_name),
    label: w.host_name,
    detail: 'worker',
  }));
  // Columns of the sources in the statement; before a FROM, of all sources.
  const read = new Set([...(statement + rest).matchAll(/\b(?:FROM|JOIN)\s+"?(\w+)/gi)].map((m) => m[1]!.toLowerCase()));
  const aliases = new Map(
    [...(statement + rest).matchAll(/\b(?:FROM|JOIN)\s+"?(\w+)"?\s+(?:AS\s+)?(\w+)/gi)].map((m) => [
      m[2]!.toLowerCase(),
      m[1]!.toLowerCase(),
    ]),
  );
  const of = (aliases.get(before.toLowerCase()) ?? before).toLowerCase();
  const columns = (catalog?.sources ?? [])
    .filter((s) => (before ? s.name.toLowerCase() === of : read.has(s.name.toLowerCase())))
    .flatMap((s) =>
      s.columns.map((c) => ({ text: quotedName(c.name), label: c.name, detail: `${c.type} · ${s.name}` })),
    );
  const after = /(\w+)\s+$/.exec(statement)?.[1]?.toUpperCase() ?? '';
  const setting = /^(SOURCE|SINK|PARSER)$/i.test(before);
  let all: Completion[];
  if (setting)
    all = settings
      .filter((s) => s.startsWith(`${before.toUpperCase()}.`))
      .map((s) => s.slice(before.length + 1))
      .map(offer('setting'));
  else if (before) all = columns;
  else if (after === 'FROM' || after === 'JOIN' || after === 'FOR') all = sources;
  else if (after === 'INTO') all = sinks;
  else if (after === 'TYPE') all = (/SINK/i.test(statement) ? sinkTypes : sourceTypes).map(offer('type'));
  else if (after === 'ON' && /^\s*CREATE/i.test(statement) && !/SELECT/i.test(statement)) all = workers;
  else if (/\b(?:DROP|GET|SHOW|RESUME)\s+QUER(?:Y|IES)\s+$/i.test(statement)) all = queries;
  else if (/\b(?:DROP|GET|SHOW)\s+SINKS?\s+$/i.test(statement)) all = sinks;
  else if (/\b(?:DROP|GET|SHOW)\s+LOGICAL\s+SOURCES?\s+$/i.test(statement)) all = sources;
  else if (/\bSET\s*\([^)]*\bAS\s+$/i.test(statement)) all = settings.map(offer('setting'));
  else if (/^\s*CREATE\s+LOGICAL[^(]*\(/i.test(statement)) all = [...types, 'NOT', 'NULL'].map(offer('type'));
  else {
    const words = [...functions.map(offer('function')), ...keywords.map(offer(''))];
    all = word === '' ? [...columns, ...sources] : [...columns, ...words, ...sources, ...sinks];
  }
  const prefix = word.replace(/^"/, '').toLowerCase();
  const seen = new Set<string>();
  const fit = all.filter((o) => {
    if (!o.label.toLowerCase().includes(prefix) || seen.has(o.text)) return false;
    seen.add(o.text);
    return true;
  });
  const rank = (o: Completion) => (o.label.toLowerCase().startsWith(prefix) ? 0 : 1);
  const sorted = fit.map((o, i) => ({ o, i })).sort((a, b) => rank(a.o) - rank(b.o) || a.i - b.i);
  if (sorted.length === 1 && sorted[0]!.o.text.toLowerCase() === word.toLowerCase()) return [];
  return sorted.slice(0, maxCompletions).map((s) => s.o);
}

/** streamLanguage reads the catalog at each completion, as it changes every second. */
export function streamLanguage(catalog: () => StreamCatalog | undefined): Language {
  return {
    completionHelp: 'keywords, names of the catalog and columns',
    colour,
    complete: (text, caret, prefix) => {
      const { word, before, from } = wordAt(text, caret);
      return { from, offers: prefix || word || before ? streamCompletions(text, caret, catalog()) : [] };
    },
  };
}
