import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { axisText } from '../charts/plot';
import { count, plain, type Quantity } from '../design/format';
import { type Curve, type Point, segments, type Shape } from './model';

interface Props {
  title: string;
  curves: Curve[];
  kind: 'time' | 'number' | 'text';
  /** Times are instants in the browser's zone; otherwise they are shown as written. */
  zoned?: boolean;
  labels?: string[];
  shape: Shape;
  height?: number;
  format?: (n: number) => Quantity;
  /** Additional tooltip text of a point. */
  more?: (p: Point) => string;
  note?: ReactNode;
}

/** maxDots: longer lines have no dots. */
const maxDots = 120;

const pad = { left: 64, right: 14, top: 12, bottom: 26 };
const curveColor = (i: number) => `var(--run-${(i % 8) + 1})`;

/** ticks are round steps between two values, at most maxTicks. */
export function ticks(from: number, to: number, maxTicks: number): number[] {
  if (!(to > from)) return [from];
  const raw = (to - from) / Math.max(1, maxTicks);
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * size).find((s) => s >= raw)!;
  const out: number[] = [];
  // Multiply instead of adding: sums of fractions miss the last step.
  for (let i = Math.ceil(from / step - 1e-6); i * step <= to + step * 1e-6; i++)
    out.push(Number((i * step).toPrecision(12)));
  return out;
}

const timeSteps = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800, 2592000, 7776000];

/** behindUtc is the local offset from UTC in milliseconds. */
const behindUtc = (t: number, zoned: boolean) => (zoned ? new Date(t).getTimezoneOffset() * 60_000 : 0);

export function timeTicks(from: number, to: number, maxTicks: number, zoned: boolean): number[] {
  const step = (timeSteps.find((s) => s * 1000 >= (to - from) / Math.max(1, maxTicks)) ?? 31536000) * 1000;
  const shift = behindUtc(from, zoned);
  const out: number[] = [];
  for (let v = Math.ceil((from - shift) / step) * step + shift; v <= to; v += step) out.push(v);
  return out;
}

export function timeText(t: number, step: number, span: number, zoned: boolean, fine = false): string {
  // Its UTC getters return local clock time.
  const d = new Date(t - behindUtc(t, zoned));
  const two = (n: number) => String(n).padStart(2, '0');
  const day = `${d.toLocaleString('en-US', { month: 'short', timeZone: 'UTC' })} ${d.getUTCDate()}`;
  const at = `${two(d.getUTCHours())}:${two(d.getUTCMinutes())}`;
  if (fine) return `${day} ${at}:${two(d.getUTCSeconds())}`;
  if (step >= 86_400_000) return day;
  if (span > 20 * 3_600_000) return `${day} ${at}`;
  return step < 60_000 ? `${at}:${two(d.getUTCSeconds())}` : at;
}

/** zoneOf is the browser's zone, "UTC+02:00"; '' for UTC, as in tables. */
export function zoneOf(t: number): string {
  const ahead = -new Date(t).getTimezoneOffset();
  if (ahead === 0) return '';
  const two = (n: number) => String(n).padStart(2, '0');
  const all = Math.abs(ahead);
  return `UTC${ahead > 0 ? '+' : '−'}${two(Math.floor(all / 60))}:${two(all % 60)}`;
}

function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    const resizeObserver = new ResizeObserver(() => setWidth(Math.max(220, el.clientWidth)));
    resizeObserver.observe(el);
    setWidth(Math.max(220, el.clientWidth));
    return () => resizeObserver.disconnect();
  }, []);
  return [ref, width] as const;
}

