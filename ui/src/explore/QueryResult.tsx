import { useMemo, useState } from 'react';
import { Chart } from '../charts/Chart';
import type { Decor } from '../charts/plot';
import { ChartGroup, type Zoom } from '../charts/group';
import { fixedColumns, HistogramHeatMap } from '../charts/HistogramHeatMap';
import { type Action, ActionsMenu, Segments } from '../design/Controls';
import { count, duration, latency, plain } from '../design/format';
import { Empty, Notice, SkeletonRows } from '../design/States';
import { save } from '../charts/export';
import { Grid } from '../tables/Grid';
import { tabSeparated } from '../tables/model';
import { useToast } from '../design/Toast';
import type { View } from './address';
import { Explain } from './Explain';
import {
  bucketUnits,
  effectiveUnit,
  heatOf,
  linesOf,
  maxCurves,
  type PlottedResult,
  tableOf,
  unitOf,
  units,
} from './model';
import type { Outcome, Progress } from './useExploreResult';

const views: { value: View; label: string }[] = [
  { value: 'lines', label: 'Lines' },
  { value: 'stacked', label: 'Stacked' },
  { value: 'heat', label: 'Heat map' },
  { value: 'table', label: 'Table' },
];

interface Props {
  outcome: Outcome;
  /** The plotted result. */
  d: PlottedResult;
  progress: Progress | null;
  relative: boolean;
  /** The marked phases. */
  decor: Decor;
  /** The chosen runs, in colour order. */
  runs: string[];
  stale: boolean;
  view: View;
  unit: string;
  onView: (v: View) => void;
  onUnit: (u: string) => void;
  /** Called with the chosen range, in seconds from second 0; null resets it. */
  zoom: Zoom | null;
  onZoom: (z: Zoom | null) => void;
}

/** QueryResult shows a result as curves, heat map or table, and its execution. */
export function QueryResult(props: Props) {
  const { outcome, d, relative, view } = props;
  const [explaining, setExplaining] = useState(false);
  const points = d.curves.reduce((n, c) => n + c.values.reduce<number>((k, v) => k + (v === null ? 0 : 1), 0), 0);
  const inHist = d.curves.reduce((n, c) => n + c.histograms.filter((h) => h !== null).length, 0);
  const unit = effectiveUnit(props.unit, outcome.q);
  const toast = useToast();
  const table = () => tableOf(d, outcome.answers);
  const actions: (Action | null)[] = [
    {
      label: 'Copy rows',
      icon: 'copy',
      act: () => {
        const { columns, rows } = table();
        navigator.clipboard.writeText(tabSeparated(columns, rows)).then(
          () => toast(`${rows.length} rows copied for a spreadsheet.`, 'ok'),
          () => toast('The browser blocked copying.', 'warn'),
        );
      },
    },
    {
      label: 'Download as JSON',
      icon: 'download',
      act: () => {
        const text = JSON.stringify(
          outcome.answers.map((a) => ({ run: a.run || undefined, query: outcome.q, ...a.result })),
        );
        save('explore.json', new Blob([text], { type: 'application/json' }));
      },
    },
  ];
  return (
    <section className="panel explore-result" aria-label="Result" aria-busy={props.progress !== null}>
      <header>
        <Segments label="View of the result" value={view} options={views} onChange={props.onView} />
        <span className="note" role="status">
          {plain(count(d.curves.length))} series, {plain(count(points + inHist))} points{' '}
          <span className="muted">
            {outcome.partial ? 'so far' : `in ${duration(outcome.tookMs / 1000)}`} · step {duration(outcome.step)}
            {props.stale && ' · result of the query before your changes'}
          </span>
        </span>
        <div className="end">
          <label className="row note hide-phone">
            unit
            <select className="input small" value={props.unit} onChange={(e) => props.onUnit(e.target.value)}>
              <option value="">{units[unitOf(outcome.q)]!.label} (as the query says)</option>
              {Object.entries(units).map(([k, u]) => (
                <option key={k} value={k}>
                  {u.label}
                </option>
              ))}
            </select>
          </label>
          <button
            type="button"
            className="btn quiet small"
            aria-pressed={explaining}
            disabled={outcome.stats.length === 0}
            onClick={() => setExplaining(!explaining)}
          >
            Explain
          </button>
          <ActionsMenu small label="Copy and download" actions={actions} />
        </div>
      </header>
      {outcome.warnings.length > 0 && (
        <div className="body">
          <Notice tone="warn">
            <ul>
              {outcome.warnings.slice(0, 8).map((w) => (
                <li key={w}>{w}</li>
              ))}
            </ul>
          </Notice>
        </div>
      )}
      {explaining && outcome.stats.length > 0 && <Explain stats={outcome.stats} tookMs={outcome.tookMs} />}
      <CommonLabels labels={d.common} />
      {d.curves.length === 0 ? (
        outcome.partial ? (
          <SkeletonRows rows={6} />
        ) : (
          <Empty tight title="No series">
            The query is valid, but no series has samples in this period. Choose a longer period or a run.
          </Empty>
        )
      ) : view === 'table' ? (
        <Grid label="Series" {...table()} />
      ) : (
        <ChartGroup
          name="explore"
          start={outcome.zero * 1000}
          axis={relative ? 'elapsed' : 'clock'}
          zoom={props.zoom}
          onZoom={props.onZoom}
        >
          {view === 'heat' ? (
            <HeatMapView d={d} outcome={outcome} unit={unit} decor={props.decor} />
          ) : (
            <LineView
              d={d}
              outcome={outcome}
              unit={unit}
              decor={props.decor}
              stacked={view === 'stacked'}
              runs={relative ? props.runs : null}
            />
          )}
        </ChartGroup>
      )}
    </section>
  );
}

