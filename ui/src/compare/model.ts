import {
  type Comparison,
  type HistogramBucket,
  isTerminal,
  type Metric,
  type Point,
  type RunDetail,
} from '../api/types';
import { csv } from '../charts/export';
import { throughput } from '../runs/rates';
import { errorRate, latency, missing, money, plain, type Quantity, rate, significant } from '../design/format';

export type Verdict = Comparison['verdict'];

/** maxRuns is the number of run colours. */
export const maxRuns = 8;

export const letter = (i: number) => String.fromCharCode(65 + i);

/** relabelNote replaces the server's A and B by the page's letters. */
export const relabelNote = (note: string, ids: string[], other: number) =>
  ids.reduce(
    (text, id, i) => text.replaceAll(id, letter(i)),
    note.replace(/\b(Side|of) B\b/g, `$1 ${letter(other)}`).replace(/^Side /, 'Run '),
  );

/** listed joins letters: A, "A and B", "A, B and C". */
export const listed = (words: string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;

/**
 * groupNotes states each note of several comparisons once, with the letters of all runs it concerns. A note of one
 * comparison says all figures where it means those of its two runs.
 */
export function groupNotes(comparisons: { notes: string[]; other: number }[], ids: string[]): string[] {
  const groups = new Map<string, Set<string>>();
  for (const { notes, other } of comparisons)
    for (const note of notes) {
      const all = /^All these figures are /.test(note);
      const text = all
        ? note.replace(/^All these figures are /, 'The figures of \0 are ')
        : relabelNote(note, ids, other);
      const at = all ? null : /\b(Run|Side|of) ([A-H])\b(?!.*\b(?:Run|Side|of) [A-H]\b)/s.exec(text);
      const key = at ? `${text.slice(0, at.index)}${at[1]} \0${text.slice(at.index + at[0].length)}` : text;
      const letters = groups.get(key) ?? new Set<string>();
      if (all) letters.add(letter(0)).add(letter(other));
      else if (at) letters.add(at[2]!);
      groups.set(key, letters);
    }
  return [...groups].map(([key, set]) => {
    const letters = [...set].sort();
    const text = letters.length > 1 ? key.replace(/^(?:Run|Side) \0/, `Each of the runs ${listed(letters)}`) : key;
    return text.replaceAll('\0', listed(letters));
  });
}

export const color = (i: number) => `--run-${(i % maxRuns) + 1}`;

/** runsFrom parses the runs of an address: unique, in order, at most max. */
export function runsFrom(text: string, max = maxRuns): string[] {
  return [...new Set(text.split(',').map((s) => s.trim()))].filter(Boolean).slice(0, max);
}

export interface Column {
  name: string;
  title: string;
  /** Reads a finished run's figure. */
  of: (r: RunDetail) => number | null | undefined;
  format: (n: number | null | undefined) => Quantity;
}

const limit = (r: RunDetail) => {
  const f = r.summary?.find_max;
  if (!f) return undefined;
  return f.found ? (f.max_target_qps ?? f.max_connections) : null;
};

const columns: Column[] = [
  {
    name: 'qps',
    title: 'Throughput',
    of: (r) => r.summary?.qps,
    format: rate,
  },
  { name: 'avg_ms', title: 'Mean', of: (r) => r.summary?.latency_ms?.avg, format: latency },
  { name: 'p50_ms', title: 'P50', of: (r) => r.summary?.latency_ms?.p50, format: latency },
  { name: 'p95_ms', title: 'P95', of: (r) => r.summary?.latency_ms?.p95, format: latency },
  { name: 'p99_ms', title: 'P99', of: (r) => r.summary?.latency_ms?.p99, format: latency },
  {
    name: 'error_rate',
    title: 'Errors',
    of: (r) => r.summary?.errors.rate,
    format: errorRate,
  },
];

/** partMetrics are the figures of a kind or statement. */
export const partMetrics: Pick<Column, 'name' | 'title'>[] = columns;

/** formatOf returns the format of a metric. */
export const formatOf = (name: string) => columns.find((c) => c.name === name)?.format ?? rate;

const costOf = (r: RunDetail) => r.summary?.cost?.price_per_million_operations;

/** columnsOf returns the figures these runs have: the cost when any is priced, the limit when any searched for it. */
export function columnsOf(runs: RunDetail[]): Column[] {
  const currency = runs.map((r) => r.summary?.cost?.currency).find(Boolean);
  const measured: Column[] = currency
    ? [...columns, { name: 'cost', title: 'Cost of a million', of: costOf, format: (n) => money(n, currency) }]
    : columns;
  if (!runs.some((r) => r.summary?.find_max)) return measured;
  const isRate = runs.some((r) => r.summary?.find_max?.unit === 'rate');
  const format = (n: number | null | undefined): Quantity =>
    n === undefined
      ? missing
      : n === null
        ? { value: 'none', unit: '', exact: 'no level held' }
        : isRate
          ? rate(n)
          : { value: String(n), unit: 'conn.', exact: `${n} connections` };
  return [{ name: 'limit', title: 'Limit', of: limit, format }, ...measured];
}

/** figure formats a run's figure; a missing rate says why. */
export const figure = (c: Column, r: RunDetail): Quantity =>
  !r.summary || r.summary.operations === 0 ? missing : c.name === 'qps' ? throughput(r.summary) : c.format(c.of(r));

const signed = (n: number, digits: number) => `${n > 0 ? '+' : n < 0 ? '−' : '±'}${Math.abs(n).toFixed(digits)}`;

/** ratio is a difference in percent as a factor, "320 ×", when it is ten times or more; null below. */
export function ratio(percent: number): string | null {
  const factor = 1 + percent / 100;
  return factor >= 10 ? `${significant(factor)} ×` : null;
}

/** difference is in percent, as a factor from ten times on, or in percentage points for an error rate. */
export function difference(m: Metric): string {
  if (m.difference === null) return '';
  if (m.name === 'error_rate') return `${signed(m.difference * 100, 3)} pp`;
  const factor = ratio(m.difference);
  if (factor) return factor;
  return `${signed(m.difference, Math.abs(m.difference) < 10 ? 1 : 0)} %`;
}

export function interval(m: Metric): string {
  if (m.low === null || m.high === null) return '';
  const scale = m.name === 'error_rate' ? 100 : 1;
  if (m.name !== 'error_rate' && ratio(m.high)) {
    const bound = (n: number) => ratio(n) ?? `${significant(1 + n / 100)} ×`;
    return `${bound(m.low)} to ${bound(m.high)}`;
  }
  const digits = m.name === 'error_rate' ? 3 : Math.max(Math.abs(m.low), Math.abs(m.high)) < 10 ? 1 : 0;
  return `${signed(m.low * scale, digits)} to ${signed(m.high * scale, digits)}`;
}

/** visible says which differences the runs can show, and how many more runs would show the tolerance. */
export function visible(c: Pick<Comparison, 'metrics' | 'same_run'>, tolerance: number): string {
  if (c.same_run) return '';
  const shown = ['qps', 'p95_ms'].flatMap((name) => {
    const m = c.metrics?.find((x) => x.name === name);
    const title = name === 'qps' ? 'throughput' : 'P95';
    return m && m.detectable !== null
      ? [{ m, text: `${m.detectable.toFixed(m.detectable < 10 ? 1 : 0)} % of ${title}` }]
      : [];
  });
  if (shown.length === 0) return '';
  const text = `can show ${shown.map((x) => x.text).join(', ')}`;
  if (shown.some((x) => x.m.more_runs === null)) return text;
  const more = Math.max(...shown.map((x) => x.m.more_runs ?? 0));
  return more === 0 ? text : `${text}; ${more} more ${more === 1 ? 'run' : 'runs'} of each would show ${tolerance} %`;
}

/** Compared is a run, its label, and its comparison with the first. */
export interface Compared {
  label: string;
  run: RunDetail;
  /** Null for the baseline, and until it is known. */
  against: Comparison | null;
}

/**
 * missingVerdict replaces a verdict that cannot exist, with the reason; null otherwise. The first run is undefined
 * while loading, null when it cannot be read.
 */
export function missingVerdict(base: RunDetail | null | undefined): { word: string; why: string } | null {
  if (base === undefined || base?.summary?.operations) return null;
  if (base === null) return { word: 'no verdict', why: 'Run A could not be loaded, so there is no comparison.' };
  return isTerminal(base.status) && base.phase !== 'PROCESSING'
    ? { word: 'no verdict', why: 'Run A has no figures to compare with.' }
    : { word: 'no verdict yet', why: 'Run A has no final figures yet. Wait for its end.' };
}

/** endedEarly reports that a run has figures although it did not complete. */
export const endedEarly = (r: RunDetail): boolean =>
  isTerminal(r.status) && r.status !== 'COMPLETED' && (r.summary?.operations ?? 0) > 0;

/** comparisonNotes are the caveats of the comparison, without repeats, with the page's letters. */
function comparisonNotes(list: Pick<Compared, 'run' | 'against'>[]): string[] {
  return groupNotes(
    list.map((c, other) => ({ notes: c.against?.notes ?? [], other })),
    list.map((c) => c.run.run_id),
  );
}

const cell = (s: string) => s.replaceAll('|', '\\|').replaceAll('\n', ' ');

/** markdown writes the comparison as a table for a ticket. */
export function markdown(list: Compared[], tolerance: number): string {
  const cols = columnsOf(list.map((c) => c.run));
  const lines = [
    `| run | ${cols.map((c) => c.title).join(' | ')} | verdict |`,
    `| --- | ${cols.map(() => '---:').join(' | ')} | --- |`,
    ...list.map((c, i) => {
      const figures = cols.map((col) => {
        const text = plain(figure(col, c.run));
        const m = c.against?.metrics?.find((x) => x.name === col.name);
        return m?.difference === null || m === undefined ? text : `${text} (${difference(m)}, ${m.verdict})`;
      });
      const model = isSimulated(c.run) ? ` (${c.run.emulated ? 'emulated' : 'simulated'})` : '';
      const name = `${letter(i)} ${cell(c.label)}${model}`;
      return `| ${name} | ${figures.join(' | ')} | ${i === 0 ? 'baseline' : (c.against?.verdict ?? '')} |`;
    }),
    '',
    `Differences are against ${letter(0)}; differences below ${tolerance} % do not count.`,
    ...list.map((c, i) => `${letter(i)}: run ${c.run.run_id}`),
    ...comparisonNotes(list).map((n) => `- ${cell(n)}`),
  ];
  return `${lines.join('\n')}\n`;
}

/** asCsv writes one line per figure of each run, with all digits. */
export function asCsv(list: Compared[]): string {
  const cols = columnsOf(list.map((c) => c.run));
  return csv(
    ['run', 'run_id', 'simulated', 'metric', 'value', 'difference', 'low', 'high', 'verdict'],
    list.flatMap((c) =>
      cols.map((col) => {
        const m = c.against?.metrics?.find((x) => x.name === col.name);
        return [
          c.label,
          c.run.run_id,
          String(isSimulated(c.run)),
          col.name,
          col.of(c.run) ?? '',
          m?.difference,
          m?.low,
          m?.high,
          m?.verdict,
        ];
      }),
    ),
  );
}

export const isSimulated = (r: RunDetail) => Boolean(r.simulated || r.summary?.simulated || r.live?.simulated);

/** aligned returns the values by seconds since each run's measurement start. */
export function aligned(
  runs: {
    points: Point[] | null;
    start: number | null;
    /** The seconds a point stands for. */ span?: number;
  }[],
  of: (p: Point) => number | null,
): { x: number[]; values: (number | null)[][] } {
  const columns = runs.map(({ points, start, span = 1 }) => {
    const seconds = new Map<number, number | null>();
    for (const p of points ?? []) {
      if (p.phase !== 'MEASUREMENT' || start === null) continue;
      // A point covers the seconds that end with it.
      const end = Math.max(0, Math.round((Date.parse(p.timestamp) - start) / 1000));
      for (let t = Math.max(0, end - span + 1); t <= end; t++) seconds.set(t, of(p));
    }
    return seconds;
  });
  const last = Math.max(-1, ...columns.flatMap((c) => [...c.keys()]));
  const x = Array.from({ length: last + 1 }, (_, i) => i);
  return { x, values: columns.map((c) => x.map((t) => c.get(t) ?? null)) };
}

export interface Shape {
  /** Bin bounds in milliseconds, one more than bins. */
  bounds: number[];
  /** Each run's share of operations per bin. */
  shares: number[][];
}

/** shapes puts distributions on common bins of equal width on a logarithmic axis. */
export function shapes(list: (HistogramBucket[] | null | undefined)[], bins: number): Shape | null {
  const filled = list.map((l) => (l ?? []).filter((b) => b.count > 0 && b.to_ms > 0));
  const low = (b: HistogramBucket) => (b.from_ms > 0 ? b.from_ms : b.to_ms / 2);
  const all = filled.flat();
  if (all.length === 0) return null;
  const lo = Math.log(Math.min(...all.map(low)));
  const hi = Math.log(Math.max(...all.map((b) => b.to_ms)));
  // A bin narrower than a bucket would draw spikes.
  const finest = Math.max(
    ...all
      .map((b) => Math.log(b.to_ms) - Math.log(low(b)))
      .sort((a, b) => a - b)
      .slice(0, Math.ceil(all.length / 2)),
    1e-4,
  );
  const n = Math.max(1, Math.min(bins, Math.ceil((hi - lo) / finest)));
  const width = (hi - lo) / n || 1;
  const shares = filled.map((l) => {
    const out = new Array<number>(n).fill(0);
    const total = l.reduce((s, b) => s + b.count, 0);
    for (const b of l) {
      // A bucket that spans several bins is split among them.
      const from = (Math.log(low(b)) - lo) / width;
      const to = (Math.log(b.to_ms) - lo) / width;
      for (let i = Math.max(0, Math.floor(from)); i < Math.min(n, Math.ceil(to)); i++) {
        const part = (Math.min(to, i + 1) - Math.max(from, i)) / Math.max(to - from, 1e-12);
        out[i]! += (part * b.count) / total;
      }
    }
    return out;
  });
  return { bounds: Array.from({ length: n + 1 }, (_, i) => Math.exp(lo + i * width)), shares };
}

interface FieldDifference {
  field: string;
  values: string[];
}

// These fields differ between any two runs, so they explain nothing.
const ignoredFields = /^(name|description|template_id|template_name|tags\..*|.*dsn_sealed)$/;

const environmentFields = / |^(driver|machine|Loadstone|simulated|figures)$/;

function flat(v: unknown, path: string, into: Map<string, string>): void {
  if (v === null || v === undefined || v === '') return;
  if (Array.isArray(v) || typeof v !== 'object') {
    const list = Array.isArray(v) && v.every((x) => typeof x === 'string');
    into.set(path, list ? v.join(', ') : typeof v === 'string' ? v : JSON.stringify(v));
    return;
  }
  for (const [k, x] of Object.entries(v)) flat(x, path ? `${path}.${k}` : k, into);
}

function facts(r: RunDetail): Map<string, string> {
  const out = new Map<string, string>();
  flat(r.scenario_config, '', out);
  for (const k of [...out.keys()]) if (ignoredFields.test(k)) out.delete(k);
  const e = r.summary?.environment;
  if (e) {
    // A run that ended before it read its target knows nothing about it.
    const unknown = 'unknown';
    out.set('server version', e.server_version || unknown);
    out.set('driver', e.driver || unknown);
    out.set('I/O engine', e.io_engine || unknown);
    out.set('target on the same machine', e.target_is_local ? 'yes' : e.driver || e.server_version ? 'no' : unknown);
    out.set('Loadstone', e.loadstone_version);
    out.set('machine', e.hostname ? `${e.hostname}, ${e.cpus} CPUs, ${e.cpu_model}` : unknown);
  }
  if (r.summary) {
    out.set('simulated', isSimulated(r) ? 'yes' : 'no');
    out.set('figures', r.summary.validity.toLowerCase());
  }
  for (const p of r.summary?.plugins ?? [])
    out.set(`${p.kind} plugin`, `${p.name} ${p.version} (${p.sha256.slice(0, 8)})`);
  return out;
}

/** fieldDifferences lists template fields and environment facts that differ. */
export function fieldDifferences(runs: RunDetail[]): FieldDifference[] {
  const all = runs.map(facts);
  const fields = [...new Set(all.flatMap((f) => [...f.keys()]))];
  return fields
    .map((field) => ({ field, values: all.map((f) => f.get(field) ?? '–') }))
    .filter((d) => {
      // The environment of a run is known when it has ended; until then it is no difference.
      const values = environmentFields.test(d.field) ? d.values.filter((_, i) => runs[i]!.summary) : d.values;
      return new Set(values).size > 1;
    });
}
