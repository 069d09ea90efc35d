import type { RunDetail, Summary } from '../api/types';
import { CopyButton } from '../design/Controls';
import { bytes, dateTime, plain } from '../design/format';
import { serverText } from '../design/sentences';
import { Accuracy } from './Accuracy';
import { isStarved, targetText } from './validity';
import { StatementList, TableList } from './PlanView';
import { ScenarioFacts } from './ScenarioFacts';

/** EnvironmentView shows what is needed to repeat a run. */
export function EnvironmentView({ run, s }: { run: RunDetail; s: Summary }) {
  const e = s.environment;
  const notes = (s.validity_detail?.notes ?? []).map(serverText);
  return (
    <div className="stack">
      <ScenarioFacts scenario={run.scenario_config} />
      <div className="columns">
        <section className="panel">
          <header>
            <h2 className="h3">Environment</h2>
          </header>
          <dl className="body defs">
            <dt>Run</dt>
            <dd className="row">
              <code>{run.run_id}</code>
              <CopyButton text={run.run_id} label="Copy the run's id" />
            </dd>
            <dt>Started</dt>
            <dd>{dateTime(run.start_time)}</dd>
            <dt>Ended</dt>
            <dd>{dateTime(run.end_time)}</dd>
            {run.created_by && (
              <>
                <dt>By</dt>
                <dd>{run.created_by}</dd>
              </>
            )}
            <dt>Loadstone</dt>
            <dd>
              {e.loadstone_version} · {e.go_version} · I/O {e.io_engine || 'default'}
              {e.io_engine_reason && ` (${e.io_engine_reason})`}
            </dd>
            <dt>Machine</dt>
            <dd>
              {e.hostname && `${e.hostname} · `}
              {e.cpu_model || e.arch} · {e.cpus} CPUs · {plain(bytes(e.memory_bytes))} · {e.os}/{e.arch}
            </dd>
            <dt>Target</dt>
            <dd>{targetText(e)}</dd>
            {notes.length > 0 && (
              <>
                <dt>Notes</dt>
                <dd className="stack tightly">
                  {notes.map((n) => (
                    <span key={n}>{n}</span>
                  ))}
                </dd>
              </>
            )}
          </dl>
        </section>
        <div className="stack">
          <Accuracy
            certificate={e.calibration}
            live={s.live_percentiles}
            starved={isStarved(s.validity_detail?.causes)}
          />
          {(s.plugins ?? []).length > 0 && (
            <section className="panel">
              <header>
                <h2 className="h3">Plugins</h2>
              </header>
              <div className="body stack tightly">
                {(s.plugins ?? []).map((p) => (
                  <div key={p.sha256} className="plugin-line">
                    <div className="row">
                      <strong>{p.name}</strong> <span className="muted">{p.version}</span>{' '}
                      <span className="chip">{p.kind}</span>
                    </div>
                    <div className="row nowrap">
                      <code className="hash clip" title={p.sha256}>
                        sha256 {p.sha256}
                      </code>
                      <CopyButton text={p.sha256} label={`Copy the SHA-256 of ${p.name}`} />
                    </div>
                  </div>
                ))}
              </div>
            </section>
          )}
        </div>
      </div>
      {run.plan && (
        <section className="panel pad stack">
          {run.plan.tables && run.plan.tables.length > 0 && <TableList tables={run.plan.tables} />}
          {run.plan.statements && <StatementList statements={run.plan.statements} />}
        </section>
      )}
    </div>
  );
}
