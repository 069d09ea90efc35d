import { useEffect, useMemo, useState } from 'react';
import { type Span, useWarehouse } from '../api/queries';
import { isTerminal, type Payload, type RunDetail, type Warehouse, type WarehousePoint } from '../api/types';
import { Chart } from '../charts/Chart';
import type { Decor, Line } from '../charts/plot';
import { Term } from '../design/Controls';
import { capitalize, count, exact, humanize, timeOfDay } from '../design/format';
import { Notice } from '../design/States';
import { exploreLink } from './exploreLinks';
import './enrichment.css';

/** mergePolls adds live polls to stored ones, by time. */
export function mergePolls(stored: WarehousePoint[], livePolls: WarehousePoint[]): WarehousePoint[] {
  const at = new Map<string, WarehousePoint>();
  for (const p of [...stored, ...livePolls]) at.set(p.timestamp, p);
  return [...at.values()].sort((a, b) => (a.timestamp < b.timestamp ? -1 : 1));
}

/** WarehousePanel shows the warehouse's state, queries and clusters; nothing without a warehouse. */
export function WarehousePanel(props: {
  run: RunDetail;
  live: Payload | null;
  decor: Decor;
  /** Last second of the other charts' axis. */
  until?: number;
  /** The end of a finished run; later polls are not drawn. */
  end?: number;
  zoom: Span | null;
}) {
  const { run, live, decor, end, zoom } = props;
  const has = run.plan !== null ? run.plan.driver === 'snowflake' : !!live?.warehouse;
  const all = useWarehouse(run.run_id, has && run.status !== 'PREPARED');
  // A long run has only some polls; part of it has all.
  const finer = useWarehouse(run.run_id, has && zoom !== null && (all.data?.resolution ?? 5) > 5, zoom);
  const history = finer.data && zoom ? finer : all;
  const [livePolls, setLivePolls] = useState<WarehousePoint[]>([]);
  const now = live?.warehouse ?? null;
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  useEffect(() => {
    if (!now?.polled_at) return;
    const p = { ...now, timestamp: now.polled_at, elapsed_seconds: (Date.parse(now.polled_at) - start) / 1000 };
    setLivePolls((all) => (all.some((o) => o.timestamp === p.timestamp) ? all : [...all, p]));
  }, [now, start]);
  const points = useMemo(() => mergePolls(history.data?.points ?? [], livePolls), [history.data, livePolls]);
  // A finished run is drawn in even steps, with gaps where nothing was polled.
  const slots = history.data?.slots;
  const drawn = useMemo(
    () =>
      (isTerminal(run.status) && slots?.length ? slots : points).filter((p) => p.elapsed_seconds <= (end ?? Infinity)),
    [run.status, slots, points, end],
  );
  const lines = useMemo<Line[]>(
    () => [
      { key: 'running', label: 'Running', color: '--accent', fill: 0.16, values: drawn.map((p) => p.running) },
      { key: 'queued', label: 'Queued', color: '--warn-mark', width: 2, values: drawn.map((p) => p.queued) },
      {
        key: 'clusters',
        label: 'Clusters',
        color: '--k-point_lookup',
        dash: [5, 4],
        values: drawn.map((p) => p.started_clusters),
      },
    ],
    [drawn],
  );
  if (!has) return null;
  const w: Warehouse | null = now ?? points[points.length - 1] ?? null;
  return (
    <div className="stack">
      {now?.error && (
        <Notice tone="warn">
          The warehouse could not be read{now.polled_at && `; the figures are from ${timeOfDay(now.polled_at)}`}.{' '}
          {now.error}
        </Notice>
      )}
      <Chart
        title={w?.name ? `Warehouse ${w.name}` : 'Warehouse'}
        tip={
          'Running and queued queries of all users on the warehouse, and its clusters. Read every 5 ' +
          'seconds by the server.'
        }
        file={`${run.test_name}-warehouse`}
        explore={exploreLink('warehouse', run.run_id, props.zoom)}
        x={drawn.map((p) => p.elapsed_seconds)}
        lines={lines}
        format={(n) => count(n)}
        decor={decor}
        until={Math.max(props.until ?? 0, end ?? 0)}
        state={{ pending: history.isPending, error: history.error, retry: () => void history.refetch() }}
        empty="The warehouse has not been read yet."
        note={w?.name ? <Facts w={w} /> : undefined}
      />
    </div>
  );
}

function Facts({ w }: { w: Warehouse }) {
  return (
    <span className="muted note">
      {[
        w.size,
        w.generation && w.type === 'STANDARD' ? `Standard, generation ${w.generation}` : capitalize(humanize(w.type)),
        capitalize(humanize(w.state)),
      ]
        .filter(Boolean)
        .join(', ')}
      {w.started_clusters !== null && w.max_cluster_count !== null && (
        <>
          ,{' '}
          <Term tip="Active clusters, of the maximum that the warehouse may start.">
            {exact(w.started_clusters)} of {exact(Math.max(w.max_cluster_count, 1))} clusters
          </Term>
        </>
      )}
      {w.fallback_warehouse && `, falls back to ${w.fallback_warehouse} after 5 s`}
    </span>
  );
}
