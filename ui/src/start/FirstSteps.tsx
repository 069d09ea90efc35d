import { lazy, type ReactNode, Suspense, useState } from 'react';
import { Link } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem, type Problem } from '../api/client';
import { useConnections, useRun, useTemplates } from '../api/queries';
import { isLive, type Preflight, type RunDetail, type ScenarioDraft } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { Segments } from '../design/Controls';
import { Icon } from '../design/icons';
import { Notice, ProblemNotice } from '../design/States';
import { explainRun, otherNotes, progressText } from './explanation';
import './start.css';

const connections = 8;

const ConnectionForm = lazy(() => import('../connections/ConnectionForm').then((m) => ({ default: m.ConnectionForm })));

/** scenarioOf is the scenario of the first 20 seconds: mixed on a sample table, read-only on a user's table. */
export function scenarioOf(name: string, connection: string, table: string, sample: boolean): ScenarioDraft {
  return {
    name,
    description: 'Made by the first steps.',
    target: {
      connection,
      adapter: 'postgres',
      table_name: table,
      ...(sample ? { prepare: { rows: 100_000, if_exists: 'use' } } : {}),
    },
    workload: {
      plugin: 'mix',
      params: {
        weights: sample ? { POINT_LOOKUP: 70, RANGE_SCAN: 10, INSERT: 10, UPDATE: 10 } : { POINT_LOOKUP: 100 },
      },
      load_mode: 'CONCURRENCY',
      concurrent_connections: connections,
      warmup_seconds: 3,
      duration_seconds: 20,
      seed: 42,
    },
    scaling: { mode: 'FIXED', worker_count: 1, per_worker_capacity: connections },
    thresholds: ['error_rate < 0.001'],
  };
}

function Step(props: { n: number; title: string; children: ReactNode }) {
  return (
    <section className="panel step" aria-label={props.title}>
      <span className="step-number" aria-hidden="true">
        {props.n}
      </span>
      <div className="stack">
        <h2>{props.title}</h2>
        {props.children}
      </div>
    </section>
  );
}

