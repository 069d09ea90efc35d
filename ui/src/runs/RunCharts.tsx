import { useMemo } from 'react';
import { hasRates, isTerminal, kinds, type LatencySplit, type Mark, type Payload, type RunDetail } from '../api/types';
import { Chart } from '../charts/Chart';
import { useGroup } from '../charts/group';
import { LatencyHeatMap } from '../charts/LatencyHeatMap';
import type { Cell } from '../charts/histogram';
import type { Line } from '../charts/plot';
import { capitalize, count, duration, humanize, latency, percent, rate } from '../design/format';
import { Icon } from '../design/icons';
import { terms } from '../design/terms';
import { lastLoadChange } from './loadFigures';
import { suspectIntervals } from './validity';
import { exploreLink } from './exploreLinks';
import { type Limit, thresholdLines, withMarks } from './marks';
import { WarehousePanel } from './Warehouse';
import type { ChartFilter } from './chartFilter';
import { type Columns, phases, resolution, type Sample } from './series';
import { anyRow, fold, lineValues, perSecond, presentNames } from './track';

const classColors = ['--e-1', '--e-2', '--e-3', '--e-4', '--e-5'];

const constant = (c: Columns, value: number) =>
  fold(
    c,
    `constant ${value}`,
    (): number[] => [],
    (all) => all.push(value),
  );

/** limitLine draws a threshold across the chart. */
const limitLine = (l: Limit, c: Columns): Line => ({
  key: `limit ${l.label}`,
  label: l.label,
  color: '--bad-mark',
  dash: [2, 3],
  width: 1.25,
  unstacked: true,
  limit: true,
  values: constant(c, l.value),
});

interface Props {
  run: RunDetail;
  /** The users' marks; a report has none. */
  marks?: Mark[];
  /** Opens a heat map cell, when there is a server. */
  onCell?: (from: number, to: number, cell: Cell) => void;
  /** Opens the executions of a time range in run seconds, when there is a server. */
  onMoment?: (from: number, to: number) => void;
  /** The filter of c; totals of the whole run do not apply then. */
  filter?: ChartFilter | null;
  live: Payload | null;
  c: Columns;
  state: { pending: boolean; error: unknown; retry: () => void };
}

