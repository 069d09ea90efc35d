import { useMemo } from 'react';
import type uPlot from 'uplot';
import { exact, plain, type Quantity } from '../design/format';
import { Chart, type ChartProps } from './Chart';
import { useGroup } from './group';
import { type Cell, firstTick } from './histogram';
import type { Line } from './plot';
import { heatRamp } from './theme';

type Base = Omit<ChartProps, 'lines' | 'format' | 'yBounds' | 'paint' | 'tooltip' | 'footer' | 'legend' | 'counted'>;

interface Props extends Base {
  /** The filled buckets at each point of x. */
  columns: Cell[][];
  /** Where the column of a point begins; it ends at the point. */
  edge: (i: number) => number;
  /** Writes a bound of a bucket. */
  format: (n: number) => Quantity;
  /** What is counted in a cell, and its short form. */
  counted: string;
  unit: string;
  /** A line that is not drawn and gives the chart its figures, where it has any. */
  middle?: (number | null)[];
  /** What other heat maps have too; its own without one. */
  scale?: { most: number; bounds: [number, number] } | null;
  /** Where the axis ends at least. */
  top?: number;
  /** Shows what is in the cell of a point; only cells that hold something are asked for. */
  onCell?: (i: number, cell: Cell) => void;
}

/** Whole numbers are exact; of a rate, three digits say enough. */
const rounded = (n: number) => (Number.isInteger(n) ? n : Number(n.toPrecision(3)));

/** Histograms over time as a heat map: columns are instants, rows their buckets. */
export function Heat({ columns, edge, format, counted, unit, middle, scale, top = 0, onCell, ...rest }: Props) {
  const { theme } = useGroup();
  const { x } = rest;
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the ramp is read from the theme's tokens
  const ramp = useMemo(() => heatRamp(), [theme]);
  const bounds = useMemo<[number, number] | null>(() => {
    if (scale && columns.length > 0) return scale.bounds;
    let lo = Number.POSITIVE_INFINITY;
    let hi = 0;
    for (const col of columns)
      for (const cell of col) {
        if (cell.from < lo) lo = cell.from;
        if (cell.to > hi) hi = cell.to;
      }
    return hi > 0 ? [firstTick(lo), Math.max(hi, top)] : null;
  }, [columns, top, scale]);
  const own = useMemo(() => columns.reduce((m, col) => col.reduce((n, c) => Math.max(n, c.count), m), 0), [columns]);

  const most = scale?.most ?? own;

  const lines = useMemo<Line[]>(
    () =>
      bounds
        ? [{ key: 'heat', label: 'latency', color: '--p95', width: 0, values: middle ?? x.map(() => bounds[1]) }]
        : [],
    [bounds, middle, x],
  );

  const paint = (u: uPlot) => {
    const { ctx, bbox } = u;
    const deep = Math.log(most + 1) || 1;
    // The power leaves the dark end to the few cells where most operations fall.
    const shade = (n: number) => (Math.log(n + 1) / deep) ** 2;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (let i = 0; i < columns.length; i++) {
      const x0 = Math.floor(u.valToPos(edge(i), 'x', true));
      const x1 = Math.max(x0 + 1, Math.floor(u.valToPos(x[i]!, 'x', true)));
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

  const cellAt = (u: uPlot, idx: number, keyed: boolean): [number, Cell | undefined] => {
    // The pointer snaps to the nearest point, and a column lies before its own.
    const t = keyed ? x[idx]! : u.posToVal(u.cursor.left ?? 0, 'x');
    const i = x[idx]! < t && idx + 1 < x.length && t > edge(idx + 1) ? idx + 1 : idx;
    const y = u.posToVal(u.cursor.top ?? 0, 'y');
    return [i, columns[i]?.find((cell) => y > cell.from && y <= cell.to)];
  };

  return (
    <Chart
      {...rest}
      onPick={
        onCell &&
        ((u, idx, keyed) => {
          const [i, cell] = cellAt(u, idx, keyed);
          if (cell) onCell(i, cell);
        })
      }
      opens={onCell && 'the executions of the cell'}
      stops={(i) => columns[i]?.map((cell) => Math.sqrt(Math.max(cell.from, cell.to / 2) * cell.to)) ?? []}
      lines={lines}
      format={format}
      log
      legend={false}
      height={rest.height ?? 232}
      yBounds={() => bounds}
      paint={paint}
      tooltip={(u, idx) => {
        const y = u.posToVal(u.cursor.top ?? 0, 'y');
        const hit = columns[idx]?.find((cell) => y > cell.from && y <= cell.to);
        const range = hit ? `${plain(format(hit.from))} – ${plain(format(hit.to))}` : plain(format(y));
        return [{ label: range, value: hit ? `${exact(rounded(hit.count))} ${unit}` : 'none' }];
      }}
      footer={
        <div className="heat-key">
          {exact(Math.min(1, rounded(most)))} <i /> {exact(rounded(most))} {counted} in a cell
        </div>
      }
    />
  );
}
