// Queries of the Prometheus API of the server: answers as they come in, and names for completion.

import { Problem, sendForm } from '../api/client';
import type { Names } from './promql';

/** A native histogram: its filled buckets as [which bounds belong to it, from, to, how many]. */
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

/** A piece of work that was done: some segments of one leaf. */
export interface WorkPiece {
  leaf: number;
  of: number;
  node_id: string;
  /** 1 on the first node that it was given to. */
  attempt: number;
  segments: number;
  /** Of the segments: in the node's memory, on its disk, brought to it. */
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
  /** The range function that nodes evaluate, '' where they read a selector alone. */
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

/** A query over a range: times in seconds since the epoch of Unix. */
export interface Asked {
  query: string;
  start: number;
  end: number;
  step: number;
}

export interface Hear {
  progress?: (done: number, of: number) => void;
  partial?: (r: Result) => void;
  warning?: (text: string) => void;
}

const path = '/prometheus/api/v1';

interface Refused {
  status: string;
  errorType?: string;
  error?: string;
}

function refused(status: number, r: Refused): Problem {
  return new Problem(status, r.errorType ?? '', r.error ?? `The server refused the query (HTTP ${status}).`);
}

async function refusal(res: Response): Promise<Problem> {
  const text = await res.text().catch(() => '');
  try {
    const r = JSON.parse(text) as Refused & { detail?: string };
    return refused(res.status, r.error ? r : { status: 'error', error: r.detail });
  } catch {
    return refused(res.status, { status: 'error' });
  }
}

/** Server-sent events, as they come in. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<{ event: string; data: string }> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  // The pieces of an event that has not ended, and of the last one a line's end that may be half of a blank line.
  let held: string[] = [];
  let carried = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      // One event may come in thousands of pieces: each is searched once, and they are joined at its end.
      const parts = (carried + value).split('\n\n');
      const rest = parts.pop()!;
      carried = rest.endsWith('\n') ? '\n' : '';
      for (const part of parts) {
        const lines = [...held, part].join('').split('\n');
        held = [];
        const of = (name: string) =>
          lines
            .filter((l) => l.startsWith(`${name}: `))
            .map((l) => l.slice(name.length + 2))
            .join('\n');
        yield { event: of('event'), data: of('data') };
      }
      held.push(carried ? rest.slice(0, -1) : rest);
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** Asks over a range. What the query comes to on the way is heard; it ends with the signal. */
export async function ask(q: Asked, hear: Hear, signal: AbortSignal): Promise<Result> {
  const res = await sendForm(
    `${path}/query_events`,
    { query: q.query, start: String(q.start), end: String(q.end), step: String(q.step) },
    signal,
  );
  if (!res.ok || !res.body) throw await refusal(res);
  try {
    for await (const e of events(res.body)) {
      const data: unknown = JSON.parse(e.data);
      if (e.event === 'progress') {
        const p = data as WorkPiece & { done: number };
        hear.progress?.(p.done, p.of);
      } else if (e.event === 'partial') hear.partial?.(data as Result);
      else if (e.event === 'warning') hear.warning?.(data as string);
      else if (e.event === 'error') throw refused(422, data as Refused);
      else if (e.event === 'result') return data as Result;
    }
  } catch (err) {
    if (signal.aborted || err instanceof Problem) throw err;
    throw new Problem(0, 'network', 'The answer broke off.', 'Check that loadstone serve is running, then try again.');
  }
  throw new Problem(0, 'network', 'The answer broke off.', 'Run the query again.');
}

async function get<T>(at: string, fields: Record<string, string>): Promise<T> {
  const res = await sendForm(path + at, fields, undefined, 'GET');
  if (!res.ok) throw await refusal(res);
  return ((await res.json()) as { data: T }).data;
}

/** Remembers what was asked for a minute: completion asks at each key. */
function remembered<T>(known: Map<string, { at: number; of: Promise<T> }>, key: string, fetch: () => Promise<T>) {
  const old = known.get(key);
  if (old && Date.now() - old.at < 60_000) return old.of;
  const of = fetch();
  known.set(key, { at: Date.now(), of });
  of.catch(() => known.delete(key));
  return of;
}

/** The names that series have in the time that is shown. */
export function namesWithin(time: () => { start: number; end: number }): Names {
  const known = new Map<string, { at: number; of: Promise<string[]> }>();
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
    labels: (selector) => remembered(known, `\0${selector}`, () => get<string[]>('/labels', within(selector))),
    values: (label, selector) =>
      remembered(known, `${label}\0${selector}`, () =>
        get<string[]>(`/label/${encodeURIComponent(label)}/values`, within(selector)),
      ),
  };
}
