import { useMemo, useRef } from 'react';
import type uPlot from 'uplot';
import { exact, plain, type Quantity } from '../design/format';
import { Chart, type ChartProps } from './Chart';
import { useGroup } from './group';
import { type Cell, firstTick } from './histogram';
import type { Line } from './plot';
import { heatRamp } from './theme';

/** HeatColumns is the data of a heat map. */
interface HeatColumns {
  /** The filled buckets at a point of x. */
  at: (i: number) => Cell[];
  /** The same object as long as columns are only appended, so that painted ones are reused. */
  cacheKey: object;
}

/** fixedColumns wraps a list that does not change. */
export const fixedColumns = (list: Cell[][]): HeatColumns => ({ at: (i) => list[i] ?? [], cacheKey: list });

/** ScanState is the range and maximum of the columns scanned so far. */
interface ScanState {
  cacheKey: object;
  scanned: number;
  lo: number;
  hi: number;
  maxCount: number;
}

/** Painting is a cached bitmap: its columns, its place, and how many are painted. */
interface Painting {
  canvas: HTMLCanvasElement;
  cacheKey: object;
  place: string;
  ramp: string[];
  scanned: number;
}

type Base = Omit<
  ChartProps,
  'lines' | 'format' | 'yBounds' | 'paint' | 'tooltip' | 'footer' | 'legend' | 'table' | 'counted'
>;

interface Props extends Base {
  columns: HeatColumns;
  /** Where a point's column begins; it ends at the point. */
  edge: (i: number) => number;
  /** Formats a bucket bound. */
  format: (n: number) => Quantity;
  /** What a cell counts, and its short unit. */
  counted: string;
  unit: string;
  /** A hidden line that provides the legend's figures. */
  middle?: (number | null)[];
  /** A scale shared with other heat maps; its own without one. */
  scale?: { maxCount: number; bounds: [number, number] } | null;
  /** Minimum end of the axis. */
  top?: number;
  /** Opens a cell; called only for cells with a count. */
  onCell?: (i: number, cell: Cell) => void;
}

/** Whole numbers are exact; rates have three digits. */
const rounded = (n: number) => (Number.isInteger(n) ? n : Number(n.toPrecision(3)));

/** HistogramHeatMap draws histograms over time: columns are instants, rows are buckets. */
export function HistogramHeatMap({
  columns,
  edge,
  format,
  counted,
  unit,
  middle,
  scale,
  top = 0,
  onCell,
  ...rest
}: Props) {
  const { theme } = useGroup();
  const { x } = rest;
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the ramp is read from the theme's tokens
  const ramp = useMemo(() => heatRamp(), [theme]);
  const scanRef = useRef<ScanState>(null);
  if (scanRef.current?.cacheKey !== columns.cacheKey || scanRef.current.scanned > x.length)
    scanRef.current = { cacheKey: columns.cacheKey, scanned: 0, lo: Number.POSITIVE_INFINITY, hi: 0, maxCount: 0 };
  const scan = scanRef.current;
  for (; scan.scanned < x.length; scan.scanned++)
    for (const cell of columns.at(scan.scanned)) {
      if (cell.from < scan.lo) scan.lo = cell.from;
      if (cell.to > scan.hi) scan.hi = cell.to;
      if (cell.count > scan.maxCount) scan.maxCount = cell.count;
    }
  const { lo, hi } = scan;
  const bounds = useMemo<[number, number] | null>(
    () => (scale && x.length > 0 ? scale.bounds : hi > 0 ? [firstTick(lo), Math.max(hi, top)] : null),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- whether there are any, not how many
    [lo, hi, top, scale, x.length > 0],
  );

  const maxCount = scale?.maxCount ?? scan.maxCount;

  const lines = useMemo<Line[]>(
    () =>
      bounds
        ? [{ key: 'heat', label: 'latency', color: '--p95', width: 0, values: middle ?? x.map(() => bounds[1]) }]
        : [],
    [bounds, middle, x],
  );

  const painted = useRef<Painting>(null);
  const paint = (u: uPlot) => {
    const { ctx, bbox } = u;
    const { left, top, width, height } = bbox;
    if (width < 1 || height < 1) return;
    const of = (s: uPlot.Scale) => `${s.min}…${s.max}`;
    // A new second is painted next to the others, which are repainted only when their place or colours change.
    const place = [width, height, of(u.scales.x!), of(u.scales.y!), maxCount].join();
    let p = painted.current;
    if (p?.cacheKey !== columns.cacheKey || p.place !== place || p.ramp !== ramp || p.scanned > x.length) {
      const canvas = p?.canvas ?? document.createElement('canvas');
      // Setting the size clears the canvas.
      canvas.width = width;
      canvas.height = height;
      painted.current = p = { canvas, cacheKey: columns.cacheKey, place, ramp, scanned: 0 };
    }
    const on = p.canvas.getContext('2d')!;
    const deep = Math.log(maxCount + 1) || 1;
    // The exponent keeps the dark end for the few largest cells.
    const shade = (n: number) => (Math.log(n + 1) / deep) ** 2;
    for (; p.scanned < x.length; p.scanned++) {
      const x0 = Math.floor(u.valToPos(edge(p.scanned), 'x', true)) - left;
      const x1 = Math.max(x0 + 1, Math.floor(u.valToPos(x[p.scanned]!, 'x', true)) - left);
      if (x1 < 0 || x0 > width) continue;
      for (const cell of columns.at(p.scanned)) {
        const y0 = Math.round(u.valToPos(cell.to, 'y', true)) - top;
        const y1 = Math.round(u.valToPos(cell.from, 'y', true)) - top;
        on.fillStyle = ramp[Math.min(ramp.length - 1, Math.round(shade(cell.count) * (ramp.length - 1)))]!;
        on.fillRect(x0, y0, x1 - x0, Math.max(1, y1 - y0));
      }
    }
    ctx.drawImage(p.canvas, left, top);
  };

  const cellAt = (u: uPlot, idx: number, keyed: boolean): [number, Cell | undefined] => {
    // The pointer snaps to the nearest point, and a column lies before its point.
    const t = keyed ? x[idx]! : u.posToVal(u.cursor.left ?? 0, 'x');
    const i = x[idx]! < t && idx + 1 < x.length && t > edge(idx + 1) ? idx + 1 : idx;
    const y = u.posToVal(u.cursor.top ?? 0, 'y');
    return [i, columns.at(i).find((cell) => y > cell.from && y <= cell.to)];
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
      stops={(i) => columns.at(i).map((cell) => Math.sqrt(Math.max(cell.from, cell.to / 2) * cell.to))}
      lines={lines}
      format={format}
      log
      legend={false}
      table={{ header: ['from', 'to', counted], rows: (i) => columns.at(i).map((c) => [c.from, c.to, c.count]) }}
      height={rest.height ?? 232}
      yBounds={() => bounds}
      paint={paint}
      tooltip={(u, idx) => {
        const y = u.posToVal(u.cursor.top ?? 0, 'y');
        const hit = columns.at(idx).find((cell) => y > cell.from && y <= cell.to);
        const range = hit ? `${plain(format(hit.from))} – ${plain(format(hit.to))}` : plain(format(y));
        return [{ label: range, value: hit ? `${exact(rounded(hit.count))} ${unit}` : 'none' }];
      }}
      footer={
        <div className="heat-key">
          {exact(Math.min(1, rounded(maxCount)))} <i /> {exact(rounded(maxCount))} {counted} in a cell
        </div>
      }
    />
  );
}
