import type { Figures, Summary } from '../api/types';
import { type Quantity, rate } from '../design/format';

/** noRate is a missing rate with its reason. */
export const noRate: Quantity = {
  value: '–',
  unit: '',
  exact: 'No rate: all of the record of these operations is lost, so how long they took together is not known.',
};

/** rateOf returns noRate when the record is lost. */
export function rateOf(
  f: Pick<Figures, 'covered_seconds'> | null | undefined,
  perSecond: number | null | undefined,
): Quantity {
  return f?.covered_seconds === 0 ? noRate : rate(perSecond);
}

/** throughput is the run's own rate. */
export const throughput = (s: Pick<Summary, 'covered_seconds' | 'qps'> | null | undefined): Quantity =>
  rateOf(s, s?.qps);
