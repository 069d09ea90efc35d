import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { useNodeDemand } from '../api/queries';
import { usePageTitle } from '../app/location';
import { Dialog, useConfirm } from '../design/Dialog';
import { ago } from '../design/format';
import { Icon } from '../design/icons';
import { Empty, Load, Notice, SkeletonRows } from '../design/States';
import { Join } from './Join';
import { nodesSummary } from './model';
import { NodeTable } from './NodeTable';
import './nodes.css';
import { TelemetryExport } from './TelemetryExport';
import { Timeline } from './Timeline';
import { Tokens } from './Tokens';
import { WaitingRuns } from './WaitingRuns';

/** NodesPage is /nodes: load nodes, their work and their history. */
export function NodesPage() {
  usePageTitle('Nodes');
  const qc = useQueryClient();
  const [adding, setAdding] = useState(false);
  const [dialog, ask] = useConfirm();
  const list = useQuery({
    queryKey: ['nodes'],
    queryFn: ({ signal }) => api.get('/api/v1/nodes', { signal }),
    refetchInterval: 1_500,
  });
  const events = useQuery({
    queryKey: ['node-events'],
    queryFn: ({ signal }) => api.get('/api/v1/node-events', { query: { limit: 500 }, signal }),
    refetchInterval: 3_000,
  });
  const needs = useNodeDemand(true);
  const changed = () =>
    Promise.all([qc.invalidateQueries({ queryKey: ['nodes'] }), qc.invalidateQueries({ queryKey: ['node-events'] })]);
  const now = Date.parse(list.data?.at ?? '') || Date.now();
  const remote = list.data?.nodes?.some((n) => !n.local);
  return (
    <>
      <header className="page-head">
        <h1>Nodes</h1>
        <span className="sub hide-phone" role="status">
          {list.data ? nodesSummary(list.data.nodes ?? []) : 'Machines that generate load.'}
        </span>
        <div className="actions">
          <button type="button" className="btn primary" onClick={() => setAdding(true)}>
            <Icon name="plus" /> Add a node
          </button>
        </div>
      </header>
      <div className="page">
        {list.data && list.error && (
          <Notice tone="warn">The server does not answer; what is shown is of {ago(list.data.at)}.</Notice>
        )}
        <Load
          from={list}
          what="The nodes could not be read."
          skeleton={
            <div className="panel">
              <SkeletonRows rows={5} />
            </div>
          }
        >
          {(d) => (
            <>
              {(d.nodes ?? []).length > 0 && (
                <NodeTable
                  nodes={d.nodes ?? []}
                  server={d.server}
                  needs={needs.data}
                  now={now}
                  ask={ask}
                  changed={changed}
                />
              )}
              <WaitingRuns needs={needs.data} now={now} />
              {!remote && (
                <section className="panel" aria-label="The first node">
                  <Empty icon="nodes" title={d.nodes?.length ? 'Only the server generates load' : 'No node'}>
                    A node on its own machine keeps the load off the server. Three commands add the first one.
                  </Empty>
                  <Join />
                </section>
              )}
              <Tokens now={now} ask={ask} />
              <TelemetryExport now={now} />
              <Timeline nodes={d.nodes ?? []} events={events.data?.events ?? []} server={d.server} now={now} />
            </>
          )}
        </Load>
      </div>
      {adding && (
        <Dialog title="Add a node" wide onClose={() => setAdding(false)}>
          <Join />
          <div className="actions">
            <button type="button" className="btn" onClick={() => setAdding(false)}>
              Close
            </button>
          </div>
        </Dialog>
      )}
      {dialog}
    </>
  );
}
