import { Link, useLocation } from 'wouter';
import { OperatorOnly } from './OperatorOnly';
import { useCreateRun, useInfo, useLiveRuns, useRuns, useTemplates } from '../api/queries';
import { connectivity, useOfflineSince } from '../api/connectivity';
import type { RunRow } from '../api/types';
import { clock, count, errorRate, latency, plain, rate } from '../design/format';
import { Icon } from '../design/icons';
import { Num } from '../design/Num';
import { Empty, Load, ProblemNotice, SkeletonRows } from '../design/States';
import { PhaseBadge, StatusBadge } from '../design/Status';
import { RunTable } from '../history/RunTable';
import { StopAll } from './StopAll';
import { firstRun } from './firstRun';
import { usePageTitle } from './location';

const curve =
  'M0 90C22 88 28 62 44 44s22-13 34-11 14 9 25 5 12-21 27-19 14 14 29 10 17-13 31-9 21 11 32 6 12-7 18-6v72H0z';

export function Home() {
  usePageTitle('');
  const info = useInfo();
  const templates = useTemplates();
  const recent = useRuns({ limit: 8 }, 5_000);
  const live = useLiveRuns();
  const running = live.data?.runs ?? [];
  const fresh = recent.data !== undefined && recent.data.total === 0;
  return (
    <>
      <header className="page-head">
        <h1>Home</h1>
        {info.data && (
          <span className="sub hide-phone">
            Loadstone {info.data.version} · {info.data.control_store === 'embedded' ? 'built-in' : 'external'} Postgres
            · {info.data.nodes} {info.data.nodes === 1 ? 'node' : 'nodes'}
          </span>
        )}
        <div className="actions">
          <StopAll className="btn danger" />
          <OperatorOnly>
            <Link href="/templates/new" data-new className="btn">
              <Icon name="plus" /> New template
            </Link>
          </OperatorOnly>
        </div>
      </header>
      <div className="page">
        {running.length > 0 && (
          <section className="stack" aria-label="Running now">
            <h2>Running now</h2>
            <div className="columns">
              {running.map((r) => (
                <LiveCard key={r.run_id} run={r} />
              ))}
            </div>
          </section>
        )}
        {running.length === 0 && (
          <FirstMinute
            fresh={fresh}
            playground={info.data?.playground ?? true}
            ready={templates.data !== undefined || templates.error !== null}
            templates={templates.data}
          />
        )}
        <section className="stack" aria-label="Recent runs">
          <div className="row">
            <h2>Recent runs</h2>
            {(recent.data?.total ?? 0) > 8 && (
              <Link href="/history" className="end-link">
                All {plain(count(recent.data!.total))} runs
              </Link>
            )}
          </div>
          <div className="panel">
            <Load
              from={recent}
              what="The runs could not be read."
              skeleton={<SkeletonRows rows={5} />}
              empty={(d) =>
                (d.runs ?? []).length === 0 && (
                  <Empty icon="chart" title="No runs yet">
                    Finished runs appear here with their figures and every execution.
                  </Empty>
                )
              }
            >
              {(d) => <RunTable runs={d.runs ?? []} compact />}
            </Load>
          </div>
        </section>
      </div>
    </>
  );
}

function FirstMinute(props: {
  fresh: boolean;
  playground: boolean;
  ready: boolean;
  templates: Parameters<typeof firstRun>[0];
}) {
  const [, navigate] = useLocation();
  const create = useCreateRun();
  // The card unmounts when a run goes live, together with its callbacks: await instead.
  const start = async () => {
    try {
      const r = await create.mutateAsync(await firstRun(props.templates));
      navigate(r.path);
    } catch {
      // The card shows the server's error.
    }
  };
  return (
    <section className={`panel first${props.fresh ? ' fresh' : ''}`}>
      <div className="first-text">
        <h2>{props.fresh ? 'See it work' : 'Start a run'}</h2>
        <p>
          {props.playground
            ? 'Run a 20-second mixed workload on the built-in Postgres: point lookups, range scans, inserts ' +
              'and updates over 16 connections.'
            : 'This server has no built-in Postgres. Connect your own database, then create a template for it.'}
        </p>
        {create.error && <ProblemNotice error={create.error} />}
        <OperatorOnly>
          <div className="row">
            {props.playground && (
              <button
                type="button"
                className="btn primary large"
                disabled={create.isPending || !props.ready}
                onClick={() => void start()}
              >
                <Icon name="play" /> {create.isPending ? 'Starting…' : 'Start the first run'}
              </button>
            )}
            <span className="muted">
              or <Link href="/start">measure a table of your own</Link>, or{' '}
              <Link href="/templates/gallery">choose a question</Link>
            </span>
          </div>
        </OperatorOnly>
      </div>
      <svg className="first-art" viewBox="0 0 240 92" aria-hidden="true">
        <path d="M0 91.500h240" stroke="var(--line)" />
        <path d={curve} fill="var(--accent-soft)" />
        <path
          d="M0 90C22 88 28 62 44 44s22-13 34-11 14 9 25 5 12-21 27-19 14 14 29 10 17-13 31-9 21 11 32 6 12-7 18-6"
          fill="none"
          stroke="var(--accent)"
          strokeWidth="2"
        />
      </svg>
    </section>
  );
}

function LiveCard({ run }: { run: RunRow }) {
  useOfflineSince(); // draws the clock again when the server falls silent, and when it is back
  const started = run.start_time ? Math.max(0, connectivity.lastContact() - Date.parse(run.start_time)) / 1000 : 0;
  return (
    <Link href={`/runs/${run.run_id}`} className="panel live-card" data-row>
      <div className="row">
        <strong className="clip grow">{run.test_name}</strong>
        {run.status === 'RUNNING' && run.phase ? <PhaseBadge phase={run.phase} /> : <StatusBadge status={run.status} />}
      </div>
      {/* While its target is made ready a run has no figures yet, and a rate of 0 would be one. */}
      {run.status === 'RUNNING' && run.phase === 'PREPARING' ? (
        <div className="row live-figures">
          <span className="muted">{clock(started)}</span>
          <span className="muted">Preparing the target. The load starts when it is ready.</span>
        </div>
      ) : (
        <div className="row live-figures">
          <span className="big">
            <Num q={rate(run.current_qps)} />
          </span>
          <span className="muted">{clock(started)}</span>
          {run.p95_ms !== null && <span className="muted">P95 {plain(latency(run.p95_ms))}</span>}
          <span className="muted">
            {plain(count(run.total_ops))} operations ·{' '}
            {plain(errorRate(run.total_ops ? run.error_count / run.total_ops : 0))} errors
          </span>
        </div>
      )}
    </Link>
  );
}
