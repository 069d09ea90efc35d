import uPlot from 'uplot';
import { elapsed, plain, type Quantity } from '../design/format';
import type { Marker, PhaseBand } from '../runs/series';
import type { TimeAxis } from './group';
import { canvasFont, token } from './theme';

export interface Line {
  key: string;
  label: string;
  /** Name of a colour token. */
  color: string;
  values: (number | null)[];
  width?: number;
  dash?: number[];
  /** Fill down to the line below (stacked) or to zero, 0…1. */
  fill?: number;
  /** The figure of the whole measurement, as the tiles have it. */
  overall?: number | null;
  /** Lines outside the stack, such as a target, keep their own height. */
  unstacked?: boolean;
  /** A threshold, one value over the whole chart: what is measured sets the axis, and one far above it is named. */
  limit?: boolean;
}

export interface Decor {
  bands: PhaseBand[];
  markers: Marker[];
  /** Seconds in which something spoke against the figures. */
  doubts?: { from: number; to: number }[];
}

export interface PlotSpec {
  lines: Line[];
  stacked: boolean;
  log: boolean;
  height: number;
  axis: TimeAxis;
  start: number;
  syncKey: string;
  format: (n: number) => Quantity;
  /** Fixed bounds of the vertical axis, for charts that paint themselves. */
  yBounds?: () => [number, number] | null;
  paint?: (u: uPlot) => void;
}

/** What a plot reads anew at each drawing, so that a tick need not build it again. */
export interface Live {
  decor: Decor;
  range: () => [number, number];
  onSelect: (from: number, to: number) => void;
  onReset: () => void;
  onCursor: (u: uPlot) => void;
}

const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 345600, 604800,
];

/** Where an axis ends that has data up to t and grows: at most a fiftieth later, on a whole step. */
export function roomFor(t: number): number {
  const step = steps.findLast((n) => n <= t / 50) ?? 1;
  return Math.ceil(t / step) * step;
}

/** Writes a time of the axis; on a day of its own with the day, where that is not midnight alone. */
export function timeLabel(t: number, axis: TimeAxis, start: number, fine = false, days = false): string {
  if (axis === 'elapsed' || !start) return elapsed(t);
  const d = new Date(start + t * 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const day = `${d.toLocaleString('en-US', { month: 'short' })} ${d.getDate()}`;
  if (days && !fine && d.getHours() + d.getMinutes() === 0) return day;
  if (days) return `${day}, ${timeLabel(t, axis, start, fine)}`;
  return `${two(d.getHours())}:${two(d.getMinutes())}${fine || d.getSeconds() ? `:${two(d.getSeconds())}` : ''}`;
}

/** A label of an axis: without the digits that only say 0. */
export function axisText(q: Quantity): string {
  const v = Number(q.value);
  if (v === 0) return '0';
  return plain({ ...q, value: Number.isFinite(v) && q.value !== '' ? String(v) : q.value });
}

/** Heights as drawn: each stacked line on the shoulders of those before it. */
export function stack(lines: Line[], hidden: Set<string>): (number | null)[][] {
  let below: (number | null)[] | null = null;
  return lines.map((l) => {
    if (l.unstacked || hidden.has(l.key)) return l.values;
    const base = below;
    const sum = l.values.map((v, i) => (v === null ? null : v + (base?.[i] ?? 0)));
    below = sum;
    return sum;
  });
}

function alpha(color: string, a: number): string {
  return color.startsWith('#') && color.length === 7
    ? color +
        Math.round(a * 255)
          .toString(16)
          .padStart(2, '0')
    : color;
}

/** Points are drawn only where a line cannot show them: alone between two gaps. */
function lonely(u: uPlot, seriesIdx: number): number[] {
  const d = u.data[seriesIdx]!;
  const out: number[] = [];
  for (let i = 0; i < d.length; i++) if (d[i] != null && d[i - 1] == null && d[i + 1] == null) out.push(i);
  return out;
}

/** Tints the seconds that are in doubt, or marks them at the top, where a chart's own painting covers the tint. */
function drawDoubts(u: uPlot, decor: Decor, tint: boolean): void {
  if (!decor.doubts?.length) return;
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.fillStyle = token(tint ? '--doubt-band' : '--warn-mark');
  for (const d of decor.doubts) {
    const x0 = Math.max(bbox.left, u.valToPos(d.from, 'x', true));
    const x1 = Math.min(bbox.left + bbox.width, Math.max(u.valToPos(d.to, 'x', true), x0 + 2 * ratio));
    if (x1 <= x0) continue;
    ctx.fillRect(x0, bbox.top, x1 - x0, tint ? bbox.height : 3 * ratio);
  }
  ctx.restore();
}

function drawBands(u: uPlot, decor: Decor): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = token('--warmup-band');
  for (const b of decor.bands) {
    const x0 = u.valToPos(b.from, 'x', true);
    const to = Number.isFinite(b.to) ? b.to : (u.data[0].at(-1) ?? b.from);
    const x1 = u.valToPos(to, 'x', true);
    ctx.fillRect(x0, bbox.top, Math.max(0, x1 - x0), bbox.height);
  }
  ctx.restore();
}

