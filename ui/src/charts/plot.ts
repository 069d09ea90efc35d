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
  /** Fill opacity, 0…1, down to the line below (stacked) or to zero. */
  fill?: number;
  /** The figure of the whole measurement, as in the tiles. */
  overall?: number | null;
  /** A line outside the stack, such as a target. */
  unstacked?: boolean;
  /** A threshold, constant over the chart. It does not set the axis; one far above is named at the edge. */
  limit?: boolean;
}

interface Range {
  from: number;
  to: number;
}

export interface Decor {
  bands: PhaseBand[];
  markers: Marker[];
  /** Seconds with a validity problem. */
  suspectRanges?: Range[];
  /** Times in which the target was down. */
  outages?: Range[];
}

interface PlotSpec {
  lines: Line[];
  stacked: boolean;
  log: boolean;
  height: number;
  axis: TimeAxis;
  start: number;
  syncKey: string;
  format: (n: number) => Quantity;
  /** Fixed bounds of the vertical axis, for charts with their own painting. */
  yBounds?: () => [number, number] | null;
  paint?: (u: uPlot) => void;
}

/** LivePlotData is read at each drawing, so that a tick does not rebuild the plot. */
export interface LivePlotData {
  decor: Decor;
  range: () => [number, number];
  onSelect: (from: number, to: number) => void;
  onReset: () => void;
  onCursor: (u: uPlot) => void;
}

const steps = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 345600, 604800,
];

/** growingAxisEnd is the axis end for live data up to t: at most a fiftieth later, on a whole step. */
export function growingAxisEnd(t: number): number {
  const step = steps.findLast((n) => n <= t / 50) ?? 1;
  return Math.ceil(t / step) * step;
}

/** timeLabel formats a time of the axis, with the date where the day changes. */
export function timeLabel(t: number, axis: TimeAxis, start: number, fine = false, days = false): string {
  if (axis === 'elapsed' || !start) return elapsed(t);
  const d = new Date(start + t * 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const day = `${d.toLocaleString('en-US', { month: 'short' })} ${d.getDate()}`;
  if (days && !fine && d.getHours() + d.getMinutes() === 0) return day;
  if (days) return `${day}, ${timeLabel(t, axis, start, fine)}`;
  return `${two(d.getHours())}:${two(d.getMinutes())}${fine || d.getSeconds() ? `:${two(d.getSeconds())}` : ''}`;
}

/** axisText formats an axis label without trailing zeros. */
export function axisText(q: Quantity): string {
  const v = Number(q.value);
  if (v === 0) return '0';
  return plain({ ...q, value: Number.isFinite(v) && q.value !== '' ? String(v) : q.value });
}

/** stack returns cumulative heights: each stacked line on top of those before it. */
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

/** isolatedPoints have gaps on both sides, so no line shows them. */
function isolatedPoints(u: uPlot, seriesIdx: number): number[] {
  const d = u.data[seriesIdx]!;
  const out: number[] = [];
  for (let i = 0; i < d.length; i++) if (d[i] != null && d[i - 1] == null && d[i + 1] == null) out.push(i);
  return out;
}

/** drawRanges tints ranges of time, or marks them at the top where the painting covers the tint. */
function drawRanges(u: uPlot, ranges: Range[] | undefined, color: string, tint: boolean): void {
  if (!ranges?.length) return;
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.fillStyle = token(color);
  for (const d of ranges) {
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
 * placeLabels finds where marker labels begin without overlap: at the marker, a little before it, or ending at the
 * right edge. A label without room is null; the longest phase is placed first.
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

/** logLabelDigits labels 1, 2 and 5 of each decade, or only decades when there are many. */
function logLabelDigits(splits: number[]): number[] {
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

/** axisEnd lets thresholds extend the axis to at most twice the measured maximum. */
export function axisEnd(max: number | null, limits: number[]): number {
  if (!max || max <= 0) return Math.max(0, ...limits);
  return Math.max(max, ...limits.filter((v) => v <= 2 * max));
}

/** visibleLimits are the shown thresholds with their values. */
function visibleLimits(u: uPlot, lines: Line[], hidden: Set<string>): { line: Line; value: number }[] {
  return lines.flatMap((line, i) => {
    const values = (u.data[i + 1] ?? []) as (number | null)[];
    const value = line.limit && !hidden.has(line.key) ? values.find((v) => v !== null) : null;
    return value == null ? [] : [{ line, value }];
  });
}

/** drawLimitsAbove names thresholds above the chart. */
function drawLimitsAbove(u: uPlot, limits: { line: Line; value: number }[]): void {
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

/** makePlot builds a plot; the caller destroys it. */
export function makePlot(
  el: HTMLElement,
  spec: PlotSpec,
  hidden: Set<string>,
  live: () => LivePlotData,
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
      visibleLimits(u, spec.lines, hidden).map((l) => l.value),
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
                  return logLabelDigits(splits).some((n) => Math.abs(lead - n) < 1e-6) ? v : null;
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
            points: { show: true, size: 4, fill: color, filter: isolatedPoints },
          };
        }),
      ],
      hooks: {
        drawClear: [
          (u) => {
            drawBands(u, live().decor);
            drawRanges(u, live().decor.suspectRanges, '--doubt-band', true);
            drawRanges(u, live().decor.outages, '--bad-soft', true);
          },
        ],
        drawAxes: spec.paint ? [spec.paint] : [],
        draw: [
          (u) => {
            drawRanges(u, live().decor.suspectRanges, '--warn-mark', false);
            drawRanges(u, live().decor.outages, '--bad-mark', false);
          },
          (u) => drawMarkers(u, live().decor),
          (u) => drawLimitsAbove(u, visibleLimits(u, spec.lines, hidden)),
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
