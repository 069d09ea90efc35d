import { queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../api/client';
import { harmless } from '../api/harmless';
import { useConnections, useMay, useMe } from '../api/queries';
import { mayUse } from '../app/AccessFields';
import type { CatalogRelation, Connection, RelationCatalog, Sketch, User } from '../api/types';
import type { Finding } from './findings';
import { get, shownAs } from './schema';

/** The name of a saved connection; empty where one is spelled out, or none is named. */
const named = (ref: unknown) => (typeof ref === 'string' ? ref : '');

/** What the user of a connection sees, for who may look. */
const catalogOf = (connection: string, may: boolean) =>
  queryOptions({
    queryKey: ['relations', connection],
    staleTime: 60_000,
    retry: false,
    enabled: may && connection !== '',
    queryFn: ({ signal }) => api.post('/api/statements/catalog', { body: { connection }, signal }),
  });

/** What the chosen connection's user sees; undefined while it is not known, or where it cannot be read. */
function useCatalog(config: Sketch): RelationCatalog | undefined {
  return useQuery(catalogOf(named(get(config, 'target.connection')), useMay('operator'))).data;
}

/** The tables of the chosen connection; nothing where they cannot be read. */
export function useRelations(config: Sketch): CatalogRelation[] {
  const found = useCatalog(config);
  return useMemo(() => found?.relations ?? [], [found]);
}

/** How many letters two words differ by: added, left out, changed, or two that changed places. */
export function distance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      now[j] = Math.min(last[j]! + 1, now[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        now[j] = Math.min(now[j]!, before[j - 2]! + 1);
    }
    before = last;
    last = now;
  }
  return last[b.length]!;
}

const plainName = (r: CatalogRelation) => (r.schema.toLowerCase() === 'public' ? r.name : `${r.schema}.${r.name}`);

/** The targets of a template, each with where it stands: one, or those of a matrix. */
function targets(config: Sketch): { field: string; target: unknown }[] {
  const several = get(config, 'matrix.targets');
  if (get(config, 'matrix') == null) return [{ field: 'target', target: get(config, 'target') }];
  return Array.isArray(several) ? several.map((target: unknown, i) => ({ field: `matrix.targets[${i}]`, target })) : [];
}

/** What a connection's user sees, by the name of the connection; undefined where it is not known. */
type Catalogs = (connection: string) => RelationCatalog | undefined;

/**
 * What is to be said of tables that are not there: a run makes one only when rows are to be loaded. A warning, as the
 * table may come before the run does; nothing where names are prefixes, or not all tables are known.
 */
export function unknownTables(config: Sketch, catalogs: Catalogs, several: boolean): Finding[] {
  if (several) return [];
  return targets(config).flatMap(({ field, target }) => {
    const catalog = catalogs(named(get(target, 'connection')));
    const name = shownAs(get(target, 'table_name')).trim();
    if (!catalog || catalog.truncated || !name || name.length > 128 || get(target, 'prepare')) return [];
    return unknownTable(`${field}.table_name`, name, catalog);
  });
}

function unknownTable(field: string, name: string, catalog: RelationCatalog): Finding[] {
  const relations = catalog.relations ?? [];
  const said = name.replaceAll('"', '').toLowerCase();
  const known = relations.flatMap((r) => [r.name, `${r.schema}.${r.name}`]).map((n) => n.toLowerCase());
  if (known.some((n) => n === said || said.endsWith(`.${n}`))) return [];
  let near = '';
  let least = 1 + Math.max(2, Math.floor(said.length / 3));
  for (const r of relations)
    for (const n of [r.name, `${r.schema}.${r.name}`]) {
      const d = distance(said, n.toLowerCase());
      if (d < least) [near, least] = [plainName(r), d];
    }
  return [
    {
      field,
      message: `the connection sees no table "${harmless(name)}", and no rows are to be loaded`,
      hint: near ? `did you mean "${near}"?` : 'it is looked for when the run begins',
      warning: true,
    },
  ];
}

/** The same, of the draft as it is. */
export function useUnknownTables(config: Sketch, several: boolean): Finding[] {
  const may = useMay('operator');
  const names = [...new Set(targets(config).map(({ target }) => named(get(target, 'connection'))))];
  const seen = useQueries({
    queries: names.map((n) => catalogOf(n, may)),
    combine: (all) => all.map((one): RelationCatalog | undefined => one.data),
  });
  return useMemo(
    () => unknownTables(config, (n) => seen[names.indexOf(n)], several),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the names are those of the document
    [config, seen, several],
  );
}

/** What is to be said of connections that the user may not use: it can save the template, and not run it. */
export function barred(config: Sketch, connections: Connection[], me: Pick<User, 'user_id' | 'role'>): Finding[] {
  if (me.role === 'viewer') return []; // who runs nothing is told so elsewhere
  return targets(config).flatMap(({ field, target }) => {
    const c = connections.find((o) => o.name === named(get(target, 'connection')));
    if (!c || mayUse(c.access, me)) return [];
    const whom = c.access.owner ? `its owner ${harmless(c.access.owner)} or an admin` : 'an admin';
    return [
      {
        field: `${field}.connection`,
        message: 'you may not use this connection, so that you cannot run this template',
        hint: `ask ${whom} to name you under “Who may use it”`,
        warning: true,
      },
    ];
  });
}

/** The same, of the draft as it is. */
export function useBarred(config: Sketch): Finding[] {
  const me = useMe().data;
  const connections = useConnections().data;
  return useMemo(() => (me && connections ? barred(config, connections, me) : []), [config, connections, me]);
}
