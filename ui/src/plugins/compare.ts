import type { Plugin } from '../api/types';
import { describe, type Schema } from '../templates/schema';

export interface Difference {
  what: 'Parameter' | 'Statement' | 'Table' | 'Import';
  name: string;
  change: 'added' | 'removed' | 'changed';
  before: string;
  after: string;
}

type Parts = Map<string, string>;

/** parts lists what a version declares, by name. */
function parts(p: Plugin): Record<Difference['what'], Parts> {
  const m = p.manifest;
  return {
    Parameter: new Map(
      describe((m.parameters ?? {}) as Schema).map((f) => [f.path, `${f.type}, default ${f.fallback}`]),
    ),
    Statement: new Map((m.statements ?? []).map((s) => [s.id, statementText(s)])),
    Table: new Map(
      (m.tables ?? []).map((t) => [
        t.name,
        [
          `${(t.columns ?? []).map((c) => `${c.name} ${c.type}`).join(', ')}; key ${(t.key ?? []).join(', ')}`,
          ...ownDDL(t).map(([what, sql]) => `${what}: ${sql}`),
        ].join('\n'),
      ]),
    ),
    Import: new Map((p.imports ?? []).map((i) => [i, ''])),
  };
}

type Table = NonNullable<Plugin['manifest']['tables']>[number];

/** ownDDL lists a workload's own CREATE TABLE pieces. */
export function ownDDL(t: Table): [string, string][] {
  return [
    ...(t.columns ?? []).flatMap((c) =>
      Object.entries(c.db_type ?? {}).map(([d, sql]): [string, string] => [`${c.name} in ${dialectName(d)}`, sql]),
    ),
    ...Object.entries(t.options ?? {}).map(([d, sql]): [string, string] => [`Options in ${dialectName(d)}`, sql]),
  ];
}

type Declared = NonNullable<Plugin['manifest']['statements']>[number];

function statementText(s: Declared): string {
  const binds = (s.binds ?? []).map((b) => `${b.name} ${b.type}`).join(', ');
  const head = [s.kind, s.table, binds && `(${binds})`, s.writes ? 'writes' : ''].filter(Boolean).join(' ');
  const sql = Object.entries(s.sql ?? {}).map(([dialect, text]) => `-- ${dialectName(dialect)}\n${text}`);
  return [head, ...sql].join('\n');
}

/** dialectName names a statement's SQL dialect. */
export const dialectName = (dialect: string) => (dialect === '*' ? 'any dialect' : dialect);

/** differences lists what changed from the older to the newer version. */
export function differences(older: Plugin, newer: Plugin): Difference[] {
  const a = parts(older);
  const b = parts(newer);
  return (Object.keys(b) as Difference['what'][]).flatMap((what) =>
    [...new Set([...a[what].keys(), ...b[what].keys()])].flatMap((name): Difference[] => {
      const before = a[what].get(name);
      const after = b[what].get(name);
      if (before === after) return [];
      const change = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed';
      return [{ what, name, change, before: before ?? '', after: after ?? '' }];
    }),
  );
}
