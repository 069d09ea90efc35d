import { useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { axisText } from '../charts/plot';
import { roundTicks } from '../charts/ticks';
import { difference } from '../compare/model';
import { dateTime, plain, type Quantity } from '../design/format';
import type { Dot } from './model';

export type Format = (n: number | null | undefined) => Quantity;

/** DotChart draws run values over time, oldest first; a click opens the run. */
export function DotChart({ dots: list, label, format }: { dots: Dot[]; label: string; format: Format }) {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [, navigate] = useLocation();
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const resizeObserver = new ResizeObserver(() => setWidth(Math.max(240, el.clientWidth)));
    resizeObserver.observe(el);
    return () => resizeObserver.disconnect();
  }, []);
  const height = 220;
  const pad = { left: 62, right: 30, top: 22, bottom: 26 };
  const ticks = roundTicks(Math.max(0, ...list.map((d) => d.value)), 5);
  const top = ticks.at(-1)!;
  const inner = width - pad.left - pad.right;
  const x = (i: number) => pad.left + (list.length > 1 ? 30 + (i / (list.length - 1)) * (inner - 60) : inner / 2);
  const y = (v: number) => pad.top + (1 - v / top) * (height - pad.top - pad.bottom);
  const base = list.find((d) => d.state === 'baseline');
  const ends = list.length > 1 ? [0, list.length - 1] : list.map((_, i) => i);
  return (
    <div ref={host}>
      <svg
        className="drift-picture"
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`${label} of ${list.length} runs, oldest first; the table below has the figures.`}
      >
        {ticks.map((v) => (
          <g key={v}>
            <line className="grid" x1={pad.left} x2={width - pad.right} y1={y(v)} y2={y(v)} />
            <text x={pad.left - 8} y={y(v) + 4} textAnchor="end">
              {axisText(format(v))}
            </text>
          </g>
        ))}
        {ends.map((i) => (
          <text key={i} x={x(i)} y={height - 8} textAnchor="middle">
            {dateTime(list[i]!.run.start_time).replace(/(:\d\d):\d\d.*$/, '$1')}
          </text>
        ))}
        <polyline className="way" points={list.map((d, i) => `${x(i)},${y(d.value)}`).join(' ')} />
        {base && <line className="base" x1={pad.left} x2={width - pad.right} y1={y(base.value)} y2={y(base.value)} />}
        {list.map((d, i) => (
          <g
            key={d.run.run_id}
            className={`dot ${d.state}`}
            transform={`translate(${x(i)} ${y(d.value)})`}
            onClick={() => navigate(`/runs/${d.run.run_id}`)}
          >
            <title>{dotLabel(d, label, format)}</title>
            <circle className="reach" r="12" />
            <Shape of={d.state} />
            {(d.state === 'worse' || d.state === 'baseline') && (
              <text className="word" y="-9" textAnchor="middle">
                {d.state}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function dotLabel(d: Dot, label: string, format: Format): string {
  const change = d.metric ? `, ${difference(d.metric)} against the baseline` : '';
  return `${d.run.test_name}, ${dateTime(d.run.start_time)}: ${label} ${plain(format(d.value))}${change}`;
}

function Shape({ of }: { of: Dot['state'] }) {
  if (of === 'worse') return <path className="shape" d="M-5-5 5 5M5-5-5 5" />;
  if (of === 'baseline') return <rect className="shape" x="-5" y="-5" width="10" height="10" />;
  if (of === 'better') return <path className="shape" d="M0-6 5.500 4h-11z" />;
  return <circle className="shape" r="4" />;
}

const key = [
  ['baseline', 'baseline'],
  ['worse', 'worse'],
  ['better', 'better'],
  ['same', 'no difference'],
  ['unclear', 'unclear, or not compared'],
] as const;

export function DotLegend() {
  return (
    <ul className="drift-key" aria-label="Shapes">
      {key.map(([of, words]) => (
        <li key={of}>
          <svg className="drift-picture" width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">
            <g className={`dot ${of}`}>
              <Shape of={of} />
            </g>
          </svg>
          {words}
        </li>
      ))}
    </ul>
  );
}
