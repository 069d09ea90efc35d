import type { Scenario } from '../api/types';
import { Term } from '../design/Controls';
import { capitalize, count, duration, humanize, plain } from '../design/format';
import { terms } from '../design/terms';
import { Tags } from '../history/tags';
import { limitWords } from './Guardrails';

/** briefValue formats a parameter: {a: 1, b: 2} becomes "a 1, b 2". */
function briefValue(v: unknown): string {
  if (Array.isArray(v)) return v.map(briefValue).join(', ');
  if (typeof v === 'object' && v !== null)
    return Object.entries(v)
      .filter(([, x]) => x !== 0)
      .map(([k, x]) => `${humanize(k)} ${briefValue(x)}`)
      .join(', ');
  return String(v);
}

/** existing says what happens to an existing table. */
const existing = { use: 'used as it is', recreate: 'dropped and recreated', fail: 'refused' };

/** ScenarioFacts summarizes a scenario in a few lines. */
export function ScenarioFacts({ scenario: s }: { scenario: Scenario }) {
  const connection =
    typeof s.target?.connection === 'string'
      ? s.target?.connection
      : `${s.target?.connection?.driver ?? ''} (in the template)`;
  const prepare = s.target?.prepare;
  const searches = s.workload.load_mode === 'FIND_MAX_CONCURRENCY';
  const mode = s.workload.load_mode;
  const guards = limitWords(s.guardrails);
  const params = Object.entries(s.workload.params ?? {});
  return (
    <section className="panel pad facts">
      <dl className="defs">
        <dt>Target</dt>
        <dd>
          {connection} · {s.target?.adapter}
          {s.target?.table_name && (
            <>
              {' '}
              · <code>{s.target?.table_name}</code>
            </>
          )}
        </dd>
        <dt>Sample data</dt>
        <dd>
          {prepare
            ? `${prepare.rows ? `${plain(count(prepare.rows))} rows` : 'rows set by the workload'}; ` +
              'an existing table is ' +
              existing[prepare.if_exists]
            : 'none; the table must exist'}
        </dd>
        <dt>Workload</dt>
        <dd>
          {s.workload.plugin}
          {params.map(([k, v]) => (
            <span key={k} className="param">
              <span className="muted">{humanize(k)}:</span> {briefValue(v)}
            </span>
          ))}
        </dd>
      </dl>
      <dl className="defs">
        <dt>Load</dt>
        <dd>
          {searches
            ? `search for the limit, over ${s.find_max?.unit === 'rate' ? 'operations per second' : 'connections'}`
            : `${mode === 'CONCURRENCY' ? 'closed loop' : capitalize(humanize(mode))} ` +
              `· ${s.workload.concurrent_connections} connections`}
          {s.workload.target_qps ? ` · ${plain(count(s.workload.target_qps))}/s` : ''}
          {s.workload.think_time_ms ? ` · think time ${s.workload.think_time_ms} ms` : ''} · seed {s.workload.seed}
        </dd>
        <dt>Time</dt>
        <dd>
          {duration(s.workload.warmup_seconds)} warm-up,{' '}
          {searches
            ? `steps of ${duration(Number(s.find_max?.step_duration_seconds ?? 30))}, ` +
              `${duration(Number(s.find_max?.max_duration_seconds ?? 1800))} at most`
            : `${duration(s.workload.duration_seconds)} measurement`}
        </dd>
        <dt>Scaling</dt>
        <dd>
          {capitalize(humanize(s.scaling.mode))} · {s.scaling.worker_count}{' '}
          {s.scaling.worker_count === 1 ? 'worker' : 'workers'} of up to {s.scaling.per_worker_capacity} connections
        </dd>
        {Object.keys(s.tags ?? {}).length > 0 && (
          <>
            <dt>
              <Term tip={terms.tags}>Tags</Term>
            </dt>
            <dd>
              <Tags tags={s.tags} limit={50} />
            </dd>
          </>
        )}
        <dt>Thresholds</dt>
        <dd>
          {s.thresholds?.length ? s.thresholds.join(' · ') : 'no thresholds'}
          {guards.length > 0 && (
            <span className="muted">
              {' '}
              · stops beyond {guards.join(', ')} for {s.guardrails?.hold_seconds ?? 5} s
            </span>
          )}
          {(s.rules?.length ?? 0) > 0 && (
            <span className="muted"> · rules: {s.rules!.map((r) => r.name).join(', ')}</span>
          )}
        </dd>
      </dl>
    </section>
  );
}
