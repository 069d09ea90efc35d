// The short ways: what a next question takes over, the form's folded fields, and what the palette finds.
import { describe, expect, it } from 'vitest';
import YAML from 'yaml';
import type { RunDetail, ScenarioDraft } from '../src/api/types';
import { pageEntries, ranked } from '../src/app/paletteEntries';
import { builtQuery } from '../src/explore/MetricPicker';
import { questions } from '../src/start/gallery';
import { limitOf, objectiveFor, retarget, usedTarget } from '../src/start/retarget';
import { matchingTables } from '../src/start/TablePicker';
import { blank } from '../src/templates/draft';
import { countSet } from '../src/templates/fields';

const own = { connection: 'shop: "eu"', adapter: 'postgres', table: 'sales.orders', own: true };

describe('the target of an earlier run', () => {
  const run = (target: object) => ({ scenario_config: { target } }) as unknown as RunDetail;
  it('is known where a saved connection is named', () => {
    expect(usedTarget(run({ connection: 'shop', adapter: 'postgres', table_name: 'orders' }))).toEqual({
      connection: 'shop',
      adapter: 'postgres',
      table: 'orders',
      own: true,
    });
    expect(usedTarget(run({ connection: { driver: 'postgres', dsn: '***' } }))).toBeNull();
    expect(usedTarget({ scenario_config: {} } as RunDetail)).toBeNull();
  });
  it.each(questions.filter((q) => q.id !== 'hybrid'))('is that of the question $id', (q) => {
    const text = retarget(q.source, own, !q.ownTables);
    const doc = YAML.parse(text) as { target: Record<string, unknown>; workload: object };
    const before = YAML.parse(q.source) as typeof doc;
    expect(doc.target.connection).toBe(own.connection);
    expect(doc.workload).toEqual(before.workload);
    if (q.ownTables) expect(doc.target.prepare).toEqual(before.target.prepare);
    else {
      expect(doc.target.table_name).toBe(own.table);
      expect(doc.target.prepare).toBeUndefined();
    }
    const comments = (s: string) => s.split('\n').filter((l) => /^#/.test(l));
    expect(comments(text)).toEqual(comments(q.source));
  });
  it('keeps the sample rows of a table that the run has made', () => {
    const q = questions.find((x) => x.id === 'lookups')!;
    const doc = YAML.parse(retarget(q.source, { ...own, own: false }, true)) as { target: { prepare: object } };
    expect(doc.target.prepare).toEqual({ rows: 100_000, if_exists: 'use' });
  });
  it('leaves a matrix unchanged', () => {
    const q = questions.find((x) => x.id === 'hybrid')!;
    expect(retarget(q.source, own, true)).toBe(q.source);
  });
});

describe('where is the limit', () => {
  const config = {
    ...blank(),
    name: 'n',
    target: { connection: 'shop', adapter: 'postgres', table_name: 'sales.orders' },
    workload: { ...blank().workload, params: { weights: { POINT_LOOKUP: 100 } } },
    thresholds: ['p95_ms < 5', 'error_rate < 0.01'],
  } as ScenarioDraft;
  it('searches the same table with the same operations', () => {
    const next = limitOf(config, 1.3);
    expect(next.target).toEqual(config.target);
    expect(next.workload.params).toEqual(config.workload.params);
    expect(next.workload.load_mode).toBe('FIND_MAX_CONCURRENCY');
    expect(next.find_max?.slo?.p95_ms).toBe(5);
    expect(next.thresholds).toEqual(['error_rate < 0.01']);
  });
  it('does not drop a table to search it', () => {
    const prepared = { ...config, target: { ...config.target!, prepare: { rows: 9, if_exists: 'recreate' } } };
    expect(limitOf(prepared as ScenarioDraft, null).target?.prepare?.if_exists).toBe('use');
  });
  it('proposes a round objective above the measured latency', () => {
    expect([0.9, 1.3, 2, 40].map(objectiveFor)).toEqual([5, 5, 10, 200]);
    expect(objectiveFor(null)).toBeUndefined();
  });
});

it('tables are found by the words of their names', () => {
  const all = ['sales.orders', 'Orders', 'items', 'sales.order_lines'];
  expect(matchingTables(all, 'ORDER')).toEqual(['Orders', 'sales.order_lines', 'sales.orders']);
  expect(matchingTables(all, 'order sales')).toEqual(['sales.order_lines', 'sales.orders']);
  expect(matchingTables(all, 'x')).toEqual([]);
});

it('folded fields are counted where the document sets them', () => {
  const config = { ...blank(), tags: {}, description: '', guardrails: { max_p95_ms: 0 } } as unknown as ScenarioDraft;
  expect(countSet(config, ['tags', 'description', 'guardrails.max_p95_ms', 'workload.seed', 'rules'])).toBe(2);
});

describe('the palette', () => {
  const entries = pageEntries(true, false);
  it('finds all words, what begins with the search first', () => {
    expect(ranked(entries, 'temp').map((e) => e.text)).toEqual(['Templates', 'Templates by question', 'New template']);
    expect(ranked(entries, 'new action connection').map((e) => e.text)).toEqual(['New connection']);
  });
  it('offers nobody what the role cannot do', () => {
    expect(pageEntries(false, false).some((e) => /^New|Audit|users/.test(e.text))).toBe(false);
    expect(pageEntries(true, true).some((e) => e.href === '/audit')).toBe(true);
  });
});

it('the query builder writes the usual query of each type', () => {
  const picked = { metric: 'm', by: 'kind', label: 'run', value: 'a"b' };
  expect(builtQuery({ ...picked, type: 'counter' })).toBe('sum by (kind) (rate(m{run="a\\"b"}[$__rate_interval]))');
  expect(builtQuery({ ...picked, type: 'histogram', by: '', label: '' })).toBe(
    'histogram_quantile(0.95, sum(rate(m[$__rate_interval])))',
  );
  expect(builtQuery({ ...picked, type: 'gauge', label: '', value: '' })).toBe('avg by (kind) (m)');
});
