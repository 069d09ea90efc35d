import { type ReactNode, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import type { StreamCatalog } from '../api/types';
import { ActionsMenu, SearchBox, Segments } from '../design/Controls';
import type { Question } from '../design/Dialog';
import { Empty } from '../design/States';
import { NodeStateBadge } from '../nodes/NodeState';
import { execute } from './StreamsPage';
import { quotedName, schemaOf } from './model';

const tabs = [
  { value: 'sources', label: 'Sources' },
  { value: 'sinks', label: 'Sinks' },
  { value: 'workers', label: 'Workers' },
] as const;
type Tab = (typeof tabs)[number]['value'];

interface Props {
  catalog: StreamCatalog;
  ask: (q: Question) => void;
  changed: () => unknown;
  notify: (message: string) => void;
}

/** Catalog lists sources, sinks and workers. */
export function Catalog(props: Props) {
  const { catalog: c } = props;
  const [path, navigate] = useLocation();
  const params = new URLSearchParams(useSearch());
  const tab = tabs.find((t) => t.value === params.get('show'))?.value ?? 'sources';
  const [search, setSearch] = useState('');
  const pick = (t: Tab) => {
    params.set('show', t);
    navigate(`${path}?${params.toString()}`, { replace: true });
  };
  const drop = (what: string, name: string, statement: string) => ({
    label: 'Drop',
    icon: 'trash',
    danger: true,
    needs: 'operator' as const,
    act: () =>
      props.ask({
        title: `Drop ${what} ${name}?`,
        body: 'It is dropped only if nothing refers to it.',
        verb: `Drop ${what}`,
        act: async () => {
          await execute(statement);
          props.notify(`The ${what} ${name} is dropped.`);
          await props.changed();
        },
      }),
  });
  const has = (...texts: string[]) => texts.join(' ').toLowerCase().includes(search.toLowerCase());
  const rows: Record<Tab, ReactNode[]> = {
    sources: c.sources
      .filter((s) => has(s.name, schemaOf(s.columns), ...s.physical.map((p) => p.type)))
      .map((s) => (
        <tr key={s.name}>
          <td>
            <code>{s.name}</code>
          </td>
          <td className="cell">{schemaOf(s.columns)}</td>
          <td>
            {s.physical.length === 0 ? (
              <span className="muted">none, so it cannot be read</span>
            ) : (
              s.physical.map((p) => (
                <span key={p.id} className="row physical">
                  <span className="chip">{p.type}</span>
                  <span title="The id for DROP">#{p.id}</span>
                  {p.placement && <span className="muted">on {p.placement}</span>}
                  <ActionsMenu
                    small
                    label={`Actions for the physical source ${p.id}`}
                    actions={[drop('physical source', String(p.id), `DROP PHYSICAL SOURCE ${p.id}`)]}
                  />
                </span>
              ))
            )}
          </td>
          <td className="num">
            <ActionsMenu
              small
              label={`Actions for the source ${s.name}`}
              actions={[drop('logical source', s.name, `DROP LOGICAL SOURCE ${quotedName(s.name)}`)]}
            />
          </td>
        </tr>
      )),
    sinks: c.sinks
      .filter((s) => has(s.name, s.type, schemaOf(s.columns)))
      .map((s) => (
        <tr key={s.name}>
          <td>
            <code>{s.name}</code>
          </td>
          <td>
            <span className="chip">{s.type}</span>
            {s.placement && <span className="muted"> on {s.placement}</span>}
          </td>
          <td className="cell">{schemaOf(s.columns) || <span className="muted">columns of the query</span>}</td>
          <td className="num">
            <ActionsMenu
              small
              label={`Actions for the sink ${s.name}`}
              actions={[drop('sink', s.name, `DROP SINK ${quotedName(s.name)}`)]}
            />
          </td>
        </tr>
      )),
    workers: c.workers
      .filter((w) => has(w.host_name, w.state))
      .map((w) => (
        <tr key={w.host_name}>
          <td>
            <code>{w.host_name}</code>
          </td>
          <td>
            <NodeStateBadge node={{ state: w.state, reason: '' }} />
          </td>
          <td className="num">
            {w.used_slots.toLocaleString('en-US')} of {w.slots.toLocaleString('en-US')}
          </td>
        </tr>
      )),
  };
  const heads: Record<Tab, ReactNode> = {
    sources: (
      <>
        <th>Source</th>
        <th>Columns</th>
        <th>Rows come from</th>
        <th>
          <span className="sr">Actions</span>
        </th>
      </>
    ),
    sinks: (
      <>
        <th>Sink</th>
        <th>Type</th>
        <th>Columns</th>
        <th>
          <span className="sr">Actions</span>
        </th>
      </>
    ),
    workers: (
      <>
        <th>Worker</th>
        <th>State</th>
        <th className="num" title="Fragments of queries, and the maximum">
          Slots used
        </th>
      </>
    ),
  };
  const total = { sources: c.sources.length, sinks: c.sinks.length, workers: c.workers.length }[tab];
  return (
    <section className="panel stream-catalog" aria-label="Catalog">
      <header>
        <h2>Catalog</h2>
        <Segments label="What is listed" value={tab} options={tabs} onChange={pick} />
        <div className="end">
          {total > 8 && <SearchBox value={search} placeholder="Name, type or column" onChange={setSearch} />}
        </div>
      </header>
      {rows[tab].length === 0 ? (
        <Empty tight icon="search" title={total > 0 ? `No match for “${search}”` : empty[tab][0]}>
          {total === 0 && empty[tab][1]}
        </Empty>
      ) : (
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Catalog, scrollable">
          <table className="table">
            <thead>
              <tr>{heads[tab]}</tr>
            </thead>
            <tbody>{rows[tab].slice(0, 200)}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const empty: Record<Tab, [string, ReactNode]> = {
  sources: [
    'No source',
    'CREATE LOGICAL SOURCE defines the columns. CREATE PHYSICAL SOURCE defines where the rows come from.',
  ],
  sinks: ['No sink', 'CREATE SINK name TYPE PRINT shows rows on this page; GUARDRAIL stops runs, WEBHOOK posts rows.'],
  workers: ['No worker', 'Queries run in the process of a server.'],
};
