import { useMemo, useState } from 'react';
import type { RunDetail } from '../api/types';
import { Chart } from '../charts/Chart';
import { Distribution } from '../charts/Distribution';
import { ChartGroup, type Zoom } from '../charts/group';
import type { Line } from '../charts/plot';
import { latency, rate } from '../design/format';
import { useHistory } from '../runs/history';
import { axisBegins, columns, phases } from '../runs/series';
import { lineValues } from '../runs/track';

/** RunPicture draws a finished run: throughput and latency over time, and latency as a distribution. */
export default function RunPicture({ run }: { run: RunDetail }) {
  const [zoom, setZoom] = useState<Zoom | null>(null);
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  const history = useHistory(run.run_id, true, start);
  const c = useMemo(() => columns(history.data ?? { samples: [] }), [history.data]);
  const decor = useMemo(() => phases(run), [run]);
  const counted = useMemo(() => c.rows.map((s) => s?.phase === 'MEASUREMENT'), [c]);
  const line = (key: 'qps' | 'p50' | 'p95' | 'p99', label: string, color: string, fill?: number): Line => ({
    key,
    label,
    color,
    fill,
    values: lineValues(c, key, (s) => s[key]),
  });
  const common = {
    file: run.test_name,
    x: c.t,
    decor,
    counted,
    legend: false,
    height: 160,
    state: { pending: history.isPending, error: history.error, retry: () => void history.refetch() },
  };
  return (
    <ChartGroup name={`first-steps-${run.run_id}`} start={start} from={axisBegins(run, c)} zoom={zoom} onZoom={setZoom}>
      <div className="run-picture">
        <Chart {...common} title="Throughput" lines={[line('qps', 'Operations', '--accent', 0.16)]} format={rate} />
        <Chart
          {...common}
          title="Latency"
          lines={[line('p99', 'P99', '--p99'), line('p95', 'P95', '--p95'), line('p50', 'P50', '--p50')]}
          format={latency}
        />
        {run.summary?.histogram?.length ? (
          <section className="panel">
            <header>
              <h3 className="h3">Latency distribution</h3>
            </header>
            <div className="body">
              <Distribution buckets={run.summary.histogram} latency={run.summary.latency_ms} logCount={false} />
            </div>
          </section>
        ) : null}
      </div>
    </ChartGroup>
  );
}
