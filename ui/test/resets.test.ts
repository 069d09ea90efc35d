import { describe, expect, it } from 'vitest';
import { plugins } from '../dev/plugins';
import type { Plugin, ScenarioDraft } from '../src/api/types';
import { blank } from '../src/templates/draft';
import { tablesOf, withTableType, withWorkload } from '../src/templates/resets';
import { set } from '../src/templates/schema';

const mix = plugins.find((p) => p.name === 'mix')!;
const table = mix.manifest.tables![0]!;
const workload = (name: string, more: Partial<Plugin['manifest']>): Plugin => ({
  ...mix,
  name,
  sha256: name,
  manifest: { ...mix.manifest, name, ...more },
});
const all = [
  ...plugins,
  workload('tpcb', { tables: [table, { ...table, name: 'tellers', rows: 10 }].map((t) => ({ ...t, rows: 10 })) }),
  workload('pair', { tables: [table, { ...table, name: 'more' }] }),
  workload('sql', { tables: [] }),
  workload('replay', { tables: [], feed: true }),
];

describe('another workload', () => {
  const before: ScenarioDraft = set(set(blank(), 'workload.params', { keys: 'zipfian' }), 'workload.feed', {
    run: 'r',
  });
  const after = (name: string, from = before) => withWorkload(from, name, all);

  it('has parameters of its own, and a recording only when it plays one', () => {
    expect(after('mix').workload).toMatchObject({ plugin: 'mix', params: {} });
    expect(after('mix').workload).not.toHaveProperty('feed');
    expect(after('replay').workload.feed).toEqual({ run: 'r' });
    expect(before.workload.params).toEqual({ keys: 'zipfian' });
  });
  it('keeps the table and its rows while there is one', () => {
    expect(after('mix').target).toEqual(before.target);
  });
  it('with several tables has no name for one, and no rows where its parameters decide them', () => {
    expect(after('pair').target).toEqual({ ...before.target, table_name: undefined });
    expect(after('pair').target).not.toHaveProperty('table_name');
    expect(after('tpcb').target!.prepare).toEqual({ if_exists: 'use' });
  });
  it('without tables prepares none, and the next one with tables does again', () => {
    const sql = after('sql');
    expect(sql.target).not.toHaveProperty('prepare');
    expect(sql.target!.table_name).toBe('orders');
    expect(after('mix', sql).target!.prepare).toEqual({ rows: 100_000, if_exists: 'use' });
    expect(after('tpcb', sql).target!.prepare).toEqual({ if_exists: 'use' });
    expect(after('replay', sql).target).not.toHaveProperty('prepare');
  });
  it('does not begin to prepare where its user did not want it', () => {
    const without = set(before, 'target.prepare', undefined);
    expect(after('tpcb', without).target).not.toHaveProperty('prepare');
    expect(after('pair', without).target).not.toHaveProperty('prepare');
  });
  it('that nobody knows changes only what is sure', () => {
    const unknown = withWorkload(before, 'unheard', undefined);
    expect(unknown.target).toEqual(before.target);
    expect(unknown.workload).toMatchObject({ plugin: 'unheard', params: {} });
    expect(tablesOf(undefined, 'unheard')).toMatchObject({ several: false, none: false });
  });
});

it('another table type has other parameters', () => {
  const before = set(blank(), 'target.params', { fillfactor: 70 });
  expect(withTableType(before, 'snowflake_hybrid').target).toEqual({ ...blank().target, adapter: 'snowflake_hybrid' });
});
