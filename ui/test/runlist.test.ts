import { expect, it } from 'vitest';
import type { RunRow } from '../src/api/types';
import { columnsFrom, standard } from '../src/history/columns';
import { figureOf, type Tracked, trend, trendHeadline } from '../src/history/figures';
import { nameProblem, normalizeQuery, uploadName, viewQuery, viewsFrom } from '../src/history/localViews';

it('an address names columns in any order, and some that nobody knows', () => {
  expect(columnsFrom('created,qps,<script>,p95_ms')).toEqual(['qps', 'p95_ms', 'created']);
  expect(columnsFrom('')).toBeNull();
  expect(columnsFrom('nothing,known')).toBeNull();
});

it('a view keeps filters, order, columns and trend, and neither the page nor the marked runs', () => {
  const q = new URLSearchParams(
    viewQuery(
      'status=FAILED&search=a%26b&tag=x%3A1&tag=y%3A2&sort=-p95_ms&cursor=c&selected=r1&trend=qps&evil=1',
      'qps,p95_ms',
    ),
  );
  expect([...q.keys()]).toEqual(['status', 'search', 'tag', 'tag', 'sort', 'trend', 'columns']);
  expect(q.get('search')).toBe('a&b');
  expect(q.getAll('tag')).toEqual(['x:1', 'y:2']);
  expect(q.get('columns')).toBe('qps,p95_ms');
});

it('views that were changed by hand are read as far as they are views', () => {
  expect(viewsFrom('no json')).toEqual([]);
  expect(viewsFrom('{"name":"x"}')).toEqual([]);
  expect(viewsFrom(null)).toEqual([]);
  const read = viewsFrom(
    JSON.stringify([
      null,
      7,
      { name: 5, search: '' },
      { name: ' ', search: '' },
      { name: 'a'.repeat(10_000), search: 'cursor=1&sort=name' },
    ]),
  );
  expect(read).toHaveLength(1);
  expect(read[0]!.name).toHaveLength(80);
  expect(new URLSearchParams(read[0]!.search).has('cursor')).toBe(false);
});

it('a view of the browser comes to the server under a name that is free, unless it is there', () => {
  const v = { name: 'slow', search: normalizeQuery('sort=-p95_ms') };
  expect(uploadName(v, [])).toBe('slow');
  expect(uploadName(v, [{ name: 'slow', query: 'columns=&sort=-p95_ms' }])).toBe('');
  const other = { name: 'slow', query: 'sort=name' };
  expect(uploadName(v, [other])).toBe('slow (browser)');
  expect(uploadName(v, [other, { name: 'slow (browser)', query: 'sort=qps' }])).toBe('slow (browser 2)');
  expect(uploadName(v, [other, { name: 'slow (browser)', query: v.search }])).toBe('');
  const long = uploadName({ ...v, name: 'x'.repeat(80) }, [{ name: 'x'.repeat(80), query: 'sort=name' }]);
  expect(long).toHaveLength(80);
  expect(long.endsWith('x (browser)')).toBe(true);
});

it('what no view can be called is said, and when there are too many', () => {
  const full = Array.from({ length: 200 }, (_, i) => ({ name: `v${i}` }));
  expect(nameProblem('new', full, 200)).toMatch(/Delete one first/);
  expect(nameProblem('v3', full, 200)).toBe('');
  expect(nameProblem('x'.repeat(81), [], 200)).toMatch(/at most 80/);
  expect(nameProblem('fine', [], 200)).toBe('');
});

const run = (id: string, minute: number, p95: number | null, status: RunRow['status'] = 'COMPLETED'): Tracked => ({
  run_id: id,
  test_name: id,
  start_time: new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString(),
  end_time: new Date(Date.UTC(2026, 0, 1, 0, minute, 30)).toISOString(),
  status,
  total_ops: 1000,
  qps: 100,
  p50_ms: 1,
  p95_ms: p95,
  p99_ms: 2,
  error_rate: 0,
  connections: 16,
});

it('the trend of a figure goes over the runs that are over and have it, oldest first, with its unit', () => {
  const p95 = figureOf('p95_ms')!;
  const dots = trend([run('c', 3, 3.4), run('a', 1, 1.02), run('b', 2, null), run('d', 4, 9, 'RUNNING')], p95);
  expect(dots.map((d) => [d.run.run_id, d.value])).toEqual([
    ['a', 1.02],
    ['c', 3.4],
  ]);
  expect(trendHeadline(dots, p95)).toBe('P95 of 2 runs: 1.02 ms to 3.40 ms, the newest 3.40 ms.');
  const length = figureOf('length')!;
  expect(trendHeadline(trend([run('a', 1, 1)], length), length)).toBe('Length: 30 s, in the only run that has it.');
  expect(trendHeadline([], p95)).toBe('');
  expect(figureOf('password')).toBeUndefined();
  expect(standard).toContain('p95_ms');
});
