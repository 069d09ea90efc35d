import { useMemo } from 'react';
import { useQuery } from '@tanstack/react-query';
import { api } from '../api/client';
import type { Blocker, RunDetail, ServerView } from '../api/types';
import { isLive, isTerminal } from '../api/types';
import { Chart } from '../charts/Chart';
import type { Decor, Line } from '../charts/plot';
import { count, latency } from '../design/format';
import { Empty, Failed, Notice, Skeleton } from '../design/States';
import { serverText } from '../design/sentences';
import { Findings, Time } from './Findings';
import type { Columns } from './series';
import { lineValues } from './track';
import { classLines } from './serverTime';

/** useWhy asks what the server of a run did; of a live run every two seconds. */
const useWhy = (run: RunDetail) =>
  useQuery({
    queryKey: ['why', run.run_id, isTerminal(run.status) && !isLive(run)],
    queryFn: ({ signal }) => api.get('/api/v1/runs/{id}/why', { path: { id: run.run_id }, signal }),
    refetchInterval: isLive(run) ? 2000 : false,
    staleTime: isLive(run) ? 0 : Number.POSITIVE_INFINITY,
  });

/** Why says where the client's time went and why operations were slow. */
export function Why({ run, c }: { run: RunDetail; c: Columns }) {
  const why = useWhy(run);
  if (why.isPending)
    return (
      <div className="panel pad" aria-busy="true">
        <Skeleton height={180} />
      </div>
    );
  if (why.error) return <Failed what="The findings could not be read." error={why.error} retry={why.refetch} />;
  return <WhyView run={run} v={why.data} c={c} />;
}

/** LiveWhy is Why of a run that goes on: nothing before something was seen. */
export function LiveWhy({ run, c }: { run: RunDetail; c: Columns }) {
  const why = useWhy(run);
  if (!why.data?.observed) return null;
  return (
    <details className="panel why-live">
      <summary>
        <h2 className="h3">Why</h2>
        <span className="muted">{why.data.findings[0]?.title}</span>
      </summary>
      <div className="body">
        <WhyView run={run} v={why.data} c={c} />
      </div>
    </details>
  );
}

function WhyView({ run, v, c }: { run: RunDetail; v: ServerView; c: Columns }) {
  if (!v.observed)
    return (
      <section className="panel">
        <Empty title="The server was not observed">{v.reason && serverText(v.reason)}</Empty>
      </section>
    );
  return (
    <div className="stack why">
      {v.reason && <Notice tone="warn">{serverText(v.reason)}</Notice>}
      <Findings run={run} list={v.findings} />
      <Sessions run={run} v={v} c={c} />
      {v.time && v.time.in_flight_seconds > 0 && <Time t={v.time} />}
      {v.live && v.blockers.length > 0 && <Blockers list={v.blockers} />}
    </div>
  );
}

function Sessions({ run, v, c }: { run: RunDetail; v: ServerView; c: Columns }) {
  const x = useMemo(() => v.seconds.map((s) => s.elapsed_seconds), [v.seconds]);
  const lines = useMemo<Line[]>(() => classLines(v.seconds), [v.seconds]);
  const decor = useMemo<Decor>(
    () => ({
      bands: [],
      markers: [],
      suspectRanges: v.seconds
        .filter((s) => s.slow)
        .map((s) => ({ from: s.elapsed_seconds, to: s.elapsed_seconds + s.seconds })),
    }),
    [v.seconds],
  );
  const end = Math.max(x.at(-1) ?? 0, c.t.at(-1) ?? 0);
  return (
    <>
      <Chart
        title="Latency"
        file={`${run.test_name}-latency`}
        x={c.t}
        lines={[
          { key: 'p50', label: 'P50', color: '--p50', values: lineValues(c, 'p50', (s) => s.p50) },
          { key: 'p95', label: 'P95', color: '--p95', values: lineValues(c, 'p95', (s) => s.p95) },
        ]}
        format={latency}
        decor={decor}
        until={end}
        height={140}
        canLog
        note={<span className="muted note">slow seconds are shaded</span>}
      />
      <Chart
        title="Active sessions of the run, by what they wait for"
        tip={
          'Average number of the run’s sessions that are in the server, by class. Processor includes waits that the ' +
          'server does not tell. The line is how many operations the clients had under way.'
        }
        file={`${run.test_name}-sessions`}
        x={x}
        lines={lines}
        format={count}
        decor={decor}
        until={end}
        stacked
      />
    </>
  );
}

function Blockers({ list }: { list: Blocker[] }) {
  return (
    <section className="panel table-wrap" tabIndex={0} aria-label="Sessions that others wait for, a table that scrolls">
      <table className="table dense">
        <thead>
          <tr>
            <th>Session</th>
            <th>Application</th>
            <th>User</th>
            <th>State</th>
            <th className="num">Waiting for it</th>
            <th>Waits for</th>
            <th>Statement</th>
          </tr>
        </thead>
        <tbody>
          {list.map((b) => (
            <tr key={b.session}>
              <td>{b.session}</td>
              <td>{b.application}</td>
              <td>{b.user}</td>
              <td>{b.state.replace('_', ' ')}</td>
              <td className="num">{b.waiting}</td>
              <td>{b.blocked_by}</td>
              <td className="message">
                <code>{b.statement}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
