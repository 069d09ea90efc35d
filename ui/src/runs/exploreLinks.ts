import type { Zoom } from '../charts/group';
import { exploreRun, rangeOf, type View } from '../explore/address';

const rate = '[$__rate_interval]';
const quantile = (q: string) =>
  `label_replace(histogram_quantile(${q}, sum(rate(loadstone_latency_seconds${rate}))), "quantile", "${q}", "", "")`;

/** chartQueries are the run charts as PromQL. */
const chartQueries = {
  throughput: [`sum by (kind) (rate(loadstone_operations_total${rate}))`, 'stacked'],
  percentiles: [['0.99', '0.95', '0.5'].map(quantile).join('\n  or '), 'lines'],
  heat: [`sum(rate(loadstone_latency_seconds${rate}))`, 'heat'],
  errors: [
    `sum by (error_class) (rate(loadstone_errors_total${rate}))\n  or ` +
      `label_replace(sum(rate(loadstone_dropped_operations_total${rate})), "error_class", "dropped", "", "") > 0`,
    'stacked',
  ],
  flight: ['sum(loadstone_waiting_operations)', 'lines'],
  connections: [
    ['connections', 'target_connections']
      .map((n) => `label_replace(sum(loadstone_${n}), "of", "${n}", "", "")`)
      .join('\n  or '),
    'lines',
  ],
  cpu: ['max by (node) (loadstone_node_cpu_ratio)', 'lines'],
  warehouse: ['{__name__=~"loadstone_warehouse_(running|queued)_queries"}', 'lines'],
} satisfies Record<string, [string, View]>;

/** exploreLink opens a run chart in Explore with the same time range. */
export function exploreLink(chart: keyof typeof chartQueries, run: string, zoom: Zoom | null): string {
  const [q, view] = chartQueries[chart];
  return exploreRun(q, run, { view: view as View, range: rangeOf(zoom) });
}
