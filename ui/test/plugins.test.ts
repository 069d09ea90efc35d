import { describe, expect, it } from 'vitest';
import { plugins } from '../dev/plugins';
import { uploads } from '../dev/uploads';
import type { Plugin } from '../src/api/types';
import { differences } from '../src/plugins/compare';
import { findPlugin, pluginOptions } from '../src/plugins/refs';

const all: Plugin[] = [...plugins, ...uploads];
const [next, current, damaged] = uploads as [Plugin, Plugin, Plugin];

describe('what a reference means', () => {
  it('is a hash, a version, or the default of a name', () => {
    expect(findPlugin(all, 'workload', 'counters')).toBe(current);
    expect(findPlugin(all, 'workload', 'counters@1.1.0')).toBe(next);
    expect(findPlugin(all, null, damaged.sha256)).toBe(damaged);
    expect(findPlugin(all, 'adapter', 'counters')).toBeUndefined();
    expect(findPlugin(all, 'workload', 'counters@7')).toBeUndefined();
    expect(findPlugin(undefined, 'workload', 'mix')).toBeUndefined();
  });
  it('falls back to some version when none is the default', () => {
    expect(findPlugin([next], 'workload', 'counters')).toBe(next);
  });
});

describe('what a template is offered', () => {
  it('is enabled plugins, by name while there is one version', () => {
    expect(pluginOptions(all, 'workload').map((c) => c.value)).toEqual(['mix', 'counters']);
    expect(pluginOptions(all, 'adapter').map((c) => c.value)).toEqual(['postgres']);
    expect(pluginOptions(undefined, 'adapter')).toEqual([]);
  });
  it('is each version where there are several', () => {
    const list = pluginOptions(
      [{ ...next, state: 'enabled', default: true }, { ...current, default: false }, damaged],
      'workload',
    );
    expect(list.map((c) => c.value)).toEqual(['counters', 'counters@1.1.0', 'counters@1.0.0']);
    expect(list[0]!.label).toBe('counters: Counters (the highest version, now 1.1.0)');
  });
});

describe('what differs between versions', () => {
  it('names what was added, removed and changed', () => {
    const list = differences(current, next);
    expect(list.map((d) => `${d.what} ${d.name} ${d.change}`)).toEqual([
      'Parameter hot added',
      'Statement reset added',
    ]);
    expect(differences(next, current).map((d) => d.change)).toEqual(['removed', 'removed']);
    expect(list[1]!.after).toContain('DELETE FROM counters');
    expect(list[1]!.before).toBe('');
  });
  it('shows SQL, limits and columns that changed', () => {
    const m = next.manifest;
    const changed: Plugin = {
      ...next,
      imports: [...next.imports!, 'ls.other'],
      manifest: {
        ...m,
        parameters: {
          type: 'object',
          properties: {
            reads: { type: 'integer', minimum: 0, maximum: 50, default: 20 },
            hot: m.parameters && (m.parameters as { properties: Record<string, unknown> }).properties.hot,
          },
        },
        tables: [{ ...m.tables![0]!, columns: [{ name: 'id', type: 'i64' }] }],
        statements: m.statements!.map((s) => (s.id === 'hit' ? { ...s, sql: { postgres: 'DROP TABLE counters' } } : s)),
      },
    };
    const list = differences(next, changed);
    expect(list.map((d) => `${d.what} ${d.name} ${d.change}`)).toEqual([
      'Parameter reads changed',
      'Statement hit changed',
      'Table counters changed',
      'Import ls.other added',
    ]);
    expect(list[0]).toMatchObject({ before: 'integer, 0 to 100, default 20', after: 'integer, 0 to 50, default 20' });
    expect(list[1]!.after).toContain('DROP TABLE');
  });
  it('shows the SQL that tables bring', () => {
    const t = next.manifest.tables![0]!;
    const own: Plugin = {
      ...next,
      manifest: {
        ...next.manifest,
        tables: [
          {
            ...t,
            columns: t.columns!.map((c, i) => (i ? c : { ...c, db_type: { postgres: 'numeric(9)' } })),
            options: { '*': 'TABLESPACE fast' },
          },
        ],
      },
    };
    const [table, ...more] = differences(next, own);
    expect(more).toEqual([]);
    expect(table!.after).toContain(`${t.columns![0]!.name} in postgres: numeric(9)`);
    expect(table!.after).toContain('Options in any dialect: TABLESPACE fast');
  });
  it('is nothing for the same', () => {
    expect(differences(next, next)).toEqual([]);
    expect(
      differences(
        { ...next, manifest: { ...next.manifest, parameters: undefined, statements: null, tables: undefined } },
        next,
      ).length,
    ).toBe(6);
  });
});
