import type { FieldError, RuleDraft } from '../api/types';
import { Term } from '../design/Controls';
import { Icon } from '../design/icons';
import { terms } from '../design/terms';
import { hasErrors, Problems, tone, useErrors, useForm } from './fields';

const path = 'rules';

/** first is the default of a new rule: it stops a run whose latency stays high. */
const first = `SELECT MAX(p99Ms) AS p99 FROM worker_statistics WHERE phase = 'MEASUREMENT'
WINDOW SLIDING(timestamp, SIZE 10 SEC, ADVANCE BY 1 SEC)
HAVING MIN(p99Ms) > 200 AND MAX(timestamp) - MIN(timestamp) > 8500`;

/** RulesField edits a run's rules; errors appear below their statement. */
export function RulesField() {
  const { config, set } = useForm();
  const list = config.rules ?? [];
  const errors = useErrors(path);
  const change = (next: RuleDraft[]) => set(path, next.length ? next : undefined);
  const put = (i: number, part: Partial<RuleDraft>) => change(list.with(i, { ...list[i]!, ...part }));
  const free = () => {
    let n = list.length + 1;
    while (list.some((r) => r.name?.toLowerCase() === `rule ${n}`)) n++;
    return `rule ${n}`;
  };
  return (
    <fieldset className="field" data-field={path}>
      <legend className="label">
        <Term tip={terms.rules}>Rules</Term>
      </legend>
      {list.map((r, i) => {
        const of = (field: string) => `${path}[${i}].${field}`;
        const found = errors.filter((e) => e.field.startsWith(`${path}[${i}]`));
        const attrs = (field: string, label: string) => ({
          'aria-label': `Rule ${i + 1}: ${label}`,
          'aria-invalid': hasErrors(found.filter((e) => e.field === of(field) || e.field === `${path}[${i}]`)),
          'data-field': of(field),
        });
        const posts = r.do === 'webhook';
        return (
          <div key={i} className="rule-field">
            <div className="row">
              <input
                className="input"
                {...attrs('name', 'name')}
                value={r.name ?? ''}
                placeholder="slow"
                onChange={(e) => put(i, { name: e.target.value })}
              />
              <select
                className="input auto"
                {...attrs('do', 'action')}
                value={r.do ?? 'stop'}
                onChange={(e) =>
                  put(i, e.target.value === 'webhook' ? { do: 'webhook' } : { do: 'stop', url: undefined })
                }
              >
                <option value="stop">stops the run</option>
                <option value="webhook">calls a webhook</option>
              </select>
              <button
                type="button"
                className="btn quiet icon"
                aria-label={`Remove rule ${i + 1}`}
                onClick={() => change(list.toSpliced(i, 1))}
              >
                <Icon name="close" />
              </button>
            </div>
            {posts && (
              <input
                className="input mono"
                {...attrs('url', 'address')}
                value={r.url ?? ''}
                placeholder="https://hooks.example.com/…"
                spellCheck={false}
                onChange={(e) => put(i, { url: e.target.value })}
              />
            )}
            <textarea
              className="input mono"
              {...attrs('when', 'statement')}
              rows={Math.min(12, Math.max(3, (r.when ?? '').split('\n').length))}
              value={r.when ?? ''}
              spellCheck={false}
              onChange={(e) => put(i, { when: e.target.value })}
            />
            {found.length > 0 && (
              <div className={tone(found)}>
                <Problems errors={found.map((e) => ({ ...e, field: of('x') }))} path={of('x')} />
                {found.map((e) => e.excerpt && <pre key={e.message}>{e.excerpt}</pre>)}
              </div>
            )}
          </div>
        );
      })}
      <button
        type="button"
        className="btn small fit"
        onClick={() => change([...list, { name: free(), when: first, do: 'stop' }])}
      >
        <Icon name="plus" size={14} /> Add rule
      </button>
      <div className={tone(own(errors))}>
        {own(errors).length > 0 ? (
          <Problems errors={own(errors)} path={path} />
        ) : (
          'A SELECT over worker_statistics, kind_statistics, statement_statistics, executions, worker_resources, ' +
          'heartbeats, warehouse or run_events. It sees this run only.'
        )}
      </div>
    </fieldset>
  );
}

/** own are the errors of the list itself. */
const own = (errors: FieldError[]) => errors.filter((e) => e.field === path);
