import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { isLive, type Mark, type RunDetail, type RunEvent } from '../api/types';
import { plain, rate } from '../design/format';
import type { Marker } from './series';

/** useMarks polls a run's marks; other users' marks appear within seconds. */
export const useMarks = (run: RunDetail) =>
  useQuery({
    queryKey: ['marks', run.run_id],
    queryFn: ({ signal }) => api.get('/api/v1/runs/{id}/marks', { path: { id: run.run_id }, signal }),
    enabled: run.status !== 'PREPARED',
    refetchInterval: isLive(run) ? 3_000 : false,
  });

/** loadChangeText describes a load change. */
export function loadChangeText(e: RunEvent): string {
  const d = e.event_data;
  if (d.target_qps != null) return `rate ${plain(rate(d.target_qps))}`;
  const n = d.target_connections ?? 0;
  return `${n} connection${n === 1 ? '' : 's'}`;
}

export const loadChanges = (run: RunDetail): RunEvent[] => run.load_changes ?? [];

/** maxLabelLength limits a label next to a chart line. */
const maxLabelLength = 28;

/** withMarks adds marks and load changes to the phase markers, in time order. */
export function withMarks(phases: Marker[], marks: Mark[], run: RunDetail): Marker[] {
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  if (!start) return phases;
  const at = (iso: string | null) => (Date.parse(iso ?? '') - start) / 1000;
  const short = (text: string) =>
    [...text].length > maxLabelLength ? `${[...text].slice(0, maxLabelLength - 1).join('')}…` : text;
  return [
    ...phases,
    ...marks.map((m) => ({ t: at(m.at), label: short(m.text) })),
    ...loadChanges(run).map((e) => ({ t: at(e.created_at), label: loadChangeText(e) })),
  ].sort((a, b) => a.t - b.t);
}

export interface Limit {
  metric: 'p50' | 'p95' | 'p99' | 'qps';
  value: number;
  label: string;
}

/** thresholdLines are the thresholds that a chart can show as a line. */
export function thresholdLines(thresholds: string[] | null | undefined): Limit[] {
  return (thresholds ?? []).flatMap((t) => {
    const m = /^\s*(?:(p50|p95|p99)_ms|(qps))\s*([<>]=?)\s*(\d+(?:\.\d+)?)\s*$/.exec(t);
    if (!m) return [];
    const metric = (m[1] ?? m[2]) as Limit['metric'];
    const value = Number(m[4]);
    const name = metric === 'qps' ? 'rate' : metric.toUpperCase();
    return [{ metric, value, label: `${name} ${m[3]} ${value}${metric === 'qps' ? '/s' : ' ms'}` }];
  });
}

/** adjustableLoad is what can be changed in a live run. */
export function adjustableLoad(run: RunDetail): 'target_qps' | 'connections' | null {
  const w = run.scenario_config.workload;
  if (run.status !== 'RUNNING' || (w.stages?.length ?? 0) > 0 || w.arrival === 'workload') return null;
  if (w.load_mode === 'QPS') return 'target_qps';
  return w.load_mode === 'CONCURRENCY' ? 'connections' : null;
}
