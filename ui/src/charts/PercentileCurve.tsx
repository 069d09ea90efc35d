import { useEffect, useMemo, useRef, useState } from 'react';
import type { HistogramBucket, LatencyMs } from '../api/types';
import { latency, plain } from '../design/format';
import { logTicks } from './Distribution';
import { type CurvePoint, latencyAt, nines, percentileCurve, shareAt, shareText, shareTicks } from './percentiles';
import { axisText } from './plot';
import { labelFilter, roundTicks } from './ticks';

interface CurveInput {
  /** Label of the curve, when there are several. */
  label?: string;
  /** Colour token; that of P99 by default. */
  color?: string;
  dash?: string;
  buckets: HistogramBucket[];
  latency: LatencyMs;
}

/**
 * PercentileCurve draws the latency at each percentile on an axis of nines, like HdrHistogram, for one or several runs.
 */
export function PercentileCurve({ of, log }: { of: CurveInput[]; log?: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [share, setShare] = useState<number | null>(null);
  const drawn = useMemo(
    () => of.map((c) => ({ ...c, curve: percentileCurve(c.buckets, c.latency) })).filter((c) => c.curve.length > 1),
    [of],
  );
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const resizeObserver = new ResizeObserver(() => setWidth(Math.max(280, el.clientWidth)));
    resizeObserver.observe(el);
    return () => resizeObserver.disconnect();
  }, []);
  if (drawn.length === 0) return null;
  const height = 260;
  const pad = { left: 62, right: 30, top: 12, bottom: 28 };
  const last = Math.max(...drawn.map((d) => d.curve.at(-1)!.share));
  const maxLatency = Math.max(...drawn.map((d) => d.latency.max));
  const minLatency = Math.max(1e-4, Math.min(...drawn.map((d) => d.curve[0]!.ms)));
  const ticks = log ? logTicks(minLatency, maxLatency) : roundTicks(maxLatency, 5);
  const x = (s: number) => pad.left + (nines(s) / nines(last)) * (width - pad.left - pad.right);
  const up = (ms: number) =>
    log ? Math.log(Math.max(ms, minLatency) / minLatency) / Math.log(maxLatency / minLatency || 2) : ms / ticks.at(-1)!;
  const y = (ms: number) => pad.top + (1 - up(ms)) * (height - pad.top - pad.bottom);
  const shares = shareTicks(last);
  const read = (curve: CurvePoint[], s: number) => (s > curve.at(-1)!.share ? null : latencyAt(curve, s));
  const named = drawn.map((d) => {
    const known = shares.filter((s) => s <= d.curve.at(-1)!.share + 1e-12);
    const figures = known.map((s) => `${shareText(s)}: ${plain(latency(latencyAt(d.curve, s)))}`);
    return `${d.label ? `${d.label}: ` : ''}${figures.join(', ')}, slowest: ${plain(latency(d.latency.max))}.`;
  });
  const move = (e: React.PointerEvent<SVGSVGElement>) => {
    const box = e.currentTarget.getBoundingClientRect();
    const px = (e.clientX - box.left) * (width / box.width) - pad.left;
    setShare(shareAt(Math.min(1, Math.max(0, px / (width - pad.left - pad.right))) * nines(last)));
  };
  const label = labelFilter(x, 40);
  return (
    <div ref={host}>
      <svg
        className="dist curve"
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`Latency at each percentile. ${named.join(' ')}`}
        onPointerMove={move}
        onPointerLeave={() => setShare(null)}
      >
        {ticks.map((v) => (
          <g key={v}>
            <line className="grid" x1={pad.left} x2={width - pad.right} y1={y(v)} y2={y(v)} />
            <text x={pad.left - 8} y={y(v) + 4} textAnchor="end">
              {axisText(latency(v))}
            </text>
          </g>
        ))}
        {shares.map((s) => (
          <g key={s}>
            <line className="grid" x1={x(s)} x2={x(s)} y1={pad.top} y2={height - pad.bottom} />
            {label(s) && (
              <text x={x(s)} y={height - 8} textAnchor="middle">
                {shareText(s)}
              </text>
            )}
          </g>
        ))}
        {share !== null && <line className="mark" x1={x(share)} x2={x(share)} y1={pad.top} y2={height - pad.bottom} />}
        {drawn.map((d, i) => (
          <g key={d.label ?? i}>
            <polyline
              className="line"
              style={{ stroke: `var(${d.color ?? '--p99'})` }}
              strokeDasharray={d.dash}
              points={d.curve.map((m) => `${x(m.share)},${y(m.ms)}`).join(' ')}
            />
            {shares
              .filter((s) => s <= d.curve.at(-1)!.share + 1e-12)
              .map((s) => (
                <circle
                  key={s}
                  style={{ fill: `var(${d.color ?? '--p95'})` }}
                  cx={x(s)}
                  cy={y(latencyAt(d.curve, s))}
                  r={drawn.length > 1 ? 3 : 4}
                />
              ))}
          </g>
        ))}
      </svg>
      <p className="muted dist-note">
        {share !== null
          ? `${shareText(share, 1)} of the operations took at most ` +
            drawn
              .map((d) => {
                const ms = read(d.curve, share);
                return `${d.label ? `${d.label} ` : ''}${ms === null ? 'unknown' : plain(latency(ms))}`;
              })
              .join(', ') +
            '.'
          : drawn.length > 1
            ? 'The last point of a curve is its slowest operation. '
            : `The slowest operation took ${plain(latency(maxLatency))}. `}
        {share === null && 'P50, P90, P95, P99 and P99.9 are exact. Values between them are up to 10 % too high.'}
      </p>
    </div>
  );
}
