import type { Figures, Summary } from '../api/types';
import { type Quantity, rate } from '../design/format';

/** noRate is a missing rate with its reason. */
export const noRate: Quantity = {
  value: '–',
  unit: '',
  exact: 'No rate: the record of these operations is lost.',
};

/** rateOf returns noRate when the record is lost. */
export function rateOf(
  f: Pick<Figures, 'record_partial'> | null | undefined,
  perSecond: number | null | undefined,
): Quantity {
  return f?.record_partial && (perSecond === null || perSecond === undefined) ? noRate : rate(perSecond);
}

/** throughput is the run's own rate. */
export const throughput = (s: Pick<Summary, 'record_partial' | 'qps'> | null | undefined): Quantity =>
  rateOf(s, s?.qps);