/**
 * Finds where the labels of markers begin, so that none touches another or
 * leaves the plot: at its marker; or a little before it, so as to end at the next one; or, at the
 * right edge, ending at it. One without room is left out (null); the longest phase chooses first.
 */
export function placeLabels(xs: number[], widths: number[], from: number, to: number, gap: number): (number | null)[] {
  const places = xs.map<number | null>(() => null);
  const room = (i: number) => (xs[i + 1] ?? to) - xs[i]!;
  for (const i of xs.map((_, k) => k).sort((a, b) => room(b) - room(a))) {
    const x = xs[i]!;
    if (x < from - 1 || x > to + 1) continue;
    const free = (at: number) =>
      at >= from - 1 &&
      at + widths[i]! <= to + 1 &&
      places.every((p, k) => p === null || at + widths[i]! + gap <= p || p + widths[k]! + gap <= at);
    const w = widths[i]!;
    const before = (xs[i + 1] ?? Number.POSITIVE_INFINITY) - gap - w;
    const choices = [x];
    if (x - before > 0 && x - before <= w / 2) choices.push(before);
    if (x + w > to) choices.push(x - w);
    places[i] = choices.find(free) ?? null;
  }
  return places;
}

/** Labels a logarithmic axis by 1, 2 and 5 of each decade, or by the decades alone when there are many. */
function leads(splits: number[]): number[] {
  const all = splits.filter((v) => v > 0);
  return all.length > 1 && all.at(-1)! / all[0]! > 2000 ? [1] : [1, 2, 5];
}

function drawMarkers(u: uPlot, decor: Decor): void {
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.font = canvasFont(11 * ratio);
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  const shown = decor.markers.map((m) => Math.round(u.valToPos(m.t, 'x', true)));
  const widths = decor.markers.map((m) => Math.ceil(ctx.measureText(m.label).width));
  const places = placeLabels(shown, widths, bbox.left, bbox.left + bbox.width, 8 * ratio);
  for (const [i, m] of decor.markers.entries()) {
    const x = shown[i]!;
    if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) continue;
    ctx.strokeStyle = token('--line-strong');
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x + 0.5, bbox.top);
    ctx.lineTo(x + 0.5, bbox.top + bbox.height);
    ctx.stroke();

    if (places[i] === null) continue;
    ctx.fillStyle = token('--text-3');
    ctx.fillText(m.label, places[i]!, bbox.top - 14 * ratio);
  }
  ctx.restore();
}

/** The end of an axis: thresholds widen it to twice what was measured, so that one far above flattens nothing. */
export function axisEnd(max: number | null, limits: number[]): number {
  if (!max || max <= 0) return Math.max(0, ...limits);
  return Math.max(max, ...limits.filter((v) => v <= 2 * max));
}

/** The thresholds that are shown, with their values. */
function shownLimits(u: uPlot, lines: Line[], hidden: Set<string>): { line: Line; value: number }[] {
  return lines.flatMap((line, i) => {
    const values = (u.data[i + 1] ?? []) as (number | null)[];
    const value = line.limit && !hidden.has(line.key) ? values.find((v) => v !== null) : null;
    return value == null ? [] : [{ line, value }];
  });
}

/** Names the thresholds that lie above the chart. */
function drawAbove(u: uPlot, limits: { line: Line; value: number }[]): void {
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.font = canvasFont(11 * ratio);
  ctx.textBaseline = 'top';
  ctx.textAlign = 'right';
  const above = limits.filter(({ value }) => value > (u.scales.y?.max ?? value));
  for (const [i, { line }] of above.entries()) {
    ctx.fillStyle = token(line.color);
    ctx.fillText(`↑ ${line.label}`, bbox.left + bbox.width - 4 * ratio, bbox.top + (2 + 14 * i) * ratio);
  }
  ctx.restore();
}

