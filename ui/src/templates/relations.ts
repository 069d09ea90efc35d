import { queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../api/client';
import { safeText } from '../api/safeText';
import { useConnections, useHasRole, useMe } from '../api/queries';
import { canUse } from '../app/AccessFields';
import type { CatalogRelation, Connection, RelationCatalog, ScenarioDraft, User } from '../api/types';
import type { Finding } from './findings';
import { get, shownAs } from './schema';

/** named is the name of a saved connection; empty for an inline one, or none. */
const named = (ref: unknown) => (typeof ref === 'string' ? ref : '');

/** catalogOf queries what a connection's user sees, if allowed. */
export const catalogOf = (connection: string, may: boolean) =>
  queryOptions({
    queryKey: ['relations', connection],
    staleTime: 60_000,
    retry: false,
    enabled: may && connection !== '',
    queryFn: ({ signal }) => api.post('/api/statements/catalog', { body: { connection }, signal }),
  });

/** useCatalog is the catalog of the chosen connection; undefined while unknown or unreadable. */
function useCatalog(config: ScenarioDraft): RelationCatalog | undefined {
  return useQuery(catalogOf(named(get(config, 'target.connection')), useHasRole('operator'))).data;
}

/** useRelations lists the tables of the chosen connection; empty when unreadable. */
export function useRelations(config: ScenarioDraft): CatalogRelation[] {
  const found = useCatalog(config);
  return useMemo(() => found?.relations ?? [], [found]);
}

/** distance is the edit distance of two words, with transpositions. */
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

/** plainName is a table's name as a template gives it. */
export const plainName = (r: CatalogRelation) =>
  r.schema.toLowerCase() === 'public' ? r.name : `${r.schema}.${r.name}`;

/** targets lists the targets of a template with their paths. */
function targets(config: ScenarioDraft): { field: string; target: unknown }[] {
  const several = get(config, 'matrix.targets');
  if (get(config, 'matrix') == null) return [{ field: 'target', target: get(config, 'target') }];
  return Array.isArray(several) ? several.map((target: unknown, i) => ({ field: `matrix.targets[${i}]`, target })) : [];
}

/** Catalogs returns a connection's catalog by name; undefined when unknown. */
type Catalogs = (connection: string) => RelationCatalog | undefined;

/**
 * unknownTables warns about missing tables; a run creates one only when it loads rows. Not an error, as the table may
 * be created later. Nothing where names are prefixes, or the catalog is incomplete.
 */
export function unknownTables(config: ScenarioDraft, catalogs: Catalogs, several: boolean): Finding[] {
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
  const lower = name.replaceAll('"', '').toLowerCase();
  const known = relations.flatMap((r) => [r.name, `${r.schema}.${r.name}`]).map((n) => n.toLowerCase());
  if (known.some((n) => n === lower || lower.endsWith(`.${n}`))) return [];
  let near = '';
  let minDistance = 1 + Math.max(2, Math.floor(lower.length / 3));
  for (const r of relations)
    for (const n of [r.name, `${r.schema}.${r.name}`]) {
      const d = distance(lower, n.toLowerCase());
      if (d < minDistance) [near, minDistance] = [plainName(r), d];
    }
  return [
    {
      field,
      message: `the connection sees no table "${safeText(name)}", and the template loads no rows`,
      hint: near ? `did you mean "${near}"?` : 'the run checks again when it starts',
      warning: true,
    },
  ];
}

export function useUnknownTables(config: ScenarioDraft, several: boolean): Finding[] {
  const may = useHasRole('operator');
  const names = [...new Set(targets(config).map(({ target }) => named(get(target, 'connection'))))];
  const results = useQueries({
    queries: names.map((n) => catalogOf(n, may)),
    combine: (all) => all.map((one): RelationCatalog | undefined => one.data),
  });
  return useMemo(
    () => unknownTables(config, (n) => results[names.indexOf(n)], several),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the names are those of the document
    [config, results, several],
  );
}

/** forbiddenConnections warns about connections the user may not use: the template can be saved, but not run. */
export function forbiddenConnections(
  config: ScenarioDraft,
  connections: Connection[],
  me: Pick<User, 'user_id' | 'role'>,
): Finding[] {
  if (me.role === 'viewer') return []; // who runs nothing is told so elsewhere
  return targets(config).flatMap(({ field, target }) => {
    const c = connections.find((o) => o.name === named(get(target, 'connection')));
    if (!c || canUse(c.access, me)) return [];
    const owner = c.access.owner ? `its owner ${safeText(c.access.owner)} or an admin` : 'an admin';
    return [
      {
        field: `${field}.connection`,
        message: 'you may not use this connection, so you cannot run this template',
        hint: `ask ${owner} to name you under “Who may use it”`,
        warning: true,
      },
    ];
  });
}

export function useForbiddenConnections(config: ScenarioDraft): Finding[] {
  const me = useMe().data;
  const connections = useConnections().data;
  return useMemo(
    () => (me && connections ? forbiddenConnections(config, connections, me) : []),
    [config, connections, me],
  );
}
