import { useQueries } from '@tanstack/react-query';
import { type ReactNode, useMemo, useState } from 'react';
import { Link } from 'wouter';
import { api, asProblem } from '../api/client';
import { type Comparison as Result, isTerminal, type RunDetail, runPoints } from '../api/types';
import { useParam } from '../app/location';
import { Chart } from '../charts/Chart';
import { ChartGroup, type Zoom } from '../charts/group';
import { PercentileCurve } from '../charts/PercentileCurve';
import type { Line } from '../charts/plot';
import { Segments, Term } from '../design/Controls';
import { dateTime, latency, rate } from '../design/format';
import { Mark } from '../design/icons';
import { Num } from '../design/Num';
import { Empty, Notice, Skeleton } from '../design/States';
import { SimulatedBadge, StatusBadge, VerdictBadge } from '../design/Status';
import {
  aligned,
  color,
  columnsOf,
  type Compared,
  difference,
  endedEarly,
  fieldDifferences,
  figure,
  groupNotes,
  interval,
  isSimulated,
  letter,
  listed,
  missingVerdict,
  shapes,
  type Verdict,
  visible,
} from './model';
import { Breakdown } from './Breakdown';
import { HeatMaps } from './HeatMaps';
import { DistributionOverlay } from './DistributionOverlay';
import './compare.css';
import { problemText } from '../design/sentences';

const noDecor = { bands: [], markers: [] };
const percentiles = [
  { value: 'p50', label: 'P50' },
  { value: 'p95', label: 'P95' },
  { value: 'p99', label: 'P99' },
] as const;

export const verdicts: Record<Verdict, { tone: string; shape: Parameters<typeof Mark>[0]['shape'] }> = {
  better: { tone: 'ok', shape: 'dot' },
  worse: { tone: 'bad', shape: 'cross' },
  same: { tone: '', shape: 'square' },
  unclear: { tone: 'warn', shape: 'half' },
};

export function VerdictLabel({ verdict, reason }: { verdict: Verdict; reason?: string }) {
  const v = verdicts[verdict];
  return (
    <span className={`badge ${v.tone}`} title={reason}>
      <Mark shape={v.shape} />
      {verdict}
    </span>
  );
}

const isRunning = (r: RunDetail | undefined) => r !== undefined && !isTerminal(r.status);

/** useComparison loads everything a comparison needs; the first run is the baseline. */
export function useComparison(ids: string[], labels: (string | null)[], tolerance: number) {
  const details = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['compare-run', id],
      queryFn: ({ signal }: { signal: AbortSignal }) => api.get('/api/runs/{id}', { path: { id }, signal }),
      refetchInterval: (q: { state: { data?: RunDetail } }) =>
        isRunning(q.state.data) || (q.state.data && q.state.data.phase === 'PROCESSING') ? 2_000 : false,
    })),
  });
  const series = useQueries({
    queries: ids.map((id, i) => ({
      queryKey: ['compare-series', id, isTerminal(details[i]?.data?.status ?? 'PREPARED')],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api
          .get('/api/runs/{id}/timeseries', { path: { id }, signal })
          .then((r) => ({ points: runPoints(r.points), span: r.resolution_seconds })),
      enabled: details[i]?.data !== undefined && details[i]?.data?.status !== 'PREPARED',
      refetchInterval: isRunning(details[i]?.data) ? 2_000 : (false as const),
    })),
  });
  const base = details[0]?.data;
  const against = useQueries({
    queries: ids.slice(1).map((id, i) => ({
      queryKey: ['compare', ids[0], id, tolerance],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api.get('/api/compare', { query: { a: [ids[0]!], b: [id], tolerance_pct: tolerance }, signal }),
      enabled: Boolean(base?.summary?.operations && details[i + 1]?.data?.summary?.operations),
      staleTime: Number.POSITIVE_INFINITY,
    })),
  });
  const compared: (Compared | null)[] = ids.map((_, i) => {
    const run = details[i]?.data;
    return run ? { run, label: labels[i] ?? run.test_name, against: against[i - 1]?.data ?? null } : null;
  });
  return { details, series, against, compared };
}

