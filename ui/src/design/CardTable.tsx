import type { ReactNode } from 'react';

export interface CardColumn<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** Tooltip of a cell. */
  title?: (row: T) => string | undefined;
  num?: boolean;
  /** How a cell looks on a phone, which has no header: with its header, alone, or hidden. */
  phone?: 'named' | 'alone' | 'out';
}

/** CardTable is a short list with actions: a table, and on a phone a stack of cards. */
export function CardTable<T>(props: {
  label: string;
  rows: T[];
  id: (row: T) => string;
  /** The first column identifies the row. */
  columns: CardColumn<T>[];
  acts: (row: T) => ReactNode;
  dense?: boolean;
}) {
  const { columns } = props;
  const look = (c: CardColumn<T>) => [c.num ? 'num' : '', c.phone === 'out' ? 'hide-phone' : ''].join(' ').trim();
  return (
    <div className="table-wrap" tabIndex={0} role="group" aria-label={`${props.label}, scrollable`}>
      <table className={`table cards listed${props.dense ? ' dense' : ''}`}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.head} className={look(c) || undefined}>
                {c.head}
              </th>
            ))}
            <th>
              <span className="sr">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={props.id(row)}>
              {columns.map((c, i) => (
                <td
                  key={c.head}
                  className={look(c) || undefined}
                  title={c.title?.(row)}
                  data-label={i > 0 && (c.phone ?? 'named') === 'named' ? c.head : undefined}
                >
                  {c.cell(row)}
                </td>
              ))}
              <td className="num act">{props.acts(row)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
