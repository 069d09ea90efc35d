import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useHasRole } from '../api/queries';
import { api } from '../api/client';
import type { CheckResult, RunDetail } from '../api/types';
import { Term } from '../design/Controls';
import { ago, count, plain } from '../design/format';
import { Icon } from '../design/icons';
import { Failed, Notice, SkeletonRows } from '../design/States';
import { terms } from '../design/terms';
import { PreflightFix } from './PreflightFix';
import { StatementList, TableList } from './PlanView';
import { ScenarioFacts } from './ScenarioFacts';

const icons = { ok: 'check', warning: 'warn', failed: 'alert' } as const;
const tones = { ok: 'ok', warning: 'warn', failed: 'bad' } as const;

/** outcomeOf: a third-party adapter may report an unknown outcome. */
const outcomeOf = (c: CheckResult) => (c.outcome in icons ? (c.outcome as keyof typeof icons) : 'warning');

/** PreparedRun shows a run before its start: plan and preflight. */
export function PreparedRun({ run }: { run: RunDetail }) {
  const may = useHasRole('operator'); // who looks only does not have the target looked at
  // What the run would write is tried only when somebody asks for it.
  const [trial, setTrial] = useState(false);
  const preflight = useQuery({
    queryKey: ['preflight', run.run_id, trial],
    queryFn: async ({ signal }) =>
      api.post('/api/preflight', {
        body: run.template_id
          ? { template_id: run.template_id, trial }
          : {
              trial,
              scenario: (await api.get('/api/runs/{id}', { path: { id: run.run_id }, signal, asStored: true }))
                .scenario_config,
            },
        signal,
      }),
    enabled: run.plan === null && may,
    staleTime: trial ? Infinity : 30_000, // a trial is not repeated by itself
    retry: false,
  });
  // A matrix run is one of its template's targets.
  const targetPreflight = preflight.data?.targets?.[run.matrix_index ?? 0] ?? preflight.data;
  const plan = run.plan ?? targetPreflight?.plan ?? null;
  const statements = plan?.statements ?? null;
  const checks = targetPreflight?.checks ?? [];
  const creates = targetPreflight?.creates ?? [];
  const failures = checks.filter((c) => c.outcome === 'failed');
  const lacksOnlyWrites = failures.length > 0 && failures.every((c) => (c.field ?? '').endsWith('.allow_writes'));
  return (
    <>
      {run.waiting ? (
        <Notice tone="warn">
          <strong>
            {run.waiting.position === 1 ? 'Next to start.' : `Position ${run.waiting.position} in the queue.`}
          </strong>{' '}
          The run {run.waiting.reason} (queued {ago(run.waiting.since)}). The run starts automatically as soon as the
          nodes have room; nothing has touched the target yet.
        </Notice>
      ) : run.plan === null && targetPreflight?.ok === false && lacksOnlyWrites ? (
        <Notice tone="warn">
          <strong>This run writes to tables that Loadstone did not create.</strong> The target has not been changed.
          “Start run” asks once whether it may.
        </Notice>
      ) : run.plan === null && targetPreflight?.ok === false ? (
        <Notice tone="warn">
          <strong>This run would fail.</strong> Correct the failed checks below. They would end the run before it sends
          or changes anything; mend it, then check again.
        </Notice>
      ) : !may ? (
        <Notice tone="plain">
          <strong>Not started.</strong> The target has not been changed. An operator can check it and start it.
        </Notice>
      ) : (
        <Notice tone="plain">
          <strong>Ready to start.</strong> Review the checks below, then press “Start run”.
        </Notice>
      )}
      <ScenarioFacts scenario={run.scenario_config} />
      <section className="panel">
        <header>
          <h2 className="h3">
            <Term tip={terms.preflight}>Preflight</Term>
          </h2>
          <div className="end">
            {run.plan === null && preflight.data?.untried && !trial && (
              <button
                type="button"
                className="btn quiet small"
                title="Executes up to 20 operations of each writing statement and rolls them back"
                onClick={() => setTrial(true)}
                disabled={preflight.isFetching}
              >
                Try the statements
              </button>
            )}
            {run.plan === null && (
              <button
                type="button"
                className="btn quiet small"
                onClick={() => (trial ? setTrial(false) : void preflight.refetch())}
                disabled={preflight.isFetching}
              >
                <Icon name="refresh" size={14} /> {preflight.isFetching ? 'Checking…' : 'Check again'}
              </button>
            )}
          </div>
        </header>
        {run.plan === null && preflight.isPending ? (
          <SkeletonRows rows={4} />
        ) : run.plan === null && preflight.error ? (
          <Failed what="The preflight found a problem." error={preflight.error} retry={() => preflight.refetch()} />
        ) : (
          <div className="body stack">
            {checks.length > 0 && (
              <ul className="checks">
                {checks.map((c) => (
                  <li key={c.name + c.message} className={tones[outcomeOf(c)]}>
                    <Icon name={icons[outcomeOf(c)]} />
                    <span>
                      <span className="what">{c.name.replaceAll('_', ' ')}</span>
                      {c.message}
                      {c.fix && <PreflightFix text={c.fix} />}
                    </span>
                  </li>
                ))}
                {creates.map((t) => (
                  <li key={t.name} className={t.drops ? 'warn' : 'ok'}>
                    <Icon name={t.drops ? 'warn' : 'plus'} />
                    <span>
                      Table <code>{t.name}</code> will be {t.drops ? 'dropped and recreated' : 'created'} with{' '}
                      {plain(count(t.rows))} sample rows.
                      {(t.ddl?.length ?? 0) > 0 && (
                        <details>
                          <summary>Statements</summary>
                          <pre className="muted">{t.ddl!.join(';\n\n')}</pre>
                        </details>
                      )}
                    </span>
                  </li>
                ))}
              </ul>
            )}
            {plan?.tables && plan.tables.length > 0 && <TableList tables={plan.tables} />}
            {statements && statements.length > 0 ? (
              <StatementList statements={statements} />
            ) : (
              <p className="muted">The statements appear when the run prepares, before any load.</p>
            )}
          </div>
        )}
      </section>
    </>
  );
}