/** Builds a plot. The caller destroys it. */
export function makePlot(
  el: HTMLElement,
  spec: PlotSpec,
  hidden: Set<string>,
  live: () => Live,
  data: uPlot.AlignedData,
): uPlot {
  const ink = token('--text-3');
  const grid = { stroke: token('--grid'), width: 1 };
  const font = canvasFont(11);
  const visible = spec.lines.map((l, i) => ({ l, i })).filter(({ l }) => !hidden.has(l.key) && !l.unstacked);
  const bands: uPlot.Band[] = spec.stacked
    ? visible.slice(1).map(({ i, l }, k) => ({
        series: [i + 1, visible[k]!.i + 1],
        fill: alpha(token(l.color), l.fill ?? 0.25),
      }))
    : [];
  const yRange: uPlot.Scale.Range = (u, min, measured) => {
    const fixed = spec.yBounds?.();
    if (fixed) return fixed;
    const max = axisEnd(
      measured,
      shownLimits(u, spec.lines, hidden).map((l) => l.value),
    );
    if (spec.log) {
      if (!(max > 0)) return [0.1, 10];
      return uPlot.rangeLog(Math.max(min, 1e-4), Math.max(max, 1e-4), 10, false);
    }
    if (min < 0) {
      const [from, to] = uPlot.rangeNum(min, Math.max(0, max), 0.06, true);
      return [from ?? min, to ?? max];
    }
    if (!(max > 0)) return [0, 1];
    return [0, uPlot.rangeNum(0, max * 1.04, 0.06, true)[1] ?? max];
  };
  return new uPlot(
    {
      width: Math.max(120, el.clientWidth),
      height: spec.height,
      padding: [18, 22, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: false, dist: 6 },
        points: { size: 7 },
        sync: { key: spec.syncKey, filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' } },
        bind: {
          dblclick: () => () => {
            live().onReset();
            return null;
          },
        },
      },
      scales: {
        x: { time: false, range: () => live().range() },
        y: { distr: spec.log ? 3 : 1, range: yRange },
      },
      axes: [
        {
          stroke: ink,
          font,
          grid,
          ticks: { show: false },
          gap: 6,
          size: 26,
          incrs: steps,
          space: () => {
            const [from, to] = live().range();
            return spec.axis === 'elapsed' ? 56 : to - from > 20 * 3600 ? 104 : 74;
          },
          values: (_u, splits) => {
            const [from, to] = live().range();
            return splits.map((t) => timeLabel(t, spec.axis, spec.start, false, to - from > 20 * 3600));
          },
        },
        {
          stroke: ink,
          font,
          grid,
          ticks: { show: false },
          gap: 6,
          size: 62,
          space: 34,
          filter: spec.log
            ? (_u, splits) =>
                splits.map((v) => {
                  const lead = v / 10 ** Math.floor(Math.log10(v) + 1e-9);
                  return leads(splits).some((n) => Math.abs(lead - n) < 1e-6) ? v : null;
                })
            : undefined,
          values: (_u, splits) => splits.map((v) => (v == null ? '' : axisText(spec.format(v)))),
        },
      ],
      bands,
      series: [
        {},
        ...spec.lines.map<uPlot.Series>((l, i) => {
          const color = token(l.color);
          const first = visible[0]?.i === i;
          return {
            label: l.label,
            scale: 'y',
            show: !hidden.has(l.key),
            stroke: color,
            width: l.width ?? 1.5,
            dash: l.dash,
            spanGaps: false,
            auto: !l.limit,
            fill: l.fill && (!spec.stacked || first) ? alpha(color, l.fill) : undefined,
            points: { show: true, size: 4, fill: color, filter: lonely },
          };
        }),
      ],
      hooks: {
        drawClear: [
          (u) => {
            drawBands(u, live().decor);
            drawDoubts(u, live().decor, true);
          },
        ],
        drawAxes: spec.paint ? [spec.paint] : [],
        draw: [
          (u) => drawDoubts(u, live().decor, false),
          (u) => drawMarkers(u, live().decor),
          (u) => drawAbove(u, shownLimits(u, spec.lines, hidden)),
        ],
        setSelect: [
          (u) => {
            const { left, width } = u.select;
            if (width < 4) return;
            live().onSelect(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
        setCursor: [(u) => live().onCursor(u)],
      },
    },
    data,
    el,
  );
}
