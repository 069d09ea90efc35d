import { useMemo, useState } from 'react';
import type { QueryColumn } from '../api/types';
import { type Cell, cellText, columnKind } from './model';

const rowHeight = 28;
const overscan = 12;

/** Grid shows rows; only visible ones are rendered. */
export function Grid(props: { columns: QueryColumn[]; rows: Cell[][]; label: string; height?: number }) {
  const { columns, rows } = props;
  const maxHeight = props.height ?? 460;
  const [top, setTop] = useState(0);
  const widths = useMemo(
    () =>
      columns.map((c, i) => {
        const longest = rows.slice(0, 200).reduce((n, r) => Math.max(n, cellText(r[i]).length), c.name.length + 2);
        return Math.min(44, Math.max(7, longest)) * 7.6 + 26;
      }),
    [columns, rows],
  );
  const from = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const to = Math.min(rows.length, Math.ceil((top + maxHeight) / rowHeight) + overscan);
  const gap = (n: number, key: string) =>
    n > 0 && (
      <tr key={key} aria-hidden="true" className="gap">
        <td colSpan={columns.length + 2} style={{ height: n * rowHeight }} />
      </tr>
    );
  return (
    <div
      className="grid-rows"
      style={{ maxHeight: maxHeight }}
      tabIndex={0}
      role="group"
      aria-label={`${props.label}, scrollable`}
      onScroll={(e) => setTop(e.currentTarget.scrollTop)}
    >
      <table aria-rowcount={rows.length + 1} style={{ width: widths.reduce((a, b) => a + b, 54) }}>
        <colgroup>
          <col style={{ width: 54 }} />
          {widths.map((w, i) => (
            <col key={i} style={{ width: w }} />
          ))}
          <col />
        </colgroup>
        <thead>
          <tr>
            <th className="num">
              <span className="sr">Row</span>
            </th>
            {columns.map((c, i) => (
              <th key={i} className={columnKind(c) === 'number' ? 'num' : ''} title={`${c.name} · ${c.type}`}>
                {c.name}
              </th>
            ))}
            <th aria-hidden="true" />
          </tr>
        </thead>
        <tbody>
          {gap(from, 'above')}
          {rows.slice(from, to).map((r, i) => (
            <tr key={from + i} aria-rowindex={from + i + 2}>
              <td className="num muted">{from + i + 1}</td>
              {columns.map((c, k) => {
                const v = r[k];
                const text = cellText(v);
                return (
                  <td
                    key={k}
                    className={columnKind(c) === 'number' ? 'num' : ''}
                    title={text.length > 40 ? text : undefined}
                  >
                    {v === null || v === undefined ? <span className="null">null</span> : text}
                  </td>
                );
              })}
              <td aria-hidden="true" />
            </tr>
          ))}
          {gap(rows.length - to, 'below')}
        </tbody>
      </table>
    </div>
  );
}