/** CommonLabels are the labels of all series. */
function CommonLabels({ labels }: { labels: Record<string, string> }) {
  const all = Object.entries(labels).filter(([k]) => k !== '__name__');
  if (all.length === 0) return null;
  return (
    <p className="body note muted explore-common">
      All series:{' '}
      {all.map(([k, v]) => (
        <span key={k} className="chip">
          {k} {v || '(none)'}
        </span>
      ))}
    </p>
  );
}

interface ViewProps {
  d: PlottedResult;
  outcome: Outcome;
  unit: string;
  decor: Decor;
}

function LineView({ d, outcome, unit, decor, stacked, runs }: ViewProps & { stacked: boolean; runs: string[] | null }) {
  const { lines, omitted: left } = useMemo(() => {
    // A removed run is drawn until the new result arrives.
    const place = (run: string) => (runs!.includes(run) ? runs!.indexOf(run) : runs!.length);
    return linesOf(d, stacked, runs && outcome.answers.map((a) => place(a.run)));
  }, [d, outcome, stacked, runs]);
  if (lines.length === 0)
    return (
      <Empty tight icon="chart" title="Histograms">
        Each point is a histogram. Choose the heat map, or compute a figure with histogram_quantile(0.99, …).
      </Empty>
    );
  return (
    <Chart
      title={runs ? 'Since the start of each run' : 'Over time'}
      file="explore"
      x={d.x}
      lines={lines}
      format={units[unit]!.format}
      decor={decor}
      until={outcome.seconds}
      stacked={stacked}
      canLog={!stacked}
      height={340}
      note={
        left > 0 && (
          <span className="note muted">
            The {maxCurves} largest of {lines.length + left} series are drawn; the table has all.
          </span>
        )
      }
    />
  );
}

function HeatMapView({ d, outcome, unit, decor }: ViewProps) {
  const all = d.curves.filter((c) => c.histograms.length > 0);
  const [key, setKey] = useState('');
  const chosen = all.find((c) => c.key === key) ?? all[0];
  // The axis starts at a thousandth: seconds are drawn as milliseconds.
  const seconds = unit === 'seconds';
  const columns = useMemo(() => (chosen ? heatOf(chosen, seconds ? 1000 : 1) : []), [chosen, seconds]);
  if (!chosen)
    return (
      <Empty tight icon="chart" title="No histograms">
        A heat map needs native histograms, such as sum(rate(loadstone_latency_seconds[10s])).
      </Empty>
    );
  return (
    <HistogramHeatMap
      title={all.length > 1 ? chosen.name : 'Histograms over time'}
      file="explore"
      x={d.x}
      columns={fixedColumns(columns)}
      edge={(i) => d.x[i]! - outcome.step}
      format={seconds ? latency : units[unit === 'rate' ? 'plain' : unit]!.format}
      decor={decor}
      until={outcome.seconds}
      height={340}
      {...bucketUnits(outcome.q)}
      note={
        all.length > 1 && (
          <label className="row note">
            series
            <select className="input small" value={chosen.key} onChange={(e) => setKey(e.target.value)}>
              {all.map((c) => (
                <option key={c.key} value={c.key}>
                  {c.name}
                </option>
              ))}
            </select>
          </label>
        )
      }
    />
  );
}
