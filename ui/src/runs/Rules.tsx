import type { Payload, Rule, RuleState, RunDetail } from '../api/types';
import { Term } from '../design/Controls';
import { count, timeOfDay } from '../design/format';
import { Mark } from '../design/icons';
import { Num } from '../design/Num';
import { terms } from '../design/terms';

type Shape = Parameters<typeof Mark>[0]['shape'];

const ruleStateLabels: Record<RuleState['status'], { label: string; tone: string; shape: Shape; what: string }> = {
  RUNNING: { label: 'Watching', tone: 'ok', shape: 'dot', what: 'The rule is active.' },
  TRIGGERED: { label: 'Stopped the run', tone: 'bad', shape: 'cross', what: 'The row of this rule stopped the run.' },
  ENDED: { label: 'Ended', tone: '', shape: 'square', what: 'The rule ended with the run.' },
  FAILED: { label: 'Failed', tone: 'bad', shape: 'cross', what: 'The rule failed. The run continued without it.' },
};

/** ruleStates are the current states in a live run, else the final ones. */
function ruleStates(run: RunDetail, live: Payload | null): RuleState[] {
  return live?.rules?.length ? live.rules : (run.rules ?? []);
}

/** Rules lists a run's rules and their results; nothing without rules. */
export function Rules({ run, live }: { run: RunDetail; live: Payload | null }) {
  const rules = run.scenario_config.rules ?? [];
  if (rules.length === 0) return null;
  const states = ruleStates(run, live);
  return (
    <section className="panel rules" aria-label="Rules">
      <h2 className="h3">
        <Term tip={terms.rules}>Rules</Term>
      </h2>
      <ul>
        {rules.map((r) => (
          <RuleRow key={r.name} rule={r} state={states.find((s) => s.name === r.name)} />
        ))}
      </ul>
    </section>
  );
}

function RuleRow({ rule, state }: { rule: Rule; state: RuleState | undefined }) {
  const s = state && ruleStateLabels[state.status];
  return (
    <li>
      <div className="rule-head">
        <b>{rule.name}</b>
        {s && (
          <span className={`badge ${s.tone}`} title={s.what}>
            <Mark shape={s.shape} />
            {s.label}
          </span>
        )}
        <span className="muted">
          {rule.do === 'webhook' ? `calls ${rule.url}` : 'stops the run'}
          {state && (
            <>
              {' · read '}
              <Num q={count(state.rows_in)} /> {state.rows_in === 1 ? 'row' : 'rows'}
              {', gave '}
              <Num q={count(state.rows_out)} />
            </>
          )}
        </span>
      </div>
      {state?.failure && <p className="problem">{state.failure}</p>}
      {state?.last_row && (
        <p className="rule-row">
          {state.last_at && <span className="muted nowrap">{timeOfDay(state.last_at)}</span>}{' '}
          <code>{state.last_row}</code>
        </p>
      )}
      <details>
        <summary>Statement</summary>
        <pre>{rule.when.trimEnd()}</pre>
      </details>
    </li>
  );
}
