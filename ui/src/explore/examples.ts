import { emptyQuery, type ExploreQuery } from './address';

interface Example {
  question: string;
  q: string;
  more?: Partial<ExploreQuery>;
}

/** examples are queries by the question they answer. */
export const examples: Example[] = [
  {
    question: 'Throughput by statement',
    q: 'sum by (statement) (rate(loadstone_statement_operations_total[$__rate_interval]))',
    more: { view: 'stacked' },
  },
  {
    question: 'P99 by table type',
    q: 'histogram_quantile(0.99, sum by (table_type) (rate(loadstone_latency_seconds[$__rate_interval])))',
  },
  {
    question: 'Latency as a heat map',
    q: 'sum(rate(loadstone_latency_seconds[$__rate_interval]))',
    more: { view: 'heat' },
  },
  {
    question: 'Errors by class, in seconds with an error rate above 1 %',
    q:
      'sum by (error_class) (rate(loadstone_errors_total[$__rate_interval]))\n' +
      '  and on () sum(rate(loadstone_failed_operations_total[$__rate_interval]))\n' +
      '    > 0.01 * sum(rate(loadstone_operations_total[$__rate_interval]))',
  },
  {
    question: 'This run against the last ten',
    q: 'histogram_quantile(0.95, sum(rate(loadstone_latency_seconds[$__rate_interval])))',
    more: { over: 'runs' },
  },
  {
    question: 'The slowest run worker',
    q:
      'histogram_quantile(0.95, sum by (worker) (rate(loadstone_worker_latency_seconds[$__rate_interval])))\n' +
      '  / on () group_left () histogram_quantile(0.95, sum(rate(loadstone_worker_latency_seconds[$__rate_interval])))',
    more: { unit: 'plain' },
  },
];

/** exampleQuery loads an example and keeps the shown time. */
export const exampleQuery = (e: Example, now: ExploreQuery): ExploreQuery => ({
  ...now,
  step: 0,
  unit: '',
  view: emptyQuery.view,
  ...e.more,
  q: e.q,
  over: e.more?.over ?? now.over,
});
