import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../api/client';
import type { KindCurves, Mark, RunDetail } from '../api/types';
import { useParam } from '../app/location';
import { Chart } from '../charts/Chart';
import type { Line } from '../charts/plot';
import { Segments } from '../design/Controls';
import { capitalize, duration, humanize, latency, rate } from '../design/format';
import { useMarks, withMarks } from './marks';
import { phases } from './series';

const percentiles = [
  { value: 'p50', label: 'P50' },
  { value: 'p95', label: 'P95' },
  { value: 'p99', label: 'P99' },
] as const;

/** ingestTimeout: a run is ingested seconds after its end; until then its kinds are polled. */
const ingestTimeout = 120_000;

/** KindCharts loads the kinds of a run over time. */
export function KindCharts({ run }: { run: RunDetail }) {
  const kinds = useQuery({
    queryKey: ['kinds', run.run_id],
    queryFn: ({ signal }) => api.get('/api/v1/runs/{id}/kinds', { path: { id: run.run_id }, signal }),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: (q) =>
      q.state.error && run.end_time && Date.now() - Date.parse(run.end_time) < ingestTimeout ? 3_000 : false,
  });
  const marks = useMarks(run).data?.marks;
  return (
    <KindChartGrid
      run={run}
      marks={marks ?? []}
      kinds={kinds.data}
      state={{ pending: kinds.isPending, error: kinds.error, retry: () => void kinds.refetch() }}
    />
  );
}

/** KindChartGrid draws rate, latency and errors of each kind over time. */
export function KindChartGrid(props: {
  run: RunDetail;
  marks: Mark[];
  kinds: KindCurves | undefined;
  state: { pending: boolean; error: unknown; retry: () => void };
}) {
  const { run, marks, kinds, state } = props;
  const [percentile, setPercentile] = useParam('p', 'p95');
  const p = percentiles.find((x) => x.value === percentile)?.value ?? 'p95';
  const decor = useMemo(() => {
    const of = phases(run);
    return { ...of, markers: withMarks(of.markers, marks, run) };
  }, [run, marks]);
  const x = kinds?.elapsed_seconds ?? none;
  const lines = useMemo(() => {
    const all = (of: (k: KindCurves['kinds'][number]) => (number | null)[], overall?: 'rate' | 'latency'): Line[] =>
      (kinds?.kinds ?? []).map((k) => {
        const f = run.summary?.by_kind?.[k.kind];
        return {
          key: k.kind,
          label: capitalize(humanize(k.kind)),
          color: `--k-${k.kind.toLowerCase()}`,
          width: 1.75,
          values: of(k),
          overall: overall === 'rate' ? f?.qps : overall === 'latency' ? f?.latency_ms?.[p] : undefined,
        };
      });
    return {
      rate: all((k) => k.qps, 'rate'),
      latency: all((k) => k[`${p}_ms`], 'latency'),
      errors: all((k) => k.errors_per_sec).filter((l) => l.values.some((v) => (v ?? 0) > 0)),
    };
  }, [kinds, run.summary, p]);
  const warm = run.warmup_end_time && run.start_time ? Date.parse(run.warmup_end_time) - Date.parse(run.start_time) : 0;
  const counted = useMemo(() => x.map((t) => t > warm / 1000), [x, warm]);
  const common = { file: run.test_name, x, counted, decor, state, height: 232 };
  return (
    <section className="stack" aria-label="Kinds over time">
      {kinds && kinds.resolution_seconds > 1 && (
        <p className="muted resolution">Each point stands for {duration(kinds.resolution_seconds)}.</p>
      )}
      <div className="columns two charts-grid">
        <Chart
          {...common}
          title="Rate of each kind"
          tip="Operations that ended in each second, by kind."
          lines={lines.rate}
          format={rate}
        />
        <Chart
          {...common}
          title={`Latency of each kind, ${p.toUpperCase()}`}
          tip="By kind, for operations that ended in each second. Accurate to 1 %."
          lines={lines.latency}
          format={latency}
          canLog
          note={<Segments label="Percentile" value={p} options={percentiles} onChange={setPercentile} />}
        />
        {lines.errors.length > 0 && (
          <Chart {...common} title="Errors of each kind" lines={lines.errors} format={rate} />
        )}
      </div>
    </section>
  );
}

const none: number[] = [];
