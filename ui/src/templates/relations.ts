import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../api/client';
import { useMay } from '../api/queries';
import type { CatalogRelation, RelationCatalog, Sketch } from '../api/types';
import type { Finding } from './findings';
import { get, shownAs } from './schema';

/** What the chosen connection's user sees; undefined while it is not known, or where it cannot be read. */
function useCatalog(config: Sketch): RelationCatalog | undefined {
  const ref = get(config, 'target.connection');
  const may = useMay('operator');
  const name = typeof ref === 'string' ? ref : '';
  return useQuery({
    queryKey: ['relations', name],
    staleTime: 60_000,
    retry: false,
    enabled: may && name !== '',
    queryFn: ({ signal }) => api.post('/api/statements/catalog', { body: { connection: name }, signal }),
  }).data;
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

/**
 * What is to be said of a table that is not there: a run makes one only when rows are to be loaded. A warning, as the
 * table may come before the run does; nothing where names are prefixes, or not all tables are known.
 */
export function unknownTable(config: Sketch, catalog: RelationCatalog | undefined, several: boolean): Finding[] {
  const name = shownAs(get(config, 'target.table_name')).trim();
  if (!catalog || catalog.truncated || several || !name || name.length > 128) return [];
  if (get(config, 'matrix') || get(config, 'target.prepare')) return [];
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
      field: 'target.table_name',
      message: `the connection sees no table "${name}", and no rows are to be loaded`,
      hint: near ? `did you mean "${near}"?` : 'it is looked for when the run begins',
      warning: true,
    },
  ];
}

/** The same, of the draft as it is. */
export function useUnknownTable(config: Sketch, several: boolean): Finding[] {
  const catalog = useCatalog(config);
  return useMemo(() => unknownTable(config, catalog, several), [config, catalog, several]);
}
