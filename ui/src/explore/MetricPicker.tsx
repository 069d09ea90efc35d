import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { type Names, quote } from './promql';

/** PickedQuery is what the picker builds a query from. */
export interface PickedQuery {
  metric: string;
  /** The Prometheus type: counter, gauge or histogram. */
  type: string;
  /** The label to group by; '' for none. */
  by: string;
  /** The label to filter by and its value; '' for none. */
  label: string;
  value: string;
}

/** builtQuery is the usual query of a metric: the rate of a counter, the P95 of a histogram, the mean of a gauge. */
export function builtQuery({ metric, type, by, label, value }: PickedQuery): string {
  const selector = metric + (label && value ? `{${label}=${quote(value)}}` : '');
  const grouped = by ? ` by (${by}) ` : '';
  switch (type) {
    case 'histogram':
      return `histogram_quantile(0.95, sum${grouped}(rate(${selector}[$__rate_interval])))`;
    case 'counter':
      return `sum${grouped}(rate(${selector}[$__rate_interval]))`;
    default:
      return `avg${grouped}(${selector})`;
  }
}

const typeOf = (detail: string) => detail.split(' · ')[0] ?? '';

/** MetricPicker writes a query from a metric, a label to group by, and a label to filter by. */
export function MetricPicker({ names, scope, onQuery }: { names: Names; scope: string; onQuery: (q: string) => void }) {
  const [picked, setPicked] = useState<PickedQuery>({ metric: '', type: '', by: '', label: '', value: '' });
  const metrics = useQuery({ queryKey: ['explore-metrics', scope], retry: false, queryFn: () => names.metrics() });
  const labels = useQuery({
    queryKey: ['explore-labels', scope, picked.metric],
    enabled: picked.metric !== '',
    retry: false,
    queryFn: () => names.labels(picked.metric),
  });
  const values = useQuery({
    queryKey: ['explore-values', scope, picked.metric, picked.label],
    enabled: picked.label !== '',
    retry: false,
    queryFn: () => names.values(picked.label, picked.metric),
  });
  const change = (more: Partial<PickedQuery>) => {
    const next = { ...picked, ...more };
    setPicked(next);
    // A filter without its value is not a query yet.
    if (next.metric && (!next.label || next.value)) onQuery(builtQuery(next));
  };
  const choices = (labels.data ?? []).filter((l) => l !== '__name__');
  const option = (v: string) => (
    <option key={v} value={v}>
      {v}
    </option>
  );
  return (
    <div className="toolbar metric-picker" role="group" aria-label="Query builder">
      <select
        className="input small"
        aria-label="Metric"
        value={picked.metric}
        onChange={(e) => {
          const metric = metrics.data?.find((m) => m.name === e.target.value);
          change({ metric: e.target.value, type: typeOf(metric?.detail ?? ''), by: '', label: '', value: '' });
        }}
      >
        <option value="">
          {metrics.error ? 'Metrics could not be loaded' : metrics.isPending ? 'Loading metrics…' : 'Choose a metric…'}
        </option>
        {metrics.data?.map((m) => (
          <option key={m.name} value={m.name} title={m.detail}>
            {m.name}
          </option>
        ))}
      </select>
      <select
        className="input small"
        aria-label="Group by"
        disabled={!picked.metric}
        value={picked.by}
        onChange={(e) => change({ by: e.target.value })}
      >
        <option value="">not grouped</option>
        {choices.map((l) => (
          <option key={l} value={l}>
            by {l}
          </option>
        ))}
      </select>
      <select
        className="input small"
        aria-label="Filter by"
        disabled={!picked.metric}
        value={picked.label}
        onChange={(e) => change({ label: e.target.value, value: '' })}
      >
        <option value="">no filter</option>
        {choices.map(option)}
      </select>
      {picked.label && (
        <select
          className="input small"
          aria-label={`Value of ${picked.label}`}
          value={picked.value}
          onChange={(e) => change({ value: e.target.value })}
        >
          <option value="">{values.isPending ? 'Loading values…' : 'Choose a value…'}</option>
          {values.data?.map(option)}
        </select>
      )}
    </div>
  );
}