/** XYChart draws any two columns as lines, bars or points, with a colour per series. */
export function XYChart(props: Props) {
  const [ref, width] = useWidth();
  const titleId = useId();
  const [at, setAt] = useState<{ p: Point; curve: number } | null>(null);
  const height = props.height ?? 280;
  const format = props.format ?? count;
  const all = props.curves.flatMap((c) => c.points);
  const fold = (pick: (p: Point) => number, with_: (a: number, b: number) => number, start: number) =>
    all.reduce((m, p) => with_(m, pick(p)), start);
  const words = props.labels?.length ?? 0;
  const bars = props.shape === 'bars';
  let x0 = props.kind === 'text' ? -0.5 : fold((p) => p.x, Math.min, Number.POSITIVE_INFINITY);
  let x1 = props.kind === 'text' ? words - 0.5 : fold((p) => p.x, Math.max, Number.NEGATIVE_INFINITY);
  if (x0 === x1) {
    const half = props.kind === 'time' ? 30_000 : 1;
    x0 -= half;
    x1 += half;
  }
  const y0 = fold((p) => p.y, Math.min, 0);
  const top = fold((p) => p.y, Math.max, 0) || (y0 < 0 ? 0 : 1);
  const yTicks = ticks(y0, top, 4);
  const y1 = Math.max(top, yTicks.at(-1)!) + (top - y0) * 0.04;
  const inner = { w: width - pad.left - pad.right, h: height - pad.top - pad.bottom };
  const gaps = [...new Set(all.map((p) => p.x))].sort((a, b) => a - b);
  const nearest = gaps.reduce((m, v, i) => (i ? Math.min(m, v - gaps[i - 1]!) : m), x1 - x0);
  const slot = Math.max(2, Math.min(48, (nearest / (x1 - x0 + (bars ? nearest : 0))) * inner.w * 0.72));
  const inset = bars && props.kind !== 'text' ? slot : 4;
  const sx = (v: number) => pad.left + inset + ((v - x0) / (x1 - x0)) * (inner.w - 2 * inset);
  const sy = (v: number) => pad.top + (1 - (v - y0) / (y1 - y0)) * inner.h;
  const one = slot / Math.max(1, props.curves.length);
  const barX = (p: Point, i: number) => sx(p.x) - slot / 2 + i * one;

  const many = Math.max(2, Math.floor(inner.w / (props.kind === 'time' ? 110 : 84)));
  const zoned = props.zoned ?? true;
  const times = props.kind === 'time' ? timeTicks(x0, x1, many, zoned) : [];
  const zone = props.kind === 'time' && props.zoned && Number.isFinite(x1) ? zoneOf(x1) : '';
  const timeStep = times.length > 1 ? times[1]! - times[0]! : x1 - x0;
  const marks =
    props.kind === 'text'
      ? (props.labels ?? [])
          .map((l, i) => ({ v: i, text: l }))
          .filter((_, i) => i % Math.max(1, Math.ceil(words / many)) === 0)
      : (props.kind === 'time' ? times : ticks(x0, x1, many)).map((v) => ({
          v,
          text: props.kind === 'time' ? timeText(v, timeStep, x1 - x0, zoned) : axisText(count(v)),
        }));
  const room = Math.floor(inner.w / Math.max(1, Math.min(marks.length, many)) / 7);
  const cut = (s: string) => (s.length > room ? `${s.slice(0, Math.max(2, room - 1))}…` : s);

  const find = (clientX: number, clientY: number, box: DOMRect) => {
    const [mx, my] = [clientX - box.left, clientY - box.top];
    let best: { p: Point; curve: number } | null = null;
    let near = Number.POSITIVE_INFINITY;
    for (const [curve, c] of props.curves.entries())
      for (const p of c.points) {
        const px = bars ? barX(p, curve) + one / 2 : sx(p.x);
        const d = Math.abs(px - mx) * 4 + Math.abs(sy(p.y) - my);
        if (d < near) [near, best] = [d, { p, curve }];
      }
    setAt(best);
  };
  const where = (p: Point) =>
    props.kind === 'text' ? p.label : props.kind === 'time' ? timeText(p.x, 0, 0, zoned, true) : plain(count(p.x));

  return (
    <section className="xy" aria-labelledby={titleId}>
      <div className="row between">
        <h2 className="h3" id={titleId}>
          {props.title}
        </h2>
        {props.note}
        {zone && <span className="note muted">times in {zone}</span>}
      </div>
      <div ref={ref} className="xy-plot">
        <svg
          width={width}
          height={height}
          role="img"
          aria-labelledby={titleId}
          onPointerMove={(e) => find(e.clientX, e.clientY, e.currentTarget.getBoundingClientRect())}
          onPointerLeave={() => setAt(null)}
        >
          {yTicks.map((v) => (
            <g key={v}>
              <line className="xy-grid" x1={pad.left} x2={width - pad.right} y1={sy(v)} y2={sy(v)} />
              <text className="xy-text" x={pad.left - 8} y={sy(v) + 4} textAnchor="end">
                {axisText(format(v))}
              </text>
            </g>
          ))}
          {marks.map((m, i) => (
            <text
              key={m.v}
              className="xy-text"
              x={Math.min(sx(m.v), width - 12)}
              y={height - 8}
              textAnchor={i === marks.length - 1 && sx(m.v) > width - 60 ? 'end' : 'middle'}
            >
              {cut(m.text)}
              <title>{m.text}</title>
            </text>
          ))}
          {props.curves.map((c, i) => (
            <g key={c.name} style={{ color: curveColor(i) }}>
              {props.shape === 'line' &&
                segments(c.points).map((part, k) =>
                  part.length > 1 ? (
                    <polyline key={k} className="xy-line" points={part.map((p) => `${sx(p.x)},${sy(p.y)}`).join(' ')} />
                  ) : (
                    // A point between two gaps has no line.
                    c.points.length > maxDots && (
                      <circle key={k} className="xy-dot" cx={sx(part[0]!.x)} cy={sy(part[0]!.y)} r={2.5} />
                    )
                  ),
                )}
              {bars &&
                c.points.map((p, k) => (
                  <rect
                    key={k}
                    className={p.bad ? 'xy-bar bad' : 'xy-bar'}
                    x={barX(p, i)}
                    width={Math.max(1, one - 1)}
                    y={Math.min(sy(p.y), sy(0) - (p.bad && p.y === 0 ? 4 : 0))}
                    height={Math.max(p.bad ? 4 : 1, Math.abs(sy(0) - sy(p.y)))}
                  />
                ))}
              {(props.shape === 'points' || (props.shape === 'line' && c.points.length <= maxDots)) &&
                c.points.map((p, k) => <circle key={k} className="xy-dot" cx={sx(p.x)} cy={sy(p.y)} r={2.5} />)}
            </g>
          ))}
          {at && !bars && (
            <circle className="xy-at" cx={sx(at.p.x)} cy={sy(at.p.y)} r={5} style={{ color: curveColor(at.curve) }} />
          )}
        </svg>
        {at && (
          <div
            className="chart-tip xy-tip"
            style={{
              display: 'block',
              top: Math.max(0, sy(at.p.y) - 20),
              ...(sx(at.p.x) > width / 2 ? { right: width - sx(at.p.x) + 12 } : { left: sx(at.p.x) + 12 }),
            }}
          >
            <strong>{where(at.p)}</strong>
            <div>
              <i style={{ background: curveColor(at.curve) }} />
              <span>{props.curves[at.curve]?.name}</span>
              <b>{plain(format(at.p.y))}</b>
            </div>
            {props.more && <p>{props.more(at.p)}</p>}
          </div>
        )}
      </div>
      {props.curves.length > 1 && (
        <ul className="xy-legend">
          {props.curves.map((c, i) => (
            <li key={c.name}>
              <i style={{ background: curveColor(i) }} /> {c.name}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
