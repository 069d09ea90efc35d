import type { Quantity } from './format';

/** Num shows a quantity with a smaller unit and the exact figure on hover. */
export function Num({ q }: { q: Quantity }) {
  return (
    <span className="quantity" title={q.exact}>
      {q.value}
      {q.unit && <span className="unit">{q.unit}</span>}
    </span>
  );
}
