import { Link } from 'wouter';
import type { DerivedTable } from '../api/types';
import { Mark } from '../design/icons';
import { freshness, layers, tablePath } from './model';
import { freshnessLabels } from './Freshness';

const box = { w: 216, h: 38, gapX: 64, gapY: 14, pad: 12 };

/** Graph draws which table reads which, from left to right. */
export function Graph(props: { tables: DerivedTable[]; now: number; current?: string }) {
  const { nodes, via } = layers(props.tables);
  const at = new Map(nodes.map((n) => [n.name, n]));
  const left = (n: { level: number }) => box.pad + n.level * (box.w + box.gapX);
  const top = (n: { row: number }) => box.pad + n.row * (box.h + box.gapY);
  const width = Math.max(...nodes.map((n) => left(n) + box.w), 0) + box.pad;
  const places = [...nodes, ...[...via.values()].flat()];
  const height = Math.max(...places.map((n) => top(n) + box.h), 0) + box.pad;
  return (
    <div className="graph" tabIndex={0} role="group" aria-label="Dependencies of tables, scrollable">
      <div style={{ width, height, position: 'relative' }}>
        <svg width={width} height={height} aria-hidden="true">
          {props.tables.flatMap((t) =>
            t.sources.map((s) => {
              const [a, b] = [at.get(s), at.get(t.name)];
              if (!a || !b) return null;
              const [x1, y1] = [left(a) + box.w, top(a) + box.h / 2];
              const [x2, y2] = [left(b), top(b) + box.h / 2];
              // A polyline straight through the columns between.
              const stops = [
                { x: x1, y: y1 },
                ...(via.get(`${s} ${t.name}`) ?? []).flatMap((v) => {
                  const y = top(v) + box.h / 2;
                  return [
                    { x: left(v), y },
                    { x: left(v) + box.w, y },
                  ];
                }),
                { x: x2 - 5, y: y2 },
              ];
              const line = stops
                .slice(1)
                .map((b, i) => {
                  const a = stops[i]!;
                  const half = (b.x - a.x) / 2;
                  return a.y === b.y ? `L${b.x} ${b.y}` : `C${a.x + half} ${a.y} ${b.x - half} ${b.y} ${b.x} ${b.y}`;
                })
                .join('');
              const near = t.name === props.current || s === props.current;
              return (
                <path key={`${s} ${t.name}`} className={near ? 'near' : ''} d={`M${x1} ${y1}${line}m-5-4 5 4-5 4`} />
              );
            }),
          )}
        </svg>
        <ul>
          {props.tables.map((t) => {
            const n = at.get(t.name)!;
            const s = freshnessLabels[freshness(t, props.now)];
            const reads = t.sources.length ? `, reads ${t.sources.join(', ')}` : '';
            return (
              <li key={t.name} style={{ left: left(n), top: top(n), width: box.w, height: box.h }}>
                <Link
                  href={tablePath(t.name)}
                  className={t.name === props.current ? 'current' : ''}
                  aria-current={t.name === props.current ? 'page' : undefined}
                  title={`${t.name}: ${s.label}`}
                >
                  <span className={`mark ${s.tone}`}>
                    <Mark shape={s.shape} size={9} />
                  </span>
                  <span className="word">{t.name}</span>
                  <span className="sr">
                    {s.label}
                    {reads}
                  </span>
                </Link>
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}
