import { useState } from 'react';
import type { Node, NodeEvent } from '../api/types';
import { Segments } from '../design/Controls';
import { capitalize, dateTime, timeOfDay } from '../design/format';
import { Empty } from '../design/States';
import { lanes, type NodeState } from './model';
import { stateColor, stateLabel } from './NodeState';

const spans = [
  { value: '15', label: '15 min' },
  { value: '60', label: '1 h' },
  { value: '360', label: '6 h' },
  { value: '1440', label: '24 h' },
] as const;
type Minutes = (typeof spans)[number]['value'];

const legendStates: NodeState[] = ['ACTIVE', 'DRAINING', 'PROBING', 'UNREACHABLE', 'REMOVED'];

/** Timeline shows node history as lanes and as a list. */
export function Timeline(props: { nodes: Node[]; events: NodeEvent[]; server: string; now: number }) {
  const [minutes, setMinutes] = useState<Minutes>('60');
  const from = props.now - Number(minutes) * 60_000;
  const rows = lanes(props.nodes, props.events, props.server, from, props.now);
  const share = (at: number) => `${(100 * (at - from)) / (props.now - from)}%`;
  const words = props.events.slice(0, 50);
  return (
    <section className="panel" aria-label="Timeline">
      <header>
        <h2 className="h3">Timeline</h2>
        <div className="end">
          <Segments label="Span" value={minutes} options={spans} onChange={setMinutes} />
        </div>
      </header>
      {rows.length === 0 ? (
        <Empty tight title="No events in this period">
          The timeline shows when nodes connect, disconnect and drain.
        </Empty>
      ) : (
        <div className="lanes">
          {rows.map((l) => (
            <div key={l.id} className="lane">
              <span className="lane-name mono clip" title={l.id}>
                {l.id}
              </span>
              <div
                className="lane-track"
                role="img"
                aria-label={`${l.id}: ${
                  l.stateSpans
                    .map((s) => `${stateLabel(s.state)} from ${timeOfDay(new Date(s.from).toISOString())}`)
                    .join(', ') || 'not seen'
                }`}
              >
                {l.stateSpans.map((s) => (
                  <i
                    key={s.from}
                    className={s.state === 'ACTIVE' ? undefined : 'marked'}
                    style={{
                      left: share(s.from),
                      width: `calc(${share(s.to)} - ${share(s.from)})`,
                      background: stateColor(s.state),
                    }}
                    title={`${stateLabel(s.state)} from ${dateTime(new Date(s.from).toISOString())}${
                      s.reason && `: ${s.reason}`
                    }`}
                  />
                ))}
                {l.events.map((s) => (
                  <b
                    key={s.event.seq}
                    style={{ left: share(s.at) }}
                    title={`${dateTime(s.event.at)}: ${s.event.reason}${s.event.by && ` (${s.event.by})`}`}
                  />
                ))}
              </div>
            </div>
          ))}
          <div className="lane axis" aria-hidden="true">
            <span />
            <div>
              {[0, 0.25, 0.5, 0.75, 1].map((p) => (
                <span key={p}>{timeOfDay(new Date(from + p * (props.now - from)).toISOString()).slice(0, 5)}</span>
              ))}
            </div>
          </div>
          <div className="lane-legend">
            {legendStates.map((s) => (
              <span key={s}>
                <i style={{ background: stateColor(s) }} /> {stateLabel(s)}
              </span>
            ))}
            <span>
              <b /> An operator, or a refusal
            </span>
          </div>
        </div>
      )}
      {words.length > 0 && (
        <details className="history">
          <summary>In words</summary>
          <ol>
            {words.map((e) => (
              <li key={e.seq}>
                <time dateTime={e.at ?? undefined}>{dateTime(e.at)}</time> <code>{e.node_id}</code>{' '}
                {e.kind === 'STATE' && e.to && <strong>{stateLabel(e.to)}</strong>} {capitalize(e.reason)}
                {e.by && `, by ${e.by}`}
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  );
}
