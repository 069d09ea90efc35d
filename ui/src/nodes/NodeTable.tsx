import { Link } from 'wouter';
import { api } from '../api/client';
import type { Needs, Node } from '../api/types';
import { ActionsMenu, Term } from '../design/Controls';
import type { Question } from '../design/Dialog';
import { ago, bytes, latency, percent, plain } from '../design/format';
import { Num } from '../design/Num';
import { HealthBadge } from '../design/Status';
import { terms } from '../design/terms';
import { nodeUsage, reserved, runsOn } from './model';
import { NodeStateBadge } from './NodeState';

type Verb = 'drain' | 'resume' | 'remove';

/** question is the confirmation before a node action. */
export function question(n: Node, verb: Verb, act: () => unknown): Question {
  const workers = n.run_workers?.length ?? 0;
  const loaded = workers > 0 ? `The node hosts ${workers} run ${workers === 1 ? 'worker' : 'workers'} now. ` : '';
  if (verb === 'resume')
    return { title: `Resume ${n.node_id}?`, body: 'New runs can use the node again.', verb: 'Resume', act };
  if (verb === 'drain')
    return {
      title: `Drain ${n.node_id}?`,
      body: `${loaded}Its current runs finish. New runs do not use the node until you resume it.`,
      verb: 'Drain',
      act,
    };
  return {
    title: `Remove ${n.node_id}?`,
    body:
      `${loaded}The server disconnects the node and rejects it from now on. Its run workers stop and count as ` +
      'lost. Drain the node first to avoid that.',
    verb: 'Remove',
    act,
  };
}

function Meter({ share, label, tone }: { share: number; label: string; tone?: string }) {
  return (
    <div className="meter" title={label}>
      <div
        className={`progress ${tone ?? ''}`}
        role="meter"
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-label={label}
      >
        <i style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}

function Machine({ n }: { n: Node }) {
  const r = n.resources;
  if (!r) return <span className="muted">–</span>;
  const tone = (p: number) => (p >= 90 ? 'high' : '');
  return (
    <div className="machine">
      <span>CPU</span>
      <Meter
        share={Math.min(1, r.host_cpu_pct / 100)}
        tone={tone(r.host_cpu_pct)}
        label={`CPU of the machine ${plain(percent(r.host_cpu_pct))}, of the node ${plain(percent(r.cpu_pct))}`}
      />
      <span>Memory</span>
      <Meter
        share={Math.min(1, r.host_memory_pct / 100)}
        tone={tone(r.host_memory_pct)}
        label={
          `Memory of the machine ${plain(percent(r.host_memory_pct))}, of the node ` + `${plain(bytes(r.memory_bytes))}`
        }
      />
    </div>
  );
}

function Clock({ n }: { n: Node }) {
  if (n.clock_offset_ms === null || n.clock_offset_ms === undefined) return <span className="muted">–</span>;
  const q = latency(Math.abs(n.clock_offset_ms));
  const direction = n.clock_offset_ms < 0 ? 'behind' : 'ahead of';
  return (
    <span title={`${plain(q)} ${direction} the server's clock, ± ${plain(latency(n.clock_error_ms))}`}>
      {n.clock_offset_ms < 0 ? '−' : '+'}
      <Num q={q} />
    </span>
  );
}

/** NodeTable lists nodes; on a phone as cards. */
export function NodeTable(props: {
  nodes: Node[];
  server: string;
  needs: Needs | undefined;
  now: number;
  ask: (q: Question) => void;
  changed: () => unknown;
}) {
  const act = (n: Node, verb: Verb) => () =>
    props.ask(
      question(n, verb, async () => {
        await api.post(`/api/v1/nodes/{id}/${verb}`, { path: { id: n.node_id } });
        await props.changed();
      }),
    );
  return (
    <section className="panel" aria-label="Nodes">
      <div className="table-wrap" tabIndex={0} role="group" aria-label="Nodes, scrollable">
        <table className="table dense nodes">
          <thead>
            <tr>
              <th>
                <Term tip={terms.node}>Node</Term>
              </th>
              <th>State</th>
              <th>Connections</th>
              <th>Machine</th>
              <th className="num">
                <Term tip={terms.roundTrip}>Round trip</Term>
              </th>
              <th className="num">
                <Term tip={terms.clockOffset}>Clock</Term>
              </th>
              <th>Runs</th>
              <th>Version</th>
              <th>
                <span className="sr">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {props.nodes.map((n) => {
              const reservedConnections = reserved(n, props.server, props.needs);
              return (
                <tr key={n.node_id || n.address} data-state={n.state}>
                  <td data-label="Node">
                    <strong className="mono">{n.node_id || n.address}</strong>
                    <div className="muted note mono">{n.local ? "the server's own" : n.node_id ? n.address : ''}</div>
                  </td>
                  <td data-label="State">
                    <div className="row nowrap">
                      <NodeStateBadge node={n} />
                      {n.node_id && n.state !== 'REMOVED' && n.health !== 'HEALTHY' && (
                        <HealthBadge health={n.health} />
                      )}
                    </div>
                    <div className="muted note why">
                      {n.since && <span title={n.since}>{ago(n.since, props.now)}</span>}
                      {!n.accepting_work && n.not_accepting_reason && (
                        <span title={`Last contact ${ago(n.last_contact, props.now)}`}>
                          {' '}
                          · {n.not_accepting_reason}
                        </span>
                      )}
                    </div>
                  </td>
                  <td data-label="Connections">
                    <Meter {...nodeUsage(n)} />
                    <div className="note">{nodeUsage(n).label.replace(' connections', '')}</div>
                    {reservedConnections !== null && (
                      <div className="muted note" title="Connections reserved by runs of all servers">
                        {reservedConnections.toLocaleString('en')} reserved
                      </div>
                    )}
                  </td>
                  <td data-label="Machine">
                    <Machine n={n} />
                  </td>
                  <td className="num" data-label="Round trip">
                    <Num q={latency(n.rtt_ms)} />
                  </td>
                  <td className="num" data-label="Clock">
                    <Clock n={n} />
                  </td>
                  <td data-label="Runs">
                    {runsOn(n).map((r) => (
                      <div key={r.id}>
                        <Link href={`/runs/${r.id}`}>{r.name}</Link>
                        {r.workers > 1 && <span className="muted"> ×{r.workers}</span>}
                      </div>
                    ))}
                    {runsOn(n).length === 0 && <span className="muted">none</span>}
                  </td>
                  <td data-label="Version" className="mono">
                    {n.version || <span className="muted">–</span>}
                  </td>
                  <td className="acts">
                    {n.node_id && (
                      <ActionsMenu
                        small
                        label={`Actions for ${n.node_id}`}
                        actions={
                          n.wish
                            ? [
                                { label: 'Resume', icon: 'play', needs: 'admin' as const, act: act(n, 'resume') },
                                ...(n.local || n.wish === 'REMOVE'
                                  ? []
                                  : [
                                      null,
                                      {
                                        label: 'Remove',
                                        icon: 'trash',
                                        danger: true,
                                        needs: 'admin' as const,
                                        act: act(n, 'remove'),
                                      },
                                    ]),
                              ]
                            : [
                                { label: 'Drain', icon: 'stop', needs: 'admin' as const, act: act(n, 'drain') },
                                ...(n.local
                                  ? []
                                  : [
                                      null,
                                      {
                                        label: 'Remove',
                                        icon: 'trash',
                                        danger: true,
                                        needs: 'admin' as const,
                                        act: act(n, 'remove'),
                                      },
                                    ]),
                              ]
                        }
                      />
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
