import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import { isLive, type Mark, type RunDetail, type RunEvent } from '../api/types';
import { plain, rate } from '../design/format';
import type { Marker } from './series';

/** What is marked in a run; who else marks it meanwhile is seen within seconds. */
export const useMarks = (run: RunDetail) =>
  useQuery({
    queryKey: ['marks', run.run_id],
    queryFn: ({ signal }) => api.get('/api/v1/runs/{id}/marks', { path: { id: run.run_id }, signal }),
    enabled: run.status !== 'PREPARED',
    refetchInterval: isLive(run) ? 3_000 : false,
  });

/** Says what a user has changed of the load. */
export function changed(e: RunEvent): string {
  const d = e.event_data;
  if (d.target_qps != null) return `rate ${plain(rate(d.target_qps))}`;
  const n = d.target_connections ?? 0;
  return `${n} connection${n === 1 ? '' : 's'}`;
}

export const loadChanges = (run: RunDetail): RunEvent[] => run.load_changes ?? [];

/** The longest label that is written beside a line in a chart. */
const longest = 28;

/** Marks and changes of the load as lines of a chart, beside those of the phases, in the order of time. */
export function withMarks(phases: Marker[], marks: Mark[], run: RunDetail): Marker[] {
  const start = run.start_time ? Date.parse(run.start_time) : 0;
  if (!start) return phases;
  const at = (iso: string | null) => (Date.parse(iso ?? '') - start) / 1000;
  const short = (text: string) => ([...text].length > longest ? `${[...text].slice(0, longest - 1).join('')}…` : text);
  return [
    ...phases,
    ...marks.map((m) => ({ t: at(m.at), label: short(m.text) })),
    ...loadChanges(run).map((e) => ({ t: at(e.created_at), label: changed(e) })),
  ].sort((a, b) => a.t - b.t);
}

export interface Limit {
  metric: 'p50' | 'p95' | 'p99' | 'qps';
  value: number;
  label: string;
}

/** The thresholds of a template that a chart of the run can show as a line. */
export function limits(thresholds: string[] | null | undefined): Limit[] {
  return (thresholds ?? []).flatMap((t) => {
    const m = /^\s*(?:(p50|p95|p99)_ms|(qps))\s*([<>]=?)\s*(\d+(?:\.\d+)?)\s*$/.exec(t);
    if (!m) return [];
    const metric = (m[1] ?? m[2]) as Limit['metric'];
    const value = Number(m[4]);
    const name = metric === 'qps' ? 'rate' : metric.toUpperCase();
    return [{ metric, value, label: `${name} ${m[3]} ${value}${metric === 'qps' ? '/s' : ' ms'}` }];
  });
}

/** What of a run's load can be changed while it goes on. */
export function changeable(run: RunDetail): 'target_qps' | 'connections' | null {
  const w = run.scenario_config.workload;
  if (run.status !== 'RUNNING' || (w.stages?.length ?? 0) > 0 || w.arrival === 'workload') return null;
  if (w.load_mode === 'QPS') return 'target_qps';
  return w.load_mode === 'CONCURRENCY' ? 'connections' : null;
}
