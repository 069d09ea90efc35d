import type { Figures, Summary } from '../api/types';
import { type Quantity, rate } from '../design/format';

/** A rate that is none, with the reason. */
export const norate: Quantity = {
  value: '–',
  unit: '',
  exact: 'No rate: all of the record of these operations is lost, so how long they took together is not known.',
};

/** A rate of figures whose record may be lost: then there is none, and it says why. */
export function rateOf(
  f: Pick<Figures, 'covered_seconds'> | null | undefined,
  perSecond: number | null | undefined,
): Quantity {
  return f?.covered_seconds === 0 ? norate : rate(perSecond);
}

/** The same of a run's own throughput. */
export const throughput = (s: Pick<Summary, 'covered_seconds' | 'qps'> | null | undefined): Quantity =>
  rateOf(s, s?.qps);
