import { useMemo } from 'react';
import type { QueryColumn } from '../api/types';
import { Segments } from '../design/Controls';
import { Empty } from '../design/States';
import { type Cell, type ChartChoice, chartData, columnKind, omittedText, type Shape } from './model';
import { XYChart } from './XYChart';

const shapes: { value: Shape; label: string }[] = [
  { value: 'line', label: 'Lines' },
  { value: 'bars', label: 'Bars' },
  { value: 'points', label: 'Points' },
];

/** ResultChart draws a result with selectable axes. */
export function ResultChart(props: {
  columns: QueryColumn[];
  rows: Cell[][];
  choice: ChartChoice;
  onChange: (c: ChartChoice) => void;
}) {
  const { columns, rows, choice } = props;
  const drawn = useMemo(() => chartData(columns, rows, choice), [columns, rows, choice]);
  const select = (label: string, value: string, options: string[], set: (v: string) => void, none?: string) => (
    <label className="row note">
      {label}
      <select className="input small" value={value} onChange={(e) => set(e.target.value)}>
        {none !== undefined && <option value="">{none}</option>}
        {options.map((o) => (
          <option key={o}>{o}</option>
        ))}
      </select>
    </label>
  );
  const names = [...new Set(columns.map((c) => c.name))];
  const numbers = [...new Set(columns.filter((c) => columnKind(c) === 'number').map((c) => c.name))];
  const left = omittedText(drawn, rows.length);
  const title = `${choice.y} by ${choice.x}${choice.series ? `, for each ${choice.series}` : ''}`;
  return (
    <div className="body stack">
      <div className="toolbar">
        {select('x', choice.x, names, (x) => props.onChange({ ...choice, x }))}
        {select('y', choice.y, numbers, (y) => props.onChange({ ...choice, y }))}
        {select('series', choice.series, names, (series) => props.onChange({ ...choice, series }), 'none')}
        <Segments
          label="Shape"
          value={choice.shape}
          options={shapes}
          onChange={(shape) => props.onChange({ ...choice, shape })}
        />
      </div>
      {drawn.curves.length === 0 ? (
        <Empty tight title="Nothing to draw">
          No row has both {choice.x} and {choice.y}.
        </Empty>
      ) : (
        <XYChart
          title={title}
          curves={drawn.curves}
          kind={drawn.kind}
          labels={drawn.labels}
          shape={choice.shape}
          height={340}
          zoned={drawn.zoned}
          note={left && <span className="note muted">{left}</span>}
        />
      )}
    </div>
  );
}
