import { useMemo, useRef } from 'react';
import type uPlot from 'uplot';
import { exact, plain, type Quantity } from '../design/format';
import { Chart, type ChartProps } from './Chart';
import { useGroup } from './group';
import { type Cell, firstTick } from './histogram';
import type { Line } from './plot';
import { heatRamp } from './theme';

/** What a heat map is painted from. */
export interface HeatColumns {
  /** The filled buckets at a point of x. */
  at: (i: number) => Cell[];
  /** The same object for as long as columns are only added: those that are painted stay as they are. */
  stem: object;
}

/** The columns of a list that does not change. */
export const listed = (list: Cell[][]): HeatColumns => ({ at: (i) => list[i] ?? [], stem: list });

/** What was seen of columns, up to one of them. */
interface Seen {
  stem: object;
  upTo: number;
  lo: number;
  hi: number;
  most: number;
}

/** A painting that is kept: of which columns, in which place, and up to which. */
interface Painting {
  canvas: HTMLCanvasElement;
  stem: object;
  place: string;
  ramp: string[];
  upTo: number;
}

type Base = Omit<
  ChartProps,
  'lines' | 'format' | 'yBounds' | 'paint' | 'tooltip' | 'footer' | 'legend' | 'table' | 'counted'
>;

interface Props extends Base {
  columns: HeatColumns;
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
  const looked = useRef<Seen>(null);
  if (looked.current?.stem !== columns.stem || looked.current.upTo > x.length)
    looked.current = { stem: columns.stem, upTo: 0, lo: Number.POSITIVE_INFINITY, hi: 0, most: 0 };
  const seen = looked.current;
  for (; seen.upTo < x.length; seen.upTo++)
    for (const cell of columns.at(seen.upTo)) {
      if (cell.from < seen.lo) seen.lo = cell.from;
      if (cell.to > seen.hi) seen.hi = cell.to;
      if (cell.count > seen.most) seen.most = cell.count;
    }
  const { lo, hi } = seen;
  const bounds = useMemo<[number, number] | null>(
    () => (scale && x.length > 0 ? scale.bounds : hi > 0 ? [firstTick(lo), Math.max(hi, top)] : null),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- whether there are any, not how many
    [lo, hi, top, scale, x.length > 0],
  );

  const most = scale?.most ?? seen.most;

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
    // A second that comes is painted beside the others; these are painted again when their place or colours change.
    const place = [width, height, of(u.scales.x!), of(u.scales.y!), most].join();
    let p = painted.current;
    if (p?.stem !== columns.stem || p.place !== place || p.ramp !== ramp || p.upTo > x.length) {
      const canvas = p?.canvas ?? document.createElement('canvas');
      // Setting the size clears it.
      canvas.width = width;
      canvas.height = height;
      painted.current = p = { canvas, stem: columns.stem, place, ramp, upTo: 0 };
    }
    const on = p.canvas.getContext('2d')!;
    const deep = Math.log(most + 1) || 1;
    // The power leaves the dark end to the few cells where most operations fall.
    const shade = (n: number) => (Math.log(n + 1) / deep) ** 2;
    for (; p.upTo < x.length; p.upTo++) {
      const x0 = Math.floor(u.valToPos(edge(p.upTo), 'x', true)) - left;
      const x1 = Math.max(x0 + 1, Math.floor(u.valToPos(x[p.upTo]!, 'x', true)) - left);
      if (x1 < 0 || x0 > width) continue;
      for (const cell of columns.at(p.upTo)) {
        const y0 = Math.round(u.valToPos(cell.to, 'y', true)) - top;
        const y1 = Math.round(u.valToPos(cell.from, 'y', true)) - top;
        on.fillStyle = ramp[Math.min(ramp.length - 1, Math.round(shade(cell.count) * (ramp.length - 1)))]!;
        on.fillRect(x0, y0, x1 - x0, Math.max(1, y1 - y0));
      }
    }
    ctx.drawImage(p.canvas, left, top);
  };

  const cellAt = (u: uPlot, idx: number, keyed: boolean): [number, Cell | undefined] => {
    // The pointer snaps to the nearest point, and a column lies before its own.
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
          {exact(Math.min(1, rounded(most)))} <i /> {exact(rounded(most))} {counted} in a cell
        </div>
      }
    />
  );
}
