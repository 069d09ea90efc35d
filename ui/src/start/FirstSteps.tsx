import { lazy, type ReactNode, Suspense, useState } from 'react';
import { Link } from 'wouter';
import { OperatorOnly } from '../app/OperatorOnly';
import { api, asProblem, type Problem } from '../api/client';
import { useConnections, useRun, useTemplates } from '../api/queries';
import { isLive, type Preflight, type RunDetail, type ScenarioDraft } from '../api/types';
import { usePageTitle, useParam } from '../app/location';
import { Segments } from '../design/Controls';
import { Icon } from '../design/icons';
import { Notice, ProblemNotice, SkeletonRows } from '../design/States';
import { explainRun, otherNotes, progressText } from './explanation';
import { TablePicker } from './TablePicker';
import './start.css';

const connections = 8;

const ConnectionForm = lazy(() => import('../connections/ConnectionForm').then((m) => ({ default: m.ConnectionForm })));
const RunPicture = lazy(() => import('./RunPicture'));

/** scenarioOf is the scenario of the first 20 seconds: mixed on a sample table, read-only on a user's table. */
export function scenarioOf(name: string, connection: string, table: string, sample: boolean): ScenarioDraft {
  return {
    name,
    description: 'Created by First steps.',
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

/** FirstSteps is the guided path: database, table, 20 seconds of load, explanation. */
export function FirstSteps() {
  usePageTitle('First steps');
  const saved = useConnections();
  const templates = useTemplates();
  const list = (saved.data ?? []).filter((c) => c.driver === 'postgres');
  const [chosen, setChosen] = useParam('connection', '');
  const connection = chosen || list.find((c) => !c.builtin)?.name || list[0]?.name || '';
  const builtin = list.find((c) => c.name === connection)?.builtin ?? false;
  // A user's own database usually has the table to measure; the built-in one has none.
  const [mode, setMode] = useState<'sample' | 'own' | null>(null);
  const sample = mode === null ? builtin : mode === 'sample';
  const [sampleTable, setSampleTable] = useState('first_steps');
  const [ownTable, setOwnTable] = useState('');
  const table = (sample ? sampleTable : ownTable).trim();
  const [checked, setChecked] = useState<{ of: string; found: Preflight } | null>(null);
  const [run, setRun] = useParam('run', '');
  const [connecting, setConnecting] = useState(false);
  const [busy, setBusy] = useState('');
  const [refused, setRefused] = useState<Problem | null>(null);
  const name = `first steps: ${connection}, ${table}`;
  const config = scenarioOf(name, connection, table, sample);
  const subject = JSON.stringify(config);
  const findings = checked?.of === subject ? checked.found : null;

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
  const check = async () => {
    const found = await api.post('/api/preflight', { body: { scenario: config, trial: false } });
    setChecked({ of: subject, found });
    return found.ok;
  };
  const start = async () => {
    if (!(await check())) return;
    setBusy('run');
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
  };
  const disabled = busy !== '' || !connection || !table;
  return (
    <>
      <header className="page-head">
        <h1>First steps</h1>
        <span className="sub hide-phone">Measure a table in a minute</span>
      </header>
      <div className="page narrow">
        <Step n={1} title="Database">
          <div className="row">
            <select
              className="input auto"
              aria-label="Connection"
              value={connection}
              onChange={(e) => {
                setChosen(e.target.value);
                setOwnTable('');
              }}
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
        <Step n={2} title="Table">
          <Segments
            label="Table"
            value={sample ? 'make' : 'own'}
            options={[
              { value: 'own', label: 'Read an existing table' },
              { value: 'make', label: 'Create a sample table' },
            ]}
            onChange={(v) => setMode(v === 'make' ? 'sample' : 'own')}
          />
          {sample ? (
            <input
              className="input mono auto"
              aria-label="Name of the table"
              value={sampleTable}
              spellCheck={false}
              onChange={(e) => setSampleTable(e.target.value)}
            />
          ) : (
            connection && (
              <TablePicker key={connection} connection={connection} value={ownTable} onChange={setOwnTable} />
            )
          )}
          <p className="muted">
            {sample
              ? 'Loadstone creates the table with 100 000 rows if it does not exist. The run reads and writes it.'
              : 'The run reads rows by their key. It writes nothing.'}
          </p>
        </Step>
        <Step n={3} title="Run for 20 seconds">
          <OperatorOnly>
            <div className="row">
              <button
                type="button"
                className="btn primary"
                disabled={disabled}
                onClick={() => void act('check', start)}
              >
                <Icon name="play" /> {busy === 'run' ? 'Starting…' : busy ? 'Checking…' : 'Check and run'}
              </button>
              <button
                type="button"
                className="btn"
                disabled={disabled}
                onClick={() => void act('check', async () => void (await check()))}
              >
                Check only
              </button>
            </div>
          </OperatorOnly>
          {!table && <span className="muted">Choose a table first.</span>}
          {findings && (
            <ul className="checks" aria-label="Checks">
              {(findings.checks ?? []).map((c, i) => (
                <li key={i} className={c.outcome}>
                  <Icon name={c.outcome === 'ok' ? 'check' : c.outcome === 'failed' ? 'alert' : 'warn'} size={14} />
                  <span>
                    {c.message} {c.fix && <span className="muted">{c.fix}</span>}
                  </span>
                </li>
              ))}
            </ul>
          )}
          {refused && <ProblemNotice error={refused} />}
        </Step>
        <Step n={4} title="Result">
          {run ? <Result id={run} /> : <span className="muted">The result appears here when the run finishes.</span>}
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
  if (!run.data) return <SkeletonRows rows={2} />;
  const r: RunDetail = run.data;
  const s = r.summary;
  if (isLive(r) || r.status === 'PREPARED' || (!s && r.status === 'COMPLETED'))
    return (
      <div role="status">
        <p>{progressText(r)}</p>
        <p>
          <Link href={`/runs/${id}`}>Watch the run live</Link>
        </p>
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
    <div className="stack">
      <div className="result-columns">
        <div role="status" className="stack tightly">
          {m.sentences.map((x) => (
            <p key={x}>{x}</p>
          ))}
          {r.simulated && <Notice>The target is simulated. Its figures say nothing about a real database.</Notice>}
        </div>
        {(s?.operations ?? 0) > 0 && (
          <Suspense fallback={<SkeletonRows rows={6} />}>
            <RunPicture run={r} />
          </Suspense>
        )}
      </div>
      <div className="row" role="group" aria-label="Next questions">
        {m.next === 'limit' && (
          <Link href={`/templates/new?from=${id}&ask=limit`} className="btn primary">
            Where is the limit?
          </Link>
        )}
        <Link href={`/runs/${id}?tab=why`} className="btn">
          Why this result?
        </Link>
        <Link href={`/history?selected=${id}`} className="btn">
          Compare with another run
        </Link>
      </div>
      <p className="muted">
        <Link href={`/runs/${id}`}>Open the run</Link> ·{' '}
        <Link href={`/templates/${r.template_id ?? ''}`}>Change its template</Link> ·{' '}
        <Link href={`/templates/gallery?like=${id}`}>More questions</Link>
      </p>
    </div>
  );
}
