import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { SearchBox } from '../design/Controls';
import { Failed, SkeletonRows } from '../design/States';
import { catalogOf, plainName } from '../templates/relations';

/** maxListed tables are listed at once; a search finds the others. */
const maxListed = 100;

/** matchingTables are the tables whose name contains all words of a search, in the order of their names. */
export function matchingTables(names: string[], search: string): string[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return names
    .filter((n) => words.every((w) => n.toLowerCase().includes(w)))
    .sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
}

/** TablePicker lists the tables of a connection, with search. */
export function TablePicker(props: { connection: string; value: string; onChange: (table: string) => void }) {
  const [search, setSearch] = useState('');
  const catalog = useQuery(catalogOf(props.connection, true));
  if (catalog.isPending) return <SkeletonRows rows={3} />;
  if (catalog.error)
    return (
      <Failed
        what="The tables of this connection could not be read."
        error={catalog.error}
        retry={() => catalog.refetch()}
      />
    );
  const all = (catalog.data.relations ?? []).map(plainName);
  const found = matchingTables(all, search);
  return (
    <div className="stack tightly">
      <SearchBox value={search} placeholder={`Search ${all.length} tables`} onChange={setSearch} />
      <div className="table-list" role="radiogroup" aria-label="Tables">
        {found.slice(0, maxListed).map((name) => (
          <label key={name} data-row>
            <input type="radio" name="table" checked={props.value === name} onChange={() => props.onChange(name)} />
            <span className="mono wrap-anywhere">{name}</span>
          </label>
        ))}
        {found.length === 0 && (
          <p className="muted">
            {all.length === 0
              ? 'The user of this connection sees no tables. Choose another connection, or create a sample table.'
              : 'No table name matches. Change the search.'}
          </p>
        )}
        {found.length > maxListed && (
          <p className="muted">{found.length - maxListed} more tables match. Enter more of the name.</p>
        )}
      </div>
      {catalog.data.truncated && (
        <p className="muted">The list is incomplete because the database has too many tables.</p>
      )}
    </div>
  );
}
