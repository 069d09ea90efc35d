import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import { sendForm } from '../api/client';
import { isLive, type RunDetail } from '../api/types';
import { queryRange, type SeriesJson } from '../explore/promqlClient';
import { loadTime } from '../explore/times';
import {
  type ChartFilter,
  filterText,
  queries,
  samplesOf,
  type SeriesByName,
  type SeriesName,
  stepOf,
} from './chartFilter';
import { type Columns, columns, nearest, type Sample } from './series';

/** refetchSeconds: the last seconds of a live run are fetched again, as they may have changed. */
const refetchSeconds = 6;
/** settleSeconds: not every worker has reported later seconds yet. */
const settleSeconds = 3;

interface SeriesCache {
  key: string;
  samples: Map<number, Sample>;
  end: number;
}

/** useFilteredCharts loads the filtered curves; only new seconds are fetched. */
export function useFilteredCharts(run: RunDetail, filter: ChartFilter | null, all: Columns) {
  const cache = useRef<SeriesCache | null>(null);
  const running = isLive(run);
  const rows = useRef(all);
  rows.current = all;
  const answer = useQuery({
    // After the end, the last seconds are fetched again.
    queryKey: ['only', run.run_id, filterText(filter), running],
    enabled: filter !== null && loadTime(run, 0) !== null,
    refetchInterval: running ? 2_500 : false,
    queryFn: async ({ signal }) => {
      const time = loadTime(run, Date.now() - (running ? settleSeconds * 1000 : 0))!;
      const start = Date.parse(run.start_time!);
      const step = stepOf(time.end - time.start);
      const key = `${filterText(filter)}/${step}`;
      if (cache.current?.key !== key) cache.current = { key, samples: new Map(), end: 0 };
      const have = cache.current;
      // Points lie on whole steps from the start, so that repeated fetches return the same ones.
      const wholeStep = (t: number) => time.start + Math.ceil((t - time.start) / step) * step;
      const from = have.end
        ? Math.max(time.start, wholeStep(have.end - Math.max(refetchSeconds, 2 * step)))
        : time.start;
      const requests = Object.entries(queries(run.run_id, filter!, step)) as [SeriesName, string][];
      const answers: SeriesByName = {};
      await Promise.all(
        requests.map(async ([name, query]) => {
          const r = await queryRange({ query, start: from, end: time.end, step }, {}, signal);
          answers[name] = r.result as SeriesJson[];
        }),
      );
      const around = (t: number) => {
        const known = rows.current.rows.filter((s): s is Sample => s !== null);
        return known[nearest(known, t)] ?? null;
      };
      for (const s of samplesOf(answers, start, step, around)) have.samples.set(s.at, s);
      have.end = time.end;
      return { samples: [...have.samples.values()].sort((a, b) => a.t - b.t), step };
    },
  });
  const c = useMemo(() => columns({ samples: answer.data?.samples ?? [] }), [answer.data]);
  return { c, answer };
}

/** useParts lists the statements and workers that have curves. */
export const useParts = (run: RunDetail) =>
  useQuery({
    queryKey: ['parts', run.run_id],
    enabled: loadTime(run, 0) !== null,
    // A statement may first execute long after the start.
    refetchInterval: isLive(run) ? 15_000 : false,
    queryFn: async () => {
      const time = loadTime(run, Date.now())!;
      const of = async (label: string, metric: string) => {
        const res = await sendForm(
          `/prometheus/api/v1/label/${label}/values`,
          {
            'match[]': `loadstone_${metric}_operations_total{run=${JSON.stringify(run.run_id)}}`,
            start: String(time.start),
            end: String(time.end),
          },
          undefined,
          'GET',
        );
        if (!res.ok) throw new Error(`the ${label}s of the run could not be read: HTTP ${res.status}`);
        return ((await res.json()) as { data: string[] }).data;
      };
      const [statements, workers] = await Promise.all([of('statement', 'statement'), of('worker', 'worker')]);
      return { statements, workers };
    },
  });
