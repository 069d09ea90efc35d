import { useQuery } from '@tanstack/react-query';
import { useMemo, useRef } from 'react';
import { sendForm } from '../api/client';
import { isLive, type RunDetail } from '../api/types';
import { ask, type SeriesJson } from '../explore/ask';
import { timeOf } from '../explore/times';
import { type Answers, type Asked, type Only, queries, samplesOf, stepOf, written } from './only';
import { type Columns, columns, nearest, type Sample } from './series';

/** The last seconds of a run that goes on are asked for again: they may still have grown. */
const grows = 6;
/** Of seconds later than this not every run worker has told yet. */
const told = 3;

interface Kept {
  key: string;
  samples: Map<number, Sample>;
  end: number;
}

/** The curves of a part of a run; what was asked for before is kept, and only what is new is asked for. */
export function useOnly(run: RunDetail, only: Only | null, all: Columns) {
  const kept = useRef<Kept | null>(null);
  const going = isLive(run);
  const rows = useRef(all);
  rows.current = all;
  const answer = useQuery({
    // Once it is over, its last seconds are asked for again.
    queryKey: ['only', run.run_id, written(only), going],
    enabled: only !== null && timeOf(run, 0) !== null,
    refetchInterval: going ? 2_500 : false,
    queryFn: async ({ signal }) => {
      const time = timeOf(run, Date.now() - (going ? told * 1000 : 0))!;
      const start = Date.parse(run.start_time!);
      const step = stepOf(time.end - time.start);
      const key = `${written(only)}/${step}`;
      if (kept.current?.key !== key) kept.current = { key, samples: new Map(), end: 0 };
      const have = kept.current;
      // Points lie on whole steps from the start, so that asking again meets the same ones.
      const whole = (t: number) => time.start + Math.ceil((t - time.start) / step) * step;
      const from = have.end ? Math.max(time.start, whole(have.end - Math.max(grows, 2 * step))) : time.start;
      const asked = Object.entries(queries(run.run_id, only!, step)) as [Asked, string][];
      const answers: Answers = {};
      await Promise.all(
        asked.map(async ([name, query]) => {
          const r = await ask({ query, start: from, end: time.end, step }, {}, signal);
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

/** The statements and run workers that a run has curves of. */
export const useParts = (run: RunDetail) =>
  useQuery({
    queryKey: ['parts', run.run_id],
    enabled: timeOf(run, 0) !== null,
    // A statement may be executed for the first time long after the start.
    refetchInterval: isLive(run) ? 15_000 : false,
    queryFn: async () => {
      const time = timeOf(run, Date.now())!;
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
