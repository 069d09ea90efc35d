// What the editor knows of statements about streams. The server alone judges.
import type { StreamCatalog } from '../api/types';
import type { Language, Offer, Piece } from '../editor/Editor';
import { colourSql, inText, wordAt } from '../tables/sql';
import { named } from './model';

const keywords = (
  'CREATE DROP GET SHOW EXPLAIN LOGICAL PHYSICAL SOURCE SOURCES SINK SINKS QUERY QUERIES WORKER WORKERS FOR TYPE SET ' +
  'ON SELECT FROM WHERE GROUP BY HAVING WINDOW TUMBLING SLIDING SIZE ADVANCE LATENESS INTO AS AND OR NOT NULL IS IN ' +
  'BETWEEN LIKE CASE WHEN THEN ELSE END CAST JOIN INNER OVER PARTITION OVERFLOW WAIT STATE GRACEFUL FORCEFUL MODE ' +
  'TRUE FALSE MS SEC SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS'
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

/** Statements as coloured pieces: those of SQL, with more words. */
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

const most = 12;
const offer = (detail: string) => (text: string) => ({ text, label: text, detail });

/** What may stand at the caret, the likeliest first. */
export function streamOffers(text: string, caret: number, catalog: StreamCatalog | undefined): Offer[] {
  if (inText(text, caret)) return [];
  const { from, word, before } = wordAt(text, caret);
  const statement = text.slice(text.lastIndexOf(';', from - 1) + 1, from);
  const rest = text.slice(from).split(';')[0]!;
  const sources = (catalog?.sources ?? []).map((s) => ({ text: named(s.name), label: s.name, detail: 'source' }));
  const sinks = (catalog?.sinks ?? []).map((s) => ({ text: named(s.name), label: s.name, detail: `sink ${s.type}` }));
  const queries = (catalog?.queries ?? []).map((q) => ({ text: named(q.name), label: q.name, detail: 'query' }));
  const workers = (catalog?.workers ?? []).map((w) => ({
    text: named(w.host_name),
    label: w.host_name,
    detail: 'worker',
  }));
  // The columns of the sources that the statement reads; before a FROM was written, of all.
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
    .flatMap((s) => s.columns.map((c) => ({ text: named(c.name), label: c.name, detail: `${c.type} · ${s.name}` })));
  const after = /(\w+)\s+$/.exec(statement)?.[1]?.toUpperCase() ?? '';
  const setting = /^(SOURCE|SINK|PARSER)$/i.test(before);
  let all: Offer[];
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
  else if (/\b(?:DROP|GET|SHOW)\s+QUER(?:Y|IES)\s+$/i.test(statement)) all = queries;
  else if (/\b(?:DROP|GET|SHOW)\s+SINKS?\s+$/i.test(statement)) all = sinks;
  else if (/\b(?:DROP|GET|SHOW)\s+LOGICAL\s+SOURCES?\s+$/i.test(statement)) all = sources;
  else if (/\bSET\s*\([^)]*\bAS\s+$/i.test(statement)) all = settings.map(offer('setting'));
  else if (/^\s*CREATE\s+LOGICAL[^(]*\(/i.test(statement)) all = [...types, 'NOT', 'NULL'].map(offer('type'));
  else {
    const words = [...functions.map(offer('function')), ...keywords.map(offer(''))];
    all = word === '' ? [...columns, ...sources] : [...columns, ...words, ...sources, ...sinks];
  }
  const asked = word.replace(/^"/, '').toLowerCase();
  const seen = new Set<string>();
  const fit = all.filter((o) => {
    if (!o.label.toLowerCase().includes(asked) || seen.has(o.text)) return false;
    seen.add(o.text);
    return true;
  });
  const rank = (o: Offer) => (o.label.toLowerCase().startsWith(asked) ? 0 : 1);
  const sorted = fit.map((o, i) => ({ o, i })).sort((a, b) => rank(a.o) - rank(b.o) || a.i - b.i);
  if (sorted.length === 1 && sorted[0]!.o.text.toLowerCase() === word.toLowerCase()) return [];
  return sorted.slice(0, most).map((s) => s.o);
}

/** The language of the editor; catalog is asked for whenever something is offered, as it changes by the second. */
export function streamLanguage(catalog: () => StreamCatalog | undefined): Language {
  return {
    offersWhat: 'keywords, names of the catalog and columns',
    colour,
    offer: (text, caret, asked) => {
      const { word, before, from } = wordAt(text, caret);
      return { from, offers: asked || word || before ? streamOffers(text, caret, catalog()) : [] };
    },
  };
}
