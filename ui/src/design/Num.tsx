import type { Quantity } from './format';

/** Draws a quantity: the unit smaller and lighter, the exact figure on hover. */
export function Num({ q }: { q: Quantity }) {
  return (
    <span className="quantity" title={q.exact}>
      {q.value}
      {q.unit && <span className="unit">{q.unit}</span>}
    </span>
  );
}
