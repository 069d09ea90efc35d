import { useEffect, useRef, useState } from 'react';
import type { HistogramBucket, LatencyMs } from '../api/types';
import { count, exact, latency, plain } from '../design/format';
import { coarsen } from './histogram';
import { labelFilter, roundTicks } from './ticks';

/** logTicks are 1, 2 and 5 of each decade when there are few, else whole decades. */
export function logTicks(from: number, to: number): number[] {
  const all: number[] = [];
  for (let d = Math.floor(Math.log10(from)); d <= Math.ceil(Math.log10(to)); d++)
    for (const m of [1, 2, 5]) {
      const v = m * 10 ** d;
      if (v >= from && v <= to) all.push(v);
    }
  return all.length <= 12 ? all : all.filter((v) => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9);
}

/** Distribution draws the latency distribution of the measurement on a logarithmic axis, with percentiles. */
export function Distribution(props: { buckets: HistogramBucket[]; latency: LatencyMs | null; logCount: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [hover, setHover] = useState<number | null>(null);
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const resizeObserver = new ResizeObserver(() => setWidth(Math.max(280, el.clientWidth)));
    resizeObserver.observe(el);
    return () => resizeObserver.disconnect();
  }, []);

  const bars = coarsen(props.buckets, Math.max(24, Math.floor(width / 9)));
  const height = 320;
  const pad = { left: 56, right: 16, top: 44, bottom: 28 };
  if (bars.length === 0) return null;
  const lo = bars[0]!.from;
  const hi = bars[bars.length - 1]!.to;
  const maxCount = Math.max(...bars.map((b) => b.count), 1);
  const total = bars.reduce((n, b) => n + b.count, 0);
  const innerW = width - pad.left - pad.right;
  const innerH = height - pad.top - pad.bottom;
  const x = (ms: number) =>
    pad.left + (Math.log(Math.max(lo, Math.min(hi, ms)) / lo) / Math.log(hi / lo || 2)) * innerW;
  const share = (n: number) => (props.logCount ? Math.log10(n + 1) / Math.log10(maxCount + 1) : n / maxCount);
  const y = (n: number) => pad.top + innerH - share(n) * innerH;
  const yTicks = props.logCount
    ? logTicks(1, maxCount).filter((v) => Number.isInteger(Math.log10(v)))
    : roundTicks(maxCount, 5).filter((v) => v > 0 && v <= maxCount);
  const marks = props.latency
    ? (
        [
          ['P50', props.latency.p50],
          ['P95', props.latency.p95],
          ['P99', props.latency.p99],
          ['max', props.latency.max],
        ] as const
      ).filter(([, v]) => v > 0)
    : [];
  let below = 0;
  if (hover !== null) for (let i = 0; i <= hover; i++) below += bars[i]!.count;
  const on = hover === null ? null : bars[hover]!;
  // Overlapping labels move to a second line.
  let free = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  return (
    <div ref={host}>
      <svg
        className="dist"
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label="Distribution of latencies; the percentiles are in the tiles above."
        onPointerLeave={() => setHover(null)}
      >
        {yTicks.map((v) => (
          <g key={v}>
            <line className="grid" x1={pad.left} x2={width - pad.right} y1={y(v)} y2={y(v)} />
            <text x={pad.left - 8} y={y(v) + 4} textAnchor="end">
              {plain(count(Math.round(v)))}
            </text>
          </g>
        ))}
        {bars.map((b, i) => {
          const x0 = x(b.from);
          const w = Math.max(1, x(b.to) - x0 - 1);
          return (
            <g key={b.from} onPointerEnter={() => setHover(i)}>
              <rect x={x0} y={pad.top} width={w + 1} height={innerH} fill="transparent" />
              {b.count > 0 && (
                <rect
                  className={`bar${hover === i ? ' on' : ''}`}
                  x={x0}
                  y={Math.min(y(b.count), pad.top + innerH - 1)}
                  width={w}
                  height={Math.max(1, share(b.count) * innerH)}
                  rx="1"
                />
              )}
            </g>
          );
        })}
        <line className="grid" x1={pad.left} x2={width - pad.right} y1={pad.top + innerH} y2={pad.top + innerH} />
        {logTicks(lo, hi)
          .filter(labelFilter(x))
          .map((v) => (
            <text key={v} x={x(v)} y={height - 8} textAnchor="middle">
              {plain({ ...latency(v), value: String(Number(latency(v).value)) })}
            </text>
          ))}
        {marks.map(([name, v]) => {
          const px = x(v);
          const label = `${name} ${plain(latency(v))}`;
          const w = label.length * 6.4;
          const left = Math.min(px + 4, width - pad.right - w);
          const level = Math.max(
            0,
            free.findIndex((f) => left > f),
          );
          free = free.map((f, i) => (i === level ? left + w + 6 : f));
          return (
            <g key={name} pointerEvents="none">
              <line className="mark" x1={px} x2={px} y1={10 + level * 14} y2={pad.top + innerH} />
              <text className="mark-label" x={left} y={14 + level * 14}>
                {label}
              </text>
            </g>
          );
        })}
      </svg>
      <p className="muted dist-note">
        {on
          ? `${plain(latency(on.from))} – ${plain(latency(on.to))}: ${exact(on.count)} operations, ` +
            `${((on.count / total) * 100).toFixed(2)} %; ${((below / total) * 100).toFixed(2)} % were at ` +
            `most ${plain(latency(on.to))}.`
          : 'Point at a bar to see its figures.'}
      </p>
    </div>
  );
}
