import { useMemo } from 'react';
import type uPlot from 'uplot';
import { exact, latency, plain } from '../design/format';
import { terms } from '../design/terms';
import type { Columns } from '../runs/series';
import { Chart, type ChartProps } from './Chart';
import { useGroup } from './group';
import { type Cell, cells, firstTick } from './histogram';
import type { Line } from './plot';
import { heatRamp } from './theme';

/** Latency over time as a heat map: columns are seconds, rows the buckets of the live histogram. */
export function HeatMap({
  c,
  ...rest
}: { c: Columns } & Pick<ChartProps, 'file' | 'decor' | 'until' | 'state' | 'empty' | 'emptyTitle'>) {
  const { theme } = useGroup();
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the ramp is read from the theme's tokens
  const ramp = useMemo(() => heatRamp(), [theme]);
  const columns = useMemo<Cell[][]>(() => c.rows.map((s) => cells(s?.histogram)), [c]);
  const bounds = useMemo<[number, number] | null>(() => {
    let lo = Number.POSITIVE_INFINITY;
    let hi = 0;
    for (const col of columns)
      for (const cell of col) {
        if (cell.from < lo) lo = cell.from;
        if (cell.to > hi) hi = cell.to;
      }
    return hi > 0 ? [firstTick(lo), Math.max(hi, 2e-3)] : null;
  }, [columns]);
  const most = useMemo(() => columns.reduce((m, col) => col.reduce((n, x) => Math.max(n, x.count), m), 0), [columns]);

  const lines = useMemo<Line[]>(
    () =>
      bounds
        ? [{ key: 'heat', label: 'latency', color: '--p95', width: 0, values: c.rows.map((s) => s?.p50 ?? null) }]
        : [],
    [bounds, c],
  );

  const paint = (u: uPlot) => {
    const { ctx, bbox } = u;
    const scale = Math.log(most + 1) || 1;
    // The power leaves the dark end to the few cells where most operations fall.
    const shade = (n: number) => (Math.log(n + 1) / scale) ** 2;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const edge = (i: number) => {
      const t = c.t[i]!;
      const before = i > 0 && c.rows[i - 1]?.span === 1 ? c.t[i - 1]! : t - 1;
      return Math.max(t - 1.5, before);
    };
    for (let i = 0; i < columns.length; i++) {
      const x0 = Math.floor(u.valToPos(edge(i), 'x', true));
      const x1 = Math.max(x0 + 1, Math.floor(u.valToPos(c.t[i]!, 'x', true)));
      if (x1 < bbox.left || x0 > bbox.left + bbox.width) continue;
      for (const cell of columns[i]!) {
        const y0 = Math.round(u.valToPos(cell.to, 'y', true));
        const y1 = Math.round(u.valToPos(cell.from, 'y', true));
        ctx.fillStyle = ramp[Math.min(ramp.length - 1, Math.round(shade(cell.count) * (ramp.length - 1)))]!;
        ctx.fillRect(x0, y0, x1 - x0, Math.max(1, y1 - y0));
      }
    }
    ctx.restore();
  };

  return (
    <Chart
      {...rest}
      title="Latency heat map"
      tip={terms.heatmap}
      x={c.t}
      lines={lines}
      format={latency}
      log
      legend={false}
      height={232}
      yBounds={() => bounds}
      paint={paint}
      tooltip={(u, idx) => {
        const y = u.posToVal(u.cursor.top ?? 0, 'y');
        const hit = columns[idx]?.find((cell) => y > cell.from && y <= cell.to);
        const range = hit ? `${plain(latency(hit.from))} – ${plain(latency(hit.to))}` : plain(latency(y));
        return [{ label: range, value: hit ? `${exact(hit.count)} ops` : 'none' }];
      }}
      footer={
        <div className="heat-key">
          1 <i /> {exact(most)} operations in a cell
        </div>
      }
    />
  );
}