/** Comparison shows figures with differences, curves, distributions and what else differs. */
export function Comparison(props: {
  ids: string[];
  labels: (string | null)[];
  state: ReturnType<typeof useComparison>;
  tolerance: number;
  /** In a report file, without links to a server. */
  standalone?: boolean;
  /** Shown after a run's name in the table. */
  action?: (id: string, i: number) => ReactNode;
}) {
  const { ids, state } = props;
  const [percentile, setPercentile] = useParam('p', 'p95');
  const [dist, setDist] = useParam('dist', 'shares');
  const [axis, setAxis] = useParam('tail', 'linear');
  const [off, setOff] = useParam('off');
  const [zoom, setZoom] = useState<Zoom | null>(null);
  const runs = state.details.map((d) => d.data);
  const known = runs.filter((r) => r !== undefined);
  const cols = useMemo(() => columnsOf(known), [known]);
  const hidden = new Set(off.split('').map((c) => c.charCodeAt(0) - 65));
  const toggle = (i: number) => {
    const next = new Set(hidden);
    if (!next.delete(i)) next.add(i);
    setOff(
      [...next]
        .filter((n) => n >= 0 && n < ids.length)
        .sort()
        .map(letter)
        .join(''),
    );
  };
  const label = (i: number) => `${letter(i)} ${props.labels[i] ?? runs[i]?.test_name ?? ''}`;

  const curves = ids.map((_, i) => ({
    points: state.series[i]?.data?.points ?? null,
    span: state.series[i]?.data?.span ?? 1,
    start: runs[i]?.warmup_end_time ? Date.parse(runs[i].warmup_end_time) : null,
  }));
  const lines = (values: (number | null)[][]): Line[] =>
    ids.flatMap((_, i) =>
      hidden.has(i)
        ? []
        : [
            {
              key: ids[i]!,
              label: label(i),
              color: color(i),
              width: i === 0 ? 2.25 : 1.5,
              dash: i >= 4 ? [6, 3] : undefined,
              values: values[i]!,
            },
          ],
    );
  const stamp =
    curves.map((c) => `${c.points?.length ?? 0}/${c.start}`).join() +
    off +
    ids.join() +
    runs.map((r) => r?.test_name).join();
  // The arrays are new objects each render: the stamp stands for their content.
  const throughput = useMemo(() => {
    const a = aligned(curves, (p) => p.qps);
    return { x: a.x, lines: lines(a.values) };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [stamp]);
  const slow = useMemo(() => {
    const a = aligned(curves, (p) =>
      percentile === 'p50' ? p.p50_latency_ms : percentile === 'p99' ? p.p99_latency_ms : p.p95_latency_ms,
    );
    return { x: a.x, lines: lines(a.values) };
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [stamp, percentile]);
  const shape = useMemo(
    () =>
      shapes(
        runs.map((r) => r?.summary?.histogram),
        90,
      ),
    [runs],
  );
  const tails = useMemo(
    () =>
      runs.flatMap((r, i) =>
        r?.summary?.histogram?.length && r.summary.latency_ms && !off.includes(letter(i))
          ? [
              {
                label: letter(i),
                color: color(i),
                dash: i >= 4 ? '6 3' : undefined,
                buckets: r.summary.histogram,
                latency: r.summary.latency_ms,
              },
            ]
          : [],
      ),
    [runs, off],
  );
  const differences = useMemo(() => fieldDifferences(known), [known]);
  const notes = groupNotes(
    state.against.map((a, i) => ({ notes: a.data?.notes ?? [], other: i + 1 })),
    ids,
  );
  const problems = state.against.flatMap((a, i) => (a.error ? [{ i: i + 1, p: asProblem(a.error) }] : []));
  const pending = state.series.some((s) => s.isPending && s.fetchStatus !== 'idle');

  const read = state.details.every((d) => d.data || d.error);
  const none = missingVerdict(state.details[0]?.data ?? (state.details[0]?.error ? null : undefined));
  const allEnded = read && known.every((r) => isTerminal(r.status));
  const nothing = allEnded
    ? { title: 'No measurement', empty: 'The runs ended before their measurement.' }
    : { title: 'Nothing to draw yet', empty: 'The curves begin with the first second of measurement.' };
  const simulated = runs.flatMap((r, i) => (r && isSimulated(r) ? [letter(i)] : []));
  const simulatedCount = simulated.length;
  return (
    <>
      {simulatedCount > 0 && simulatedCount < known.length && (
        <Notice tone="warn">
          <strong>
            {simulatedCount === 1 ? 'Run' : 'Runs'} {listed(simulated)} {simulatedCount === 1 ? 'is' : 'are'} simulated.
          </strong>{' '}
          Figures of a stand-in say nothing about a real database. Do not compare them with real runs.
        </Notice>
      )}
      {state.details.map(
        (d, i) =>
          d.error &&
          !d.data && (
            <Notice key={ids[i]} tone="warn">
              <strong>Run {letter(i)} could not be read.</strong> {problemText(asProblem(d.error))}
            </Notice>
          ),
      )}
      {problems.map(({ i, p }) => (
        <Notice key={i} tone="warn">
          <strong>{label(i)} could not be compared.</strong> {problemText(p)}
        </Notice>
      ))}
      <section className="panel" aria-label="Figures">
        <header>
          <h2 className="h3">Figures</h2>
          <span className="muted note end">
            <Term
              tip={
                'The interval contains the difference with 99 % confidence. It includes the scatter of seconds ' +
                'and the usual scatter between runs. A difference counts if it exceeds the tolerance ' +
                'and is not chance.'
              }
            >
              against {letter(0)}, tolerance {props.tolerance} %
            </Term>
          </span>
        </header>
        <div className="table-wrap" tabIndex={0} role="group" aria-label="Figures, scrollable">
          <table className="table compare-figures">
            <thead>
              <tr>
                <th>Run</th>
                <th>Verdict</th>
                {cols.map((c) => (
                  <th key={c.name} className="num">
                    {c.title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {ids.map((id, i) => {
                const r = runs[i];
                const c = state.against[i - 1];
                const unread = !r && Boolean(state.details[i]?.error);
                return (
                  <tr key={id}>
                    <td>
                      <div className="row compare-name">
                        <button
                          type="button"
                          className="run-mark"
                          aria-pressed={!hidden.has(i)}
                          title="Show or hide the curves of this run"
                          aria-label={`Curves of ${label(i)}`}
                          style={{
                            background: hidden.has(i) ? 'transparent' : `var(${color(i)})`,
                            borderColor: `var(${color(i)})`,
                            color: hidden.has(i) ? 'var(--text)' : 'var(--surface)',
                          }}
                          onClick={() => toggle(i)}
                        >
                          {letter(i)}
                        </button>
                        <span className="grow">
                          {props.standalone ? (
                            <bdi className="name">{props.labels[i] ?? r?.test_name}</bdi>
                          ) : (
                            <Link href={`/runs/${id}`} className="name">
                              {props.labels[i] ?? r?.test_name ?? (unread ? id : <Skeleton width={120} />)}
                            </Link>
                          )}
                          <span className="second">
                            {r
                              ? [
                                  r.scenario_config.target?.adapter,
                                  r.start_time ? dateTime(r.start_time) : 'not started',
                                ]
                                  .filter(Boolean)
                                  .join(' · ')
                              : ''}
                          </span>
                        </span>
                        {props.action?.(id, i)}
                      </div>
                    </td>
                    <td>
                      <div className="row verdict-cell">
                        {unread ? (
                          <span className="badge warn">not read</span>
                        ) : r && isRunning(r) ? (
                          <StatusBadge status={r.status} />
                        ) : r?.summary && r.summary.operations === 0 ? (
                          <StatusBadge status={r.status} />
                        ) : i === 0 ? (
                          <span className="badge">baseline</span>
                        ) : c?.data ? (
                          <>
                            <VerdictLabel verdict={c.data.verdict} reason={slower(c.data, i)} />
                            {(c.data.unlike ?? []).length > 0 && (
                              <span
                                className="badge warn"
                                title={`The runs differ in their ${c.data.unlike!.map((u) => u.what).join(', ')}.`}
                              >
                                different conditions
                              </span>
                            )}
                            <span className="second can-show">{visible(c.data, props.tolerance)}</span>
                          </>
                        ) : c?.error ? (
                          <span className="badge warn">not comparable</span>
                        ) : r && !r.summary ? (
                          <StatusBadge status={r.status} />
                        ) : none ? (
                          <span className="badge" title={none.why}>
                            {none.word}
                          </span>
                        ) : (
                          <Skeleton width={64} />
                        )}
                        {r && endedEarly(r) && <StatusBadge status={r.status} />}
                        {r && isSimulated(r) && <SimulatedBadge of={r} />}
                        {r?.summary && r.summary.operations > 0 && r.summary.validity !== 'VALID' && (
                          <VerdictBadge verdict={r.summary.validity} of={r} />
                        )}
                      </div>
                    </td>
                    {cols.map((col) => {
                      const m = c?.data?.metrics?.find((x) => x.name === col.name);
                      const now = r && isRunning(r) && r.live ? liveFigure(col.name, r) : undefined;
                      return (
                        <td key={col.name} className="num" title={m?.reason}>
                          {unread ? (
                            '–'
                          ) : !r ? (
                            <Skeleton width={60} />
                          ) : now !== undefined ? (
                            <Num q={col.format(now)} />
                          ) : (
                            <Num q={figure(col, r)} />
                          )}
                          {m && m.difference !== null && (
                            <span className={`second delta ${m.verdict}`}>
                              <span>
                                <Mark shape={verdicts[m.verdict].shape} /> {difference(m)}
                              </span>
                              <span className="ci">{interval(m)}</span>
                            </span>
                          )}
                        </td>
                      );
                    })}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
        {notes.length > 0 && (
          <ul className="body compare-notes" aria-label="Notes">
            {notes.map((n) => (
              <li key={n}>{n}</li>
            ))}
          </ul>
        )}
      </section>

      <Breakdown ids={ids} runs={runs} label={label} tolerance={props.tolerance} />

      <ChartGroup name="compare" start={0} standalone={props.standalone} zoom={zoom} onZoom={setZoom}>
        <div className="compare-charts">
          <Chart
            title="Throughput"
            tip="Operations per second, each run from the start of its measurement."
            file="comparison"
            {...throughput}
            format={rate}
            decor={noDecor}
            state={{
              pending,
              error: state.series.find((s) => s.error)?.error,
              retry: () => state.series.forEach((s) => s.error && void s.refetch()),
            }}
            empty={nothing.empty}
            emptyTitle={nothing.title}
          />
          <Chart
            title={`Latency, ${percentile.toUpperCase()}`}
            file="comparison"
            {...slow}
            format={latency}
            decor={noDecor}
            canLog
            note={
              <Segments label="Percentile" value={percentile as 'p95'} options={percentiles} onChange={setPercentile} />
            }
            state={{ pending, error: null, retry: () => {} }}
            empty={nothing.empty}
            emptyTitle={nothing.title}
          />
          {!pending && <HeatMaps curves={curves} label={label} hidden={(i) => hidden.has(i)} />}
        </div>
      </ChartGroup>

      <section className="panel" aria-label="Distributions">
        <header>
          <h2 className="h3">
            <Term tip="Every recorded execution of the measurement, by its latency.">Latency distributions</Term>
          </h2>
          <div className="end">
            <Segments
              label="Drawn as"
              value={dist as 'shares'}
              options={[
                { value: 'shares', label: 'shares' },
                { value: 'below', label: 'cumulative' },
              ]}
              onChange={setDist}
            />
          </div>
        </header>
        <div className="body">
          {shape ? (
            <DistributionOverlay
              shape={shape}
              labels={ids.map((_, i) => label(i))}
              cumulative={dist === 'below'}
              hidden={(i) => hidden.has(i)}
            />
          ) : (
            <Empty tight title={nothing.title}>
              {allEnded ? nothing.empty : 'The distribution appears when the run has finished.'}
            </Empty>
          )}
          <ul className="run-legend">
            {ids.map((id, i) => (
              <li key={id}>
                <i style={{ background: `var(${color(i)})` }} /> {label(i)}
              </li>
            ))}
          </ul>
        </div>
      </section>

      {tails.length > 0 && (
        <section className="panel" aria-labelledby="compared-percentiles">
          <header>
            <h2 className="h3" id="compared-percentiles">
              Latency at each percentile
            </h2>
            <div className="end">
              <Segments
                label="Axis of latency"
                value={axis as 'linear'}
                options={[
                  { value: 'linear', label: 'Linear' },
                  { value: 'log', label: 'Log' },
                ]}
                onChange={setAxis}
              />
            </div>
          </header>
          <div className="body">
            <PercentileCurve of={tails} log={axis === 'log'} />
          </div>
        </section>
      )}

      <section className="panel" aria-label="Differences">
        <header>
          <h2 className="h3">Differences</h2>
          <span className="muted note end">other than names and tags</span>
        </header>
        {!read ? (
          <div className="body">
            <Skeleton height={60} />
          </div>
        ) : differences.length === 0 ? (
          <p className="body muted">Templates, plugins, server and machine are equal.</p>
        ) : (
          <div className="table-wrap" tabIndex={0} role="group" aria-label="Differences, scrollable">
            <table className="table dense">
              <thead>
                <tr>
                  <th>Field</th>
                  {ids.map((id, i) => (
                    <th key={id}>{label(i)}</th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {differences.map((d) => (
                  <tr key={d.field}>
                    <td>
                      <code>{d.field}</code>
                    </td>
                    {d.values.map((v, i) => (
                      <td key={ids[i]} className="differs">
                        {v}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </>
  );
}

function liveFigure(name: string, r: RunDetail): number | null {
  const l = r.live!;
  switch (name) {
    case 'qps':
      return l.ops.current_per_sec;
    case 'avg_ms':
      return l.latency_total.avg;
    case 'p50_ms':
      return l.latency_total.p50;
    case 'p95_ms':
      return l.latency_total.p95;
    case 'p99_ms':
      return l.latency_total.p99;
    case 'error_rate':
      return l.errors.rate;
    default:
      return null;
  }
}

function slower(c: Result, i: number): string | undefined {
  if (c.slower_probability === null) return undefined;
  return (
    `An operation of ${letter(i)} took longer than one of ${letter(0)} with a probability of ` +
    `${c.slower_probability.toFixed(3)} (0.5: neither).`
  );
}
