import { useEffect, useMemo, useRef, useState } from 'react';
import type { HistogramBucket, LatencyMs } from '../api/types';
import { latency, plain } from '../design/format';
import { at, nines, percentileCurve, shareText, shareTicks } from './percentiles';
import { axisText } from './plot';
import { roundTicks } from './ticks';

/** The latency at each percentile, on an axis of nines, as HdrHistogram draws it. */
export function PercentileCurve({ buckets, latency: l }: { buckets: HistogramBucket[]; latency: LatencyMs }) {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const curve = useMemo(() => percentileCurve(buckets, l.min, l.max), [buckets, l.min, l.max]);
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const seen = new ResizeObserver(() => setWidth(Math.max(280, el.clientWidth)));
    seen.observe(el);
    return () => seen.disconnect();
  }, []);
  if (curve.length < 2) return null;
  const height = 260;
  const pad = { left: 62, right: 30, top: 12, bottom: 28 };
  const last = curve.at(-1)!.share;
  const ticks = roundTicks(l.max, 5);
  const x = (share: number) => pad.left + (nines(share) / nines(last)) * (width - pad.left - pad.right);
  const y = (ms: number) => pad.top + (1 - ms / ticks.at(-1)!) * (height - pad.top - pad.bottom);
  const shares = shareTicks(last);
  const named = shares.map((s) => `${shareText(s)}: ${plain(latency(at(curve, s)))}`).join(', ');
  return (
    <div ref={host}>
      <svg
        className="dist curve"
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`Latency at each percentile. ${named}, slowest: ${plain(latency(l.max))}.`}
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
            <text x={x(s)} y={height - 8} textAnchor="middle">
              {shareText(s)}
            </text>
          </g>
        ))}
        <polyline className="line" points={curve.map((m) => `${x(m.share)},${y(m.ms)}`).join(' ')} />
        {shares.map((s) => (
          <circle key={s} className="at" cx={x(s)} cy={y(at(curve, s))} r="4">
            <title>{`${shareText(s)} of the operations took at most ${plain(latency(at(curve, s)))}`}</title>
          </circle>
        ))}
      </svg>
      <p className="muted dist-note">
        The curve ends where single operations are told apart: the slowest took {plain(latency(l.max))}.
      </p>
    </div>
  );
}