/** RunCharts draws the charts of a live or finished run. */
export function RunCharts({ run, live, c, state, marks, onCell, onMoment, filter }: Props) {
  const { zoom, setZoom } = useGroup();
  // The payload knows of a phase change before the stored run.
  const timing = live?.timing;
  const causes = (live?.validity ?? run.summary?.validity_detail)?.causes ?? [];
  const causeKey = causes.map((x) => `${x.from}/${x.to}`).join();
  const phased = useMemo(
    () => ({
      ...phases({
        start_time: timing?.start_time ?? run.start_time,
        warmup_start_time: timing?.warmup_start_time ?? run.warmup_start_time,
        warmup_end_time: timing?.warmup_end_time ?? run.warmup_end_time,
        measurement_end_time: timing?.measurement_end_time ?? run.measurement_end_time,
      }),
      doubts: suspectIntervals(causes, timing?.start_time ?? run.start_time),
    }),
    // Times are strings: equal texts need no redraw.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- causeKey stands for the causes
    [
      timing?.start_time,
      timing?.warmup_start_time,
      timing?.warmup_end_time,
      timing?.measurement_end_time,
      run.start_time,
      run.warmup_start_time,
      run.warmup_end_time,
      run.measurement_end_time,
      causeKey,
    ],
  );
  const decor = useMemo(
    () => ({ ...phased, markers: withMarks(phased.markers, marks ?? [], run) }),
    // A tick brings new figures but the same events.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the count stands for the events
    [phased, marks, run.run_id, run.start_time, run.load_changes?.length],
  );
  const until = useMemo(() => {
    if (!timing?.start_time) return undefined;
    const begin = timing.warmup_start_time ?? timing.start_time;
    const lead = (Date.parse(begin) - Date.parse(timing.start_time)) / 1000;
    const all = lead + timing.warmup_seconds + timing.duration_seconds;
    // In a long run the curve would be a sliver: the axis grows instead, as it does when a search decides the end.
    return all <= 1800 && timing.duration_seconds > 0 ? all : undefined;
  }, [timing]);

  const counted = fold(
    c,
    'counted',
    (): boolean[] => [],
    (all, s) => all.push(s?.phase === 'MEASUREMENT'),
  );
  // Exact figures of a finished run; the figures so far of a live one.
  const s = filter || live || !isTerminal(run.status) || run.summary?.operations === 0 ? null : run.summary;
  const exactly = filter
    ? null
    : live
      ? live.phase === 'MEASUREMENT'
        ? live.latency_total
        : null
      : (s?.latency_ms ?? null);
  const kindsOf = s && hasRates(s) ? s.by_kind : null;

  // Thresholds apply to the whole run.
  const thresholds = filter ? null : run.scenario_config.thresholds;
  const throughput = useMemo<Line[]>(() => {
    const lines: Line[] = presentNames(c, 'kinds', (s) => s.byKind, kinds).map((k) => ({
      key: k,
      label: capitalize(humanize(k)),
      color: `--k-${k.toLowerCase()}`,
      fill: 0.28,
      values: lineValues(c, `kind ${k}`, (s) => s.byKind[k] ?? 0),
      overall: kindsOf?.[k]?.qps,
    }));
    if (lines.length === 0 && c.rows.length > 0)
      lines.push({
        key: 'qps',
        label: 'All operations',
        color: '--accent',
        fill: 0.2,
        values: lineValues(c, 'qps', (s) => s.qps),
      });
    if (anyRow(c, 'rate', (s) => s.rate != null))
      lines.push({
        key: 'target',
        label: 'Target',
        color: '--text-2',
        dash: [5, 4],
        unstacked: true,
        values: lineValues(c, 'rate', (s) => s.rate),
      });
    for (const l of thresholdLines(thresholds).filter((x) => x.metric === 'qps')) lines.push(limitLine(l, c));
    return lines;
  }, [c, kindsOf, thresholds]);

  const percentiles = useMemo<Line[]>(() => {
    // The few operations a drain waits for are the slowest and would flatten the curve.
    const of = (k: 'p50' | 'p95' | 'p99' | 'service95') =>
      lineValues(c, `latency ${k}`, (s) => (s.phase !== 'COOLDOWN' ? s[k] : null));
    const lines: Line[] = [
      { key: 'p99', label: 'P99', color: '--p99', width: 2, values: of('p99'), overall: exactly?.p99 },
      { key: 'p95', label: 'P95', color: '--p95', width: 1.75, values: of('p95'), overall: exactly?.p95 },
      { key: 'p50', label: 'P50', color: '--p50', width: 1.5, values: of('p50'), overall: exactly?.p50 },
    ];
    if (anyRow(c, 'service95', (s) => s.service95 != null))
      lines.push({
        key: 'service95',
        label: 'P95 of service',
        color: '--text-2',
        dash: [5, 4],
        values: of('service95'),
      });
    for (const l of thresholdLines(thresholds).filter((x) => x.metric !== 'qps')) lines.push(limitLine(l, c));
    return lines;
  }, [c, exactly?.p50, exactly?.p95, exactly?.p99, thresholds]);

  const split = useMemo<Line[]>(() => {
    const part = (key: string, label: string, color: string, of: (s: LatencySplit) => number): Line => ({
      key,
      label,
      color,
      fill: 0.3,
      values: lineValues(c, `split ${key}`, (s) => (s.split && s.phase !== 'COOLDOWN' ? of(s.split) : null)),
    });
    return [
      part('server', 'Round trip', '--accent', (s) => s.round_trip_ms),
      part('decode', 'Decoding', '--k-point_lookup', (s) => s.decode_ms),
      part('wait', 'Pool wait', '--warn-mark', (s) => s.pool_wait_ms),
      part('lag', 'Generator delay', '--e-1', (s) => s.schedule_lag_ms),
      // The latency parts of a run; in a closed loop nothing waits.
    ].filter((l) => l.values.some((v) => (v ?? 0) > 0));
  }, [c]);

  const flight = useMemo<Line[]>(
    () =>
      anyRow(c, 'flight', (s) => s.inFlight > 0)
        ? [
            {
              key: 'flight',
              label: 'In flight',
              color: '--accent',
              fill: 0.16,
              values: lineValues(c, 'flight', (s) => s.inFlight),
            },
            {
              key: 'waiting',
              label: 'Waiting',
              color: '--warn-mark',
              width: 1.75,
              values: lineValues(c, 'waiting', (s) => s.waiting),
            },
          ]
        : [],
    [c],
  );

  const errors = useMemo<Line[]>(() => {
    const classes = presentNames(c, 'classes', (s) => s.byClass, []).filter((k) => k !== 'dropped');
    const lines: Line[] = classes.map((k, i) => ({
      key: k,
      label: capitalize(humanize(k)),
      color: classColors[i % classColors.length]!,
      fill: 0.3,
      values: perSecond(c, `class ${k}`, (s) => s.byClass[k] ?? 0),
    }));
    if (lines.length === 0)
      lines.push({
        key: 'all',
        label: 'All errors',
        color: '--e-1',
        fill: 0.3,
        values: lineValues(c, 'errors', (s) => s.errors),
      });
    const dropped = (s: Sample) => s.byClass['dropped'] ?? s.dropped;
    if (anyRow(c, 'dropped', (s) => (dropped(s) ?? 0) > 0))
      lines.push({
        key: 'dropped',
        label: 'Dropped',
        color: '--text-2',
        dash: [4, 3],
        unstacked: true,
        values: perSecond(c, 'dropped', dropped),
      });
    return lines;
  }, [c]);

  const byLoad = filter?.of !== 'kind' && filter?.of !== 'statement';
  // A chart of only zeros takes the place of a useful one.
  const noSuspects =
    c.rows.length > 0 &&
    !anyRow(c, 'failed', (s) => s.errors !== 0 || !!s.dropped || Object.values(s.byClass).some((n) => n !== 0));

  const connections = useMemo<Line[]>(
    () =>
      !byLoad
        ? []
        : [
            {
              key: 'active',
              label: 'Active',
              color: '--accent',
              fill: 0.16,
              values: lineValues(c, 'active', (s) => s.active),
            },
            {
              key: 'target',
              label: 'Target',
              color: '--text-2',
              dash: [5, 4],
              values: lineValues(c, 'target', (s) => s.target),
            },
          ],
    [c, byLoad],
  );

  const cpu = useMemo<Line[]>(
    () =>
      anyRow(c, 'cpu', (s) => s.cpu != null)
        ? [{ key: 'cpu', label: 'CPU', color: '--warmup', fill: 0.14, values: lineValues(c, 'cpu', (s) => s.cpu) }]
        : [],
    [c],
  );

  // Telemetry lacks these by filter.
  const lacks = (charts: ChartFilter['of'][]) =>
    filter && charts.includes(filter.of)
      ? { emptyTitle: `Not available by ${filter.of}`, empty: 'Choose “the whole run” to see this chart.' }
      : {};
  const hasEnded = live === null && isTerminal(run.status);
  const openLoop = run.scenario_config.workload.load_mode === 'QPS';
  const onEnter =
    onMoment && ((i: number) => onMoment(Math.max(0, c.t[i]! - Math.max(1, c.rows[i]?.span ?? 1)), c.t[i]!));
  const opens = onMoment && 'the executions of the second';
  // A live chart moves in steps, not every second.
  const grows = !hasEnded && !filter;
  const loads = live ? lastLoadChange(run, live.timing) !== null : (s?.by_load?.length ?? 0) > 1;
  const common = { file: run.test_name, x: c.t, counted, loads, decor, until, grows, state, onEnter, opens };
  const method = live?.latency_aggregation_method;
  const step = resolution(c, zoom?.from, zoom?.to);
  return (
    <div className="charts">
      {zoom && (
        <button type="button" className="btn small reset-zoom" onClick={() => setZoom(null)}>
          <Icon name="zoomout" size={14} /> Reset zoom
        </button>
      )}
      {step > 1 && (
        <p className="muted resolution" role="status">
          {filter
            ? `Each point covers all operations of ${duration(step)}.`
            : `A point covers up to ${duration(step)}. Rates and P50 are means; P95 and P99 are the highest of any ` +
              'second. Select a part of a chart to see more detail.'}
        </p>
      )}
      <div className="columns two charts-grid">
        <Chart
          {...common}
          title="Operations per second, by kind"
          explore={exploreLink('throughput', run.run_id, zoom)}
          tip={terms.throughput}
          lines={throughput}
          format={rate}
          stacked
        />
        <Chart
          {...common}
          title="Latency percentiles"
          explore={exploreLink('percentiles', run.run_id, zoom)}
          tip={openLoop ? terms.fromDue : terms.percentiles}
          note={
            method && (
              <span className="muted note hide-phone">
                {method === 'merged_histogram' ? 'merged over workers' : 'slowest worker'}
              </span>
            )
          }
          lines={percentiles}
          format={latency}
          canLog
        />
        <LatencyHeatMap
          explore={exploreLink('heat', run.run_id, zoom)}
          file={run.test_name}
          c={c}
          onCell={onCell}
          decor={decor}
          until={until}
          grows={grows}
          state={state}
          emptyTitle={step > 1 && !filter ? 'Select a shorter period' : undefined}
          empty={
            step > 1 && !filter ? 'The heat map needs single seconds. Select at most an hour of a chart.' : undefined
          }
        />
        {!noSuspects && (
          <Chart
            {...common}
            title="Errors and drops by class"
            explore={exploreLink('errors', run.run_id, zoom)}
            tip={terms.errors}
            lines={errors}
            format={rate}
            stacked
            height={232}
          />
        )}
        <Chart
          {...common}
          title="Mean latency by part"
          tip={terms.split}
          lines={split}
          format={latency}
          stacked
          height={140}
          emptyTitle={isTerminal(run.status) ? 'Not recorded' : undefined}
          empty={
            isTerminal(run.status)
              ? 'This run has no breakdown of its latency.'
              : 'The chart starts with the first operation.'
          }
          {...lacks(['kind', 'statement', 'worker'])}
        />
        {openLoop && (
          <Chart
            {...common}
            title="Operations in flight"
            explore={exploreLink('flight', run.run_id, zoom)}
            tip={terms.inFlight}
            lines={flight}
            format={count}
            height={140}
            empty="No operation was waiting."
            {...lacks(['kind', 'statement'])}
          />
        )}
        <Chart
          {...common}
          title="Connections"
          explore={exploreLink('connections', run.run_id, zoom)}
          lines={connections}
          format={count}
          height={140}
          {...lacks(['kind', 'statement'])}
        />
        <Chart
          {...common}
          title="Generator CPU"
          explore={exploreLink('cpu', run.run_id, zoom)}
          tip={terms.generator}
          lines={cpu}
          format={percent}
          height={140}
          empty="The generator reports its CPU once a second."
          {...lacks(['kind', 'statement', 'worker'])}
        />
        <WarehousePanel
          run={run}
          live={live}
          decor={decor}
          until={until}
          end={hasEnded ? c.t.at(-1) : undefined}
          zoom={zoom}
        />
      </div>
      {noSuspects && (
        <p className="panel calm">
          <Icon name="check" size={14} /> No errors and no drops in what the charts show.
        </p>
      )}
    </div>
  );
}
