import { useEffect, useRef, useState } from 'react';
import { logTicks } from '../charts/Distribution';
import { labelFilter } from '../charts/ticks';
import { latency, plain } from '../design/format';
import { color, letter, type Shape } from './model';

/** DistributionOverlay draws the latency distributions of several runs: share per bin, or cumulative share. */
export function DistributionOverlay(props: {
  shape: Shape;
  labels: string[];
  cumulative: boolean;
  hidden: (i: number) => boolean;
}) {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [at, setAt] = useState<number | null>(null);
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const resizeObserver = new ResizeObserver(() => setWidth(Math.max(280, el.clientWidth)));
    resizeObserver.observe(el);
    return () => resizeObserver.disconnect();
  }, []);
  const height = 280;
  const pad = { left: 52, right: 16, top: 12, bottom: 28 };
  const { bounds, shares } = props.shape;
  const lo = bounds[0]!;
  const hi = bounds[bounds.length - 1]!;
  const x = (ms: number) => pad.left + (Math.log(ms / lo) / Math.log(hi / lo || 2)) * (width - pad.left - pad.right);
  const paths = shares.map((s) => {
    if (!props.cumulative) return s;
    let sum = 0;
    return s.map((v) => {
      sum += v;
      return Math.min(1, sum);
    });
  });
  const top = props.cumulative ? 1 : Math.max(...paths.flat(), 1e-9) * 1.05;
  const y = (v: number) => height - pad.bottom - (v / top) * (height - pad.top - pad.bottom);
  const path = (s: number[]) =>
    props.cumulative
      ? `M${x(lo)},${y(0)}${s.map((v, i) => `L${x(bounds[i + 1]!)},${y(v)}`).join('')}`
      : s.map((v, i) => `${i ? 'L' : 'M'}${x(bounds[i]!)},${y(v)}L${x(bounds[i + 1]!)},${y(v)}`).join('');
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((f) => f * top);
  const move = (e: React.PointerEvent<SVGSVGElement>) => {
    const box = e.currentTarget.getBoundingClientRect();
    const ms =
      lo *
      Math.exp(
        (((e.clientX - box.left) * (width / box.width) - pad.left) / (width - pad.left - pad.right)) *
          Math.log(hi / lo),
      );
    const i = bounds.findIndex((b) => b > ms) - 1;
    setAt(i >= 0 ? i : null);
  };
  return (
    <div ref={host}>
      <svg
        className="dist overlay"
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label="Distributions of latencies of the compared runs; their percentiles are in the table above."
        onPointerMove={move}
        onPointerLeave={() => setAt(null)}
      >
        {ticks.map((v) => (
          <g key={v}>
            <line className="grid" x1={pad.left} x2={width - pad.right} y1={y(v)} y2={y(v)} />
            <text x={pad.left - 8} y={y(v) + 4} textAnchor="end">
              {Number((v * 100).toPrecision(2))} %
            </text>
          </g>
        ))}
        {logTicks(lo, hi)
          .filter(labelFilter(x))
          .map((v) => (
            <text key={v} x={x(v)} y={height - 8} textAnchor="middle">
              {plain({ ...latency(v), value: String(Number(latency(v).value)) })}
            </text>
          ))}
        {paths.map((s, i) =>
          props.hidden(i) || shares[i]!.every((v) => v === 0) ? null : (
            <path
              key={i}
              d={path(s)}
              style={{ stroke: `var(${color(i)})` }}
              strokeWidth={i === 0 ? 2.25 : 1.75}
              strokeDasharray={i >= 4 ? '6 3' : undefined}
            />
          ),
        )}
        {at !== null && (
          <line
            className="mark"
            x1={x(bounds[at + 1]!)}
            x2={x(bounds[at + 1]!)}
            y1={pad.top}
            y2={height - pad.bottom}
          />
        )}
      </svg>
      <p className="muted dist-note">
        {at === null
          ? 'Point at the chart to see its figures.'
          : (props.cumulative ? 'At most' : `${plain(latency(bounds[at]))} –`) +
            ` ${plain(latency(bounds[at + 1]))}: ` +
            paths
              .map((s, i) => (props.hidden(i) ? '' : `${letter(i)} ${((s[at] ?? 0) * 100).toFixed(1)} %`))
              .filter(Boolean)
              .join(', ') +
            '.'}
      </p>
    </div>
  );
}
