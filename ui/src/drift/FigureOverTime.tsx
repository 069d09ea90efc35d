import { type ReactNode, useId } from 'react';
import { Link } from 'wouter';
import { dateTime } from '../design/format';
import { Num } from '../design/Num';
import { Load, Skeleton } from '../design/States';
import type { Dot } from './model';
import { DotChart, type Format } from './DotChart';
import './drift.css';

interface More {
  head: string;
  num?: boolean;
  cell: (d: Dot) => ReactNode;
}

/** FigureOverTime shows one figure of several runs: headline, chart and table, newest first. */
export function FigureOverTime(props: {
  title: ReactNode;
  controls: ReactNode;
  from: { data: Dot[] | undefined; error: unknown; isPending: boolean; refetch: () => unknown };
  what: string;
  empty: (list: Dot[]) => ReactNode;
  /** The chart's headline. */
  headline: (list: Dot[]) => string;
  label: string;
  format: Format;
  /** Explains the point shapes, when they differ. */
  legend?: ReactNode;
  table: string;
  more?: More[];
}) {
  const id = useId();
  const { label, format, more = [] } = props;
  return (
    <section className="panel drift" aria-labelledby={id}>
      <header>
        <h2 className="h3" id={id}>
          {props.title}
        </h2>
        <div className="end row">{props.controls}</div>
      </header>
      <Load
        from={props.from}
        what={props.what}
        skeleton={
          <div className="body" aria-busy="true">
            <Skeleton height={220} />
          </div>
        }
        empty={props.empty}
      >
        {(list) => (
          <div className="body stack tightly">
            <p className="muted" role="status">
              {props.headline(list)}
            </p>
            <DotChart dots={list} label={label} format={format} />
            {props.legend}
            <details>
              <summary>{props.table}</summary>
              <div className="table-wrap" tabIndex={0} role="group" aria-label="Runs over time, scrollable">
                <table className="table dense">
                  <thead>
                    <tr>
                      <th>Run</th>
                      <th>Started</th>
                      <th className="num">{label}</th>
                      {more.map((m) => (
                        <th key={m.head} className={m.num ? 'num' : undefined}>
                          {m.head}
                        </th>
                      ))}
                    </tr>
                  </thead>
                  <tbody>
                    {list.toReversed().map((d) => (
                      <tr key={d.run.run_id}>
                        <td>
                          <Link href={`/runs/${d.run.run_id}`}>{d.run.test_name}</Link>
                        </td>
                        <td className="nowrap">{dateTime(d.run.start_time)}</td>
                        <td className="num">
                          <Num q={format(d.value)} />
                        </td>
                        {more.map((m) => (
                          <td key={m.head} className={m.num ? 'num nowrap' : 'nowrap'}>
                            {m.cell(d)}
                          </td>
                        ))}
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </details>
          </div>
        )}
      </Load>
    </section>
  );
}
