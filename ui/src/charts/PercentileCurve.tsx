import { useEffect, useMemo, useRef, useState } from 'react';
import type { HistogramBucket, LatencyMs } from '../api/types';
import { latency, plain } from '../design/format';
import { logTicks } from './Distribution';
import { at, type Mark, nines, percentileCurve, shareAt, shareText, shareTicks } from './percentiles';
import { axisText } from './plot';
import { apart, roundTicks } from './ticks';

export interface Curved {
  /** Names the curve where there are several. */
  label?: string;
  /** A token; that of P99 without one. */
  color?: string;
  dash?: string;
  buckets: HistogramBucket[];
  latency: LatencyMs;
}

/** The latency at each percentile, on an axis of nines, as HdrHistogram draws it; of one run, or of several. */
export function PercentileCurve({ of, log }: { of: Curved[]; log?: boolean }) {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [share, setShare] = useState<number | null>(null);
  const drawn = useMemo(
    () =>
      of
        .map((c) => ({ ...c, curve: percentileCurve(c.buckets, c.latency.min, c.latency.max) }))
        .filter((c) => c.curve.length > 1),
    [of],
  );
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const seen = new ResizeObserver(() => setWidth(Math.max(280, el.clientWidth)));
    seen.observe(el);
    return () => seen.disconnect();
  }, []);
  if (drawn.length === 0) return null;
  const height = 260;
  const pad = { left: 62, right: 30, top: 12, bottom: 28 };
  const last = Math.max(...drawn.map((d) => d.curve.at(-1)!.share));
  const most = Math.max(...drawn.map((d) => d.latency.max));
  const least = Math.max(1e-4, Math.min(...drawn.map((d) => d.curve[0]!.ms)));
  const ticks = log ? logTicks(least, most) : roundTicks(most, 5);
  const x = (s: number) => pad.left + (nines(s) / nines(last)) * (width - pad.left - pad.right);
  const up = (ms: number) =>
    log ? Math.log(Math.max(ms, least) / least) / Math.log(most / least || 2) : ms / ticks.at(-1)!;
  const y = (ms: number) => pad.top + (1 - up(ms)) * (height - pad.top - pad.bottom);
  const shares = shareTicks(last);
  const read = (curve: Mark[], s: number) => (s > curve.at(-1)!.share ? null : at(curve, s));
  const named = drawn.map((d) => {
    const known = shares.filter((s) => s <= d.curve.at(-1)!.share + 1e-12);
    const figures = known.map((s) => `${shareText(s)}: ${plain(latency(at(d.curve, s)))}`);
    return `${d.label ? `${d.label}: ` : ''}${figures.join(', ')}, slowest: ${plain(latency(d.latency.max))}.`;
  });
  const move = (e: React.PointerEvent<SVGSVGElement>) => {
    const box = e.currentTarget.getBoundingClientRect();
    const px = (e.clientX - box.left) * (width / box.width) - pad.left;
    setShare(shareAt(Math.min(1, Math.max(0, px / (width - pad.left - pad.right))) * nines(last)));
  };
  const label = apart(x, 40);
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
                  cy={y(at(d.curve, s))}
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
                return `${d.label ? `${d.label} ` : ''}${ms === null ? 'not known' : plain(latency(ms))}`;
              })
              .join(', ') +
            '.'
          : drawn.length > 1
            ? 'A curve ends where its single operations are told apart: the last point is the slowest one.'
            : `The curve ends where single operations are told apart: the slowest took ${plain(latency(most))}.`}
      </p>
    </div>
  );
}
