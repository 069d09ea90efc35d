// A client of the server's Prometheus API: streaming results, and names for completion.

import { Problem, sendForm } from '../api/client';
import type { Names } from './promql';

/** Histogram is a native histogram; buckets are [bounds, from, to, count]. */
export interface Histogram {
  count: string;
  sum: string;
  buckets?: [number, string, string, string][];
}

export interface SeriesJson {
  metric: Record<string, string>;
  value?: [number, string];
  histogram?: [number, Histogram];
  values?: [number, string][];
  histograms?: [number, Histogram][];
}

export interface Result {
  resultType: 'matrix' | 'vector' | 'scalar' | 'string';
  result: SeriesJson[] | [number, string];
  stats?: Stats;
}

/** WorkPiece is one evaluated piece: some segments of one leaf. */
interface WorkPiece {
  leaf: number;
  of: number;
  node_id: string;
  /** 1 on the first node that got it. */
  attempt: number;
  segments: number;
  /** Segments found in the node's memory, on its disk, and fetched. */
  hits: number;
  disk_hits: number;
  fetched: number;
  fetched_bytes: number;
  samples: number;
  series: number;
  bytes: number;
  took_ms: number;
}

export interface Leaf {
  expr: string;
  /** The range function evaluated on nodes; '' for a plain selector. */
  function: string;
  pieces: WorkPiece[];
}

export interface Stats {
  query_id: string;
  stages: { plan_ms: number; segments_ms: number; leaves_ms: number; merge_ms: number; first_piece_ms: number };
  timings: { execTotalTime: number };
  samples: { totalQueryableSamples: number };
  leaves: Leaf[];
}

/** RangeQuery is a query over a range, in Unix seconds. */
export interface RangeQuery {
  query: string;
  start: number;
  end: number;
  step: number;
}

interface StreamHandlers {
  progress?: (done: number, of: number) => void;
  partial?: (r: Result) => void;
  warning?: (text: string) => void;
}

const path = '/prometheus/api/v1';

interface ErrorBody {
  status: string;
  errorType?: string;
  error?: string;
}

function queryProblem(status: number, r: ErrorBody): Problem {
  return new Problem(status, r.errorType ?? '', r.error ?? `The server rejected the query (HTTP ${status}).`);
}

async function responseProblem(res: Response): Promise<Problem> {
  const text = await res.text().catch(() => '');
  try {
    const r = JSON.parse(text) as ErrorBody & { detail?: string };
    return queryProblem(res.status, r.error ? r : { status: 'error', error: r.detail });
  } catch {
    return queryProblem(res.status, { status: 'error' });
  }
}

/** serverSentEvents parses an event stream. */
export async function* serverSentEvents(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<{ event: string; data: string }> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  // The pieces of an incomplete event, and a line end that may be half of a blank line.
  let pieces: string[] = [];
  let lineEnd = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // An event may arrive in thousands of pieces: each is scanned once, and they are joined at the end.
      const parts = (lineEnd + value).split('\n\n');
      const rest = parts.pop()!;
      lineEnd = rest.endsWith('\n') ? '\n' : '';
      for (const part of parts) {
        const lines = [...pieces, part].join('').split('\n');
        pieces = [];
        const of = (name: string) =>
          lines
            .filter((l) => l.startsWith(`${name}: `))
            .map((l) => l.slice(name.length + 2))
            .join('\n');
        yield { event: of('event'), data: of('data') };
      }
      pieces.push(lineEnd ? rest.slice(0, -1) : rest);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** queryRange runs a range query; handlers receive progress and partial results. The signal cancels it. */
export async function queryRange(q: RangeQuery, handlers: StreamHandlers, signal: AbortSignal): Promise<Result> {
  const res = await sendForm(
    `${path}/query_events`,
    { query: q.query, start: String(q.start), end: String(q.end), step: String(q.step) },
    signal,
  );
  if (!res.ok || !res.body) throw await responseProblem(res);
  try {
    for await (const e of serverSentEvents(res.body)) {
      const data: unknown = JSON.parse(e.data);
      if (e.event === 'progress') {
        const p = data as WorkPiece & { done: number };
        handlers.progress?.(p.done, p.of);
      } else if (e.event === 'partial') handlers.partial?.(data as Result);
      else if (e.event === 'warning') handlers.warning?.(data as string);
      else if (e.event === 'error') throw queryProblem(422, data as ErrorBody);
      else if (e.event === 'result') return data as Result;
    }
  } catch (err) {
    if (signal.aborted || err instanceof Problem) throw err;
    throw new Problem(
      0,
      'network',
      'The response was interrupted.',
      'Check that loadstone serve is running, then try again.',
    );
  }
  throw new Problem(0, 'network', 'The response was interrupted.', 'Run the query again.');
}

async function get<T>(at: string, fields: Record<string, string>): Promise<T> {
  const res = await sendForm(path + at, fields, undefined, 'GET');
  if (!res.ok) throw await responseProblem(res);
  return ((await res.json()) as { data: T }).data;
}

/** cached keeps responses for a minute: completion asks at each key press. */
function cached<T>(cache: Map<string, { at: number; of: Promise<T> }>, key: string, fetch: () => Promise<T>) {
  const old = cache.get(key);
  if (old && Date.now() - old.at < 60_000) return old.of;
  const of = fetch();
  cache.set(key, { at: Date.now(), of });
  of.catch(() => cache.delete(key));
  return of;
}

/** namesInRange fetches the series names in the shown time. */
export function namesInRange(time: () => { start: number; end: number }): Names {
  const cache = new Map<string, { at: number; of: Promise<string[]> }>();
  let metrics: Promise<{ name: string; detail: string }[]> | undefined;
  const within = (selector: string) => {
    const { start, end } = time();
    return {
      ...(selector ? { 'match[]': selector } : {}),
      start: String(start),
      end: String(end),
      limit: '1000',
    };
  };
  return {
    metrics: () => {
      metrics ??= get<Record<string, { type: string; help: string }[]>>('/metadata', {}).then((all) =>
        Object.entries(all)
          .map(([name, m]) => ({ name, detail: `${m[0]?.type ?? ''} · ${m[0]?.help ?? ''}` }))
          .sort((a, b) => a.name.localeCompare(b.name)),
      );
      metrics.catch(() => (metrics = undefined));
      return metrics;
    },
    labels: (selector) => cached(cache, `\0${selector}`, () => get<string[]>('/labels', within(selector))),
    values: (label, selector) =>
      cached(cache, `${label}\0${selector}`, () =>
        get<string[]>(`/label/${encodeURIComponent(label)}/values`, within(selector)),
      ),
  };
}
