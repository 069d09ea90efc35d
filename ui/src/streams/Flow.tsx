import { Mark } from '../design/icons';
import type { FlowDiagram } from './model';

const box = { w: 208, gapX: 92, gapY: 16, pad: 2, line: 17, head: 26 };

/** Flow draws boxes and arrows from left to right. */
export function Flow({ picture, label }: { picture: FlowDiagram; label: string }) {
  const { boxes, arrows } = picture;
  const high = (n: number) => box.head + n * box.line + 8;
  // Boxes of a row share the largest height.
  const rows: number[] = [];
  for (const b of boxes) rows[b.row] = Math.max(rows[b.row] ?? 0, high(b.lines.length));
  const tops = rows.map((_, i) => box.pad + rows.slice(0, i).reduce((y, h) => y + h + box.gapY, 0));
  const at = new Map(
    boxes.map((b) => [
      b.id,
      { x: box.pad + b.column * (box.w + box.gapX), y: tops[b.row]!, h: high(b.lines.length), b },
    ]),
  );
  const width = Math.max(0, ...[...at.values()].map((p) => p.x + box.w)) + box.pad;
  const height = Math.max(0, ...[...at.values()].map((p) => p.y + p.h)) + box.pad;
  return (
    <div className="flow" tabIndex={0} role="group" aria-label={`${label}, scrollable`}>
      <div style={{ width, height }}>
        <svg width={width} height={height} aria-hidden="true">
          {arrows.map((a) => {
            const [from, to] = [at.get(a.from), at.get(a.to)];
            if (!from || !to) return null;
            const [x1, y1] = [from.x + box.w, from.y + from.h / 2];
            const [x2, y2] = [to.x - 5, to.y + to.h / 2];
            const half = (x2 - x1) / 2;
            const line = y1 === y2 ? `L${x2} ${y2}` : `C${x1 + half} ${y1} ${x2 - half} ${y2} ${x2} ${y2}`;
            return (
              <g key={`${a.from} ${a.to}`}>
                <path d={`M${x1} ${y1}${line}m-5-4 5 4-5 4`} />
                {a.label && (
                  <text x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 7} textAnchor="middle">
                    {a.label}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
        <ul>
          {boxes.map((b) => {
            const p = at.get(b.id)!;
            const to = arrows.filter((a) => a.from === b.id);
            return (
              <li key={b.id} style={{ left: p.x, top: p.y, width: box.w, height: p.h }} title={b.problem || undefined}>
                <strong>
                  {b.shape && (
                    <span className={`mark ${b.tone ?? ''}`}>
                      <Mark shape={b.shape} size={9} />
                    </span>
                  )}
                  <span className="clip" title={b.title}>
                    {b.title}
                  </span>
                </strong>
                {b.lines.map((l, i) => (
                  <span key={i} className="clip" title={l}>
                    {l}
                  </span>
                ))}
                {to.map((a) => (
                  <span key={a.to} className="sr">
                    gives {a.label ?? 'rows'} to {at.get(a.to)?.b.title}
                  </span>
                ))}
              </li>
            );
          })}
        </ul>
      </div>
    </div>
  );
}
