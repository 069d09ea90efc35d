// The mock's Prometheus API: it does not parse PromQL, and always returns curves and histograms.
import type { ServerResponse } from 'node:http';

type Handle = (parts: string[], body: unknown, query: URLSearchParams, res: ServerResponse, text: string) => unknown;

const success = (data: unknown) => ({ status: 'success', data });
const labels = {
  kind: ['INSERT', 'POINT_LOOKUP', 'UPDATE'],
  phase: ['measurement', 'warmup'],
  run: ['01A', '01B'],
  table_type: ['postgres', 'snowflake'],
};

function refuse(res: ServerResponse, error: string) {
  res
    .writeHead(400, { 'Content-Type': 'application/json' })
    .end(JSON.stringify({ status: 'error', errorType: 'bad_data', error: `invalid parameter "query": ${error}` }));
}

/** answer returns a curve per kind, or a histogram, in the middle of the range; some segments were cached. */
function answer(q: URLSearchParams, res: ServerResponse) {
  const query = q.get('query') ?? '';
  const open = query.indexOf('(');
  if (open >= 0 && !query.includes(')'))
    return refuse(res, `1:${query.length + 1}: parse error: unclosed left parenthesis`);
  if (query.includes('nobody')) return send(res, [], 0);
  const [start, end, step] = ['start', 'end', 'step'].map((k) => Number(q.get(k))) as [number, number, number];
  const times: number[] = [];
  const [from, to] = query.includes('run=') ? [0, 1] : [0.3, 0.9];
  for (let i = 0; start + i * step <= end; i++) {
    const part = (i * step) / (end - start);
    if (part >= from && part <= to) times.push(start + i * step);
  }
  const histograms = /^sum\(rate\(loadstone_latency/.test(query);
  const seed = [...query].reduce((n, c) => (n * 31 + c.charCodeAt(0)) % 997, 7) / 997;
  const value = (i: number, k: number) => 900 / (k + 1) + 120 * Math.sin(i / 9 + k + seed * 6) * (1 + seed);
  const buckets = (i: number) =>
    Array.from({ length: 24 }, (_, b) => {
      const n = Math.max(0, 400 - (b - 10 - 4 * Math.sin(i / 20)) ** 2 * 12);
      return [0, String(0.0002 * 1.3 ** b), String(0.0002 * 1.3 ** (b + 1)), n.toFixed(1)];
    }).filter((b) => Number(b[3]) > 0);
  const series = histograms
    ? [{ metric: {}, histograms: times.map((t, i) => [t, { count: '3000', sum: '9', buckets: buckets(i) }]) }]
    : labels.kind.map((kind, k) => ({
        metric: { kind, table_type: 'postgres' },
        values: times.map((t, i) => [t, String(value(i, k) / (query.includes('quantile') ? 1e5 : 1))]),
      }));
  send(res, series, times.length);
}

function send(res: ServerResponse, result: unknown[], points: number) {
  const piece = {
    leaf: 0,
    of: 2,
    node_id: 'bench-01',
    attempt: 1,
    segments: 12,
    hits: 9,
    disk_hits: 2,
    fetched: 1,
    fetched_bytes: 84_000,
    samples: 40 * points,
    series: 3,
    bytes: 18_400,
    took_ms: 6.2,
  };
  const leaf = {
    expr: 'sum by (kind) (rate(loadstone_operations_total[4s]))',
    function: 'rate',
    pieces: [piece, piece],
  };
  const stats = {
    query_id: 'q-1',
    stages: { plan_ms: 0.2, segments_ms: 1.1, leaves_ms: 9, merge_ms: 2.2, first_piece_ms: 6.9 },
    timings: { execTotalTime: 0.0143 },
    samples: { totalQueryableSamples: 80 * points },
    leaves: [leaf],
  };
  const event = (name: string, data: unknown) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  res.write(event('plan', { leaves: [{ ...leaf, pieces: [] }] }) + event('progress', { done: 1, ...piece }));
  res.end(event('result', { resultType: 'matrix', result, stats }));
}

export const exploreRoutes: [string, RegExp, Handle][] = [
  [
    'GET',
    /^\/prometheus\/api\/v1\/metadata$/,
    () =>
      success({
        loadstone_operations_total: [{ type: 'counter', unit: '', help: 'Operations that ended.' }],
        loadstone_latency_seconds: [{ type: 'histogram', unit: 'seconds', help: 'Time of operations.' }],
      }),
  ],
  ['GET', /^\/prometheus\/api\/v1\/labels$/, () => success(['__name__', ...Object.keys(labels)])],
  [
    'GET',
    /^\/prometheus\/api\/v1\/label\/(\w+)\/values$/,
    ([, name]) => success(labels[name as keyof typeof labels] ?? []),
  ],
  ['POST', /^\/prometheus\/api\/v1\/query_events$/, (_m, _b, _q, res, text) => answer(new URLSearchParams(text), res)],
];
