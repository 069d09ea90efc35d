import { useQuery } from '@tanstack/react-query';
import { useEffect, useId, useMemo, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api } from '../api/client';
import { useRuns } from '../api/queries';
import { useParam } from '../app/location';
import { axisText } from '../charts/plot';
import { roundTicks } from '../charts/ticks';
import { difference, interval } from '../compare/model';
import { Segments, Term } from '../design/Controls';
import { dateTime, plain, type Quantity } from '../design/format';
import { Num } from '../design/Num';
import { Empty, Load, Skeleton } from '../design/States';
import { Standing } from './Standing';
import { useBaseline, useManyAgainst } from './baseline';
import { asDrawn, type Dot, dots, drawn, figureOf, figures, headline, measured, shownRuns } from './model';
import './drift.css';

/** How a figure of a template's runs moved over time, beside that of its baseline. */
export function Drift({ template }: { template: string }) {
  const [param, setFigure] = useParam('figure', figures[0].value);
  const figure = figureOf(param);
  const runs = useRuns({ template_id: template, status: ['COMPLETED'], limit: 50 });
  const baseline = useBaseline(template);
  const base = baseline.data?.run_id ?? null;
  const old = base !== null && runs.data !== undefined && !runs.data.runs?.some((r) => r.run_id === base);
  const detail = useQuery({
    queryKey: ['run', base],
    queryFn: ({ signal }) => api.get('/api/runs/{id}', { path: { id: base! }, signal }),
    enabled: old,
  });
  const list = useMemo(() => {
    const newest = runs.data?.runs ?? [];
    return shownRuns(
      newest,
      newest.find((r) => r.run_id === base) ?? (old && detail.data ? asDrawn(detail.data) : null),
    );
  }, [runs.data, base, old, detail.data]);
  const ids = useMemo(() => list.map((r) => r.run_id), [list]);
  const against = useManyAgainst(base, ids);
  const shown = useMemo(
    () => dots(list, base, (base && against.data) || {}, figure.value),
    [list, base, against.data, figure],
  );
  const known = {
    data: runs.data && baseline.data !== undefined ? list : undefined,
    error: runs.error ?? baseline.error,
    isPending: runs.isPending || baseline.isPending,
    refetch: () => Promise.all([runs.refetch(), baseline.refetch()]),
  };
  const titleId = useId();
  const waits = base !== null && against.isPending && list.length > 1;
  return (
    <section className="panel drift" aria-labelledby={titleId}>
      <header>
        <h2 className="h3" id={titleId}>
          <Term
            tip={
              `The newest ${drawn} completed runs of the template. A run is worse than the baseline when it is so by ` +
              'more than 5 %, and by more than chance explains.'
            }
          >
            Drift over time
          </Term>
        </h2>
        <div className="end">
          <Segments label="Figure" value={figure.value} options={figures} onChange={setFigure} />
        </div>
      </header>
      <Load
        from={known}
        what="The runs of the template could not be read."
        skeleton={
          <div className="body" aria-busy="true">
            <Skeleton height={220} />
          </div>
        }
        empty={(d) =>
          !d.some(measured) && (
            <Empty tight title="No run to draw yet">
              Each completed run of the template is a point here.
            </Empty>
          )
        }
      >
        {() => (
          <div className="body stack tightly">
            <p className="muted" role="status">
              {waits ? 'The runs are being compared with the baseline.' : headline(shown, figure.label)}
            </p>
            <Picture dots={shown} label={figure.label} format={figure.format} />
            <Key />
            <details>
              <summary>The runs as a table</summary>
              <Rows dots={shown} base={base} label={figure.label} format={figure.format} />
            </details>
          </div>
        )}
      </Load>
    </section>
  );
}

type Format = (n: number | null | undefined) => Quantity;

/** Values of runs over time, oldest first; a press on one opens its run. */
export function Picture({ dots: list, label, format }: { dots: Dot[]; label: string; format: Format }) {
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [, navigate] = useLocation();
  useEffect(() => {
    const el = host.current;
    if (!el) return;
    const seen = new ResizeObserver(() => setWidth(Math.max(240, el.clientWidth)));
    seen.observe(el);
    return () => seen.disconnect();
  }, []);
  const height = 220;
  const pad = { left: 62, right: 30, top: 22, bottom: 26 };
  const ticks = roundTicks(Math.max(0, ...list.map((d) => d.value)), 5);
  const top = ticks.at(-1)!;
  const inner = width - pad.left - pad.right;
  const x = (i: number) => pad.left + (list.length > 1 ? 30 + (i / (list.length - 1)) * (inner - 60) : inner / 2);
  const y = (v: number) => pad.top + (1 - v / top) * (height - pad.top - pad.bottom);
  const base = list.find((d) => d.standing === 'baseline');
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
            className={`dot ${d.standing}`}
            transform={`translate(${x(i)} ${y(d.value)})`}
            onClick={() => navigate(`/runs/${d.run.run_id}`)}
          >
            <title>{told(d, label, format)}</title>
            <circle className="reach" r="12" />
            <Shape of={d.standing} />
            {(d.standing === 'worse' || d.standing === 'baseline') && (
              <text className="word" y="-9" textAnchor="middle">
                {d.standing}
              </text>
            )}
          </g>
        ))}
      </svg>
    </div>
  );
}

function told(d: Dot, label: string, format: Format): string {
  const change = d.metric ? `, ${difference(d.metric)} against the baseline` : '';
  return `${d.run.test_name}, ${dateTime(d.run.start_time)}: ${label} ${plain(format(d.value))}${change}`;
}

function Shape({ of }: { of: Dot['standing'] }) {
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

function Key() {
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

function Rows(props: { dots: Dot[]; base: string | null; label: string; format: Format }) {
  return (
    <div className="table-wrap" tabIndex={0} role="group" aria-label="Runs over time, a table that scrolls">
      <table className="table dense">
        <thead>
          <tr>
            <th>Run</th>
            <th>Started</th>
            <th className="num">{props.label}</th>
            <th className="num">Difference</th>
            <th className="num">Interval</th>
            <th>Against the baseline</th>
          </tr>
        </thead>
        <tbody>
          {props.dots.toReversed().map((d) => (
            <tr key={d.run.run_id}>
              <td>
                <Link href={`/runs/${d.run.run_id}`}>{d.run.test_name}</Link>
              </td>
              <td className="nowrap">{dateTime(d.run.start_time)}</td>
              <td className="num">
                <Num q={props.format(d.value)} />
              </td>
              <td className="num nowrap">{d.metric ? difference(d.metric) : '–'}</td>
              <td className="num nowrap">{(d.metric && interval(d.metric)) || '–'}</td>
              <td className="nowrap">
                <Standing of={d.standing} reason={d.metric?.reason} />{' '}
                {props.base && d.standing !== 'baseline' && (
                  <Link href={`/compare?runs=${props.base},${d.run.run_id}`} aria-label={`Compare ${d.run.test_name}`}>
                    Compare
                  </Link>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