/** FirstSteps is the guided path: connect, check, 20 seconds of load, explanation. */
export function FirstSteps() {
  usePageTitle('First steps');
  const saved = useConnections();
  const templates = useTemplates();
  const list = (saved.data ?? []).filter((c) => c.driver === 'postgres');
  const [chosen, setChosen] = useParam('connection', '');
  const connection = chosen || list.find((c) => !c.builtin)?.name || list[0]?.name || '';
  const [sample, setSample] = useState(true);
  const [table, setTable] = useState('first_steps');
  const [checked, setChecked] = useState<{ of: string; found: Preflight } | null>(null);
  const [run, setRun] = useParam('run', '');
  const [connecting, setConnecting] = useState(false);
  const [busy, setBusy] = useState('');
  const [refused, setRefused] = useState<Problem | null>(null);
  const name = `first steps: ${connection}, ${table}`;
  const config = scenarioOf(name, connection, table, sample);
  const subject = JSON.stringify(config);
  const ready = checked?.of === subject && checked.found.ok;

  const act = async (what: string, f: () => Promise<void>) => {
    setBusy(what);
    setRefused(null);
    try {
      await f();
    } catch (err) {
      setRefused(asProblem(err));
    } finally {
      setBusy('');
    }
  };
  const look = () =>
    act('look', async () => {
      const found = await api.post('/api/preflight', { body: { scenario: config, trial: false } });
      setChecked({ of: subject, found: found });
    });
  const start = () =>
    act('run', async () => {
      const before = templates.data?.find((t) => t.name === name);
      const t = before
        ? await api.put('/api/templates/{id}', {
            path: { id: before.template_id },
            body: { config: config, version: before.version },
          })
        : await api.post('/api/templates', { body: { config: config } });
      await templates.refetch();
      const r = await api.post('/api/runs', { body: { template_id: t.template_id, start: true } });
      setRun(r.run_id);
    });
  return (
    <>
      <header className="page-head">
        <h1>First steps</h1>
        <span className="sub hide-phone">From a database to a figure, in a minute</span>
      </header>
      <div className="page narrow">
        <Step n={1} title="A database">
          <div className="row">
            <select
              className="input auto"
              aria-label="Connection"
              value={connection}
              onChange={(e) => setChosen(e.target.value)}
            >
              {list.map((c) => (
                <option key={c.connection_id} value={c.name}>
                  {c.name}
                  {c.builtin ? ' (built in)' : ''}
                </option>
              ))}
            </select>
            <OperatorOnly>
              <button type="button" className="btn" onClick={() => setConnecting(true)}>
                Connect your own Postgres
              </button>
            </OperatorOnly>
          </div>
        </Step>
        <Step n={2} title="A table">
          <Segments
            label="Table"
            value={sample ? 'make' : 'own'}
            options={[
              { value: 'make', label: 'Make a sample table' },
              { value: 'own', label: 'Read one of mine' },
            ]}
            onChange={(v) => setSample(v === 'make')}
          />
          <input
            className="input mono auto"
            aria-label="Name of the table"
            value={table}
            spellCheck={false}
            onChange={(e) => setTable(e.target.value)}
          />
          <p className="muted">
            {sample
              ? '100 000 rows are loaded if there is no such table; it is read and written.'
              : 'Rows are read by their key, and nothing is written.'}
          </p>
        </Step>
        <Step n={3} title="A look before">
          <OperatorOnly>
            <button type="button" className="btn fit" disabled={busy !== '' || !connection} onClick={() => void look()}>
              {busy === 'look' ? 'Looking…' : 'Check it, without load'}
            </button>
          </OperatorOnly>
          {checked?.of === subject && (
            <ul className="checks" aria-label="Checks">
              {(checked.found.checks ?? []).map((c, i) => (
                <li key={i} className={c.outcome}>
                  <Icon name={c.outcome === 'ok' ? 'check' : c.outcome === 'failed' ? 'alert' : 'warn'} size={14} />
                  <span>
                    {c.message} {c.fix && <span className="muted">{c.fix}</span>}
                  </span>
                </li>
              ))}
            </ul>
          )}
        </Step>
        <Step n={4} title="20 seconds of load">
          <OperatorOnly>
            <button
              type="button"
              className="btn primary fit"
              disabled={busy !== '' || !ready}
              onClick={() => void start()}
            >
              <Icon name="play" /> {busy === 'run' ? 'Starting…' : 'Run it'}
            </button>
          </OperatorOnly>
          {!ready && !run && <span className="muted">When the check has found nothing wrong.</span>}
          {refused && <ProblemNotice error={refused} />}
        </Step>
        <Step n={5} title="What it means">
          {run ? <Result id={run} /> : <span className="muted">It is said here when the run has ended.</span>}
        </Step>
      </div>
      {connecting && (
        <Suspense fallback={null}>
          <ConnectionForm
            existing={null}
            onClose={() => setConnecting(false)}
            onSaved={(c) => c.driver === 'postgres' && setChosen(c.name)}
          />
        </Suspense>
      )}
    </>
  );
}

function Result({ id }: { id: string }) {
  const run = useRun(id, false);
  if (run.error && !run.data) return <ProblemNotice error={run.error} />;
  if (!run.data) return <span className="muted">…</span>;
  const r: RunDetail = run.data;
  const page = (
    <p>
      <Link href={`/runs/${id}`}>{isLive(r) ? 'Watch it live' : 'Its page has everything'}</Link>
    </p>
  );
  const s = r.summary;
  if (isLive(r) || r.status === 'PREPARED' || (!s && r.status === 'COMPLETED'))
    return (
      <div role="status">
        <p>{progressText(r)}</p>
        {page}
      </div>
    );
  const m = explainRun({
    operations: s?.operations ?? 0,
    qps: s?.qps ?? null,
    p95_ms: s?.latency_ms?.p95 ?? null,
    error_rate: s?.errors.rate ?? null,
    connections,
    verdict: s?.validity ?? 'NONE',
    causes: s?.validity_detail?.causes ?? [],
    notes: otherNotes(s?.validity_detail),
    local: s?.environment.target_is_local ?? false,
    passed: s?.passed ?? false,
    failed: r.status !== 'COMPLETED',
  });
  return (
    <div role="status" className="stack tightly">
      {m.sentences.map((x) => (
        <p key={x}>{x}</p>
      ))}
      {r.simulated && <Notice>The target is a stand-in: its figures say nothing about a real database.</Notice>}
      {page}
      <p>
        {m.next && <Link href={`/templates/new?example=${m.next}`}>Where is the limit?</Link>} · The template of this
        run is kept: <Link href={`/templates/${r.template_id ?? ''}`}>change it</Link>, or{' '}
        <Link href="/templates/gallery">ask something else</Link>.
      </p>
    </div>
  );
}
