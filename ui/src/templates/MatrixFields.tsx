import { safeText } from '../api/safeText';
import { useConnections, usePlugins } from '../api/queries';
import { pluginOptions } from '../plugins/refs';
import { Icon } from '../design/icons';
import { useForm } from './fields';
import { get, shownAs } from './schema';
import { fieldProblemText } from '../design/sentences';

interface Entry {
  label?: string;
  connection?: unknown;
  adapter?: string;
  table_name?: string;
  prepare?: { rows?: number; if_exists?: string } | null;
  [more: string]: unknown;
}

const maxTargets = 8;

/** AddTarget turns one target into the first of several. */
export function AddTarget() {
  const { config, set } = useForm();
  const several = () => {
    const first = get(config, 'target') as Entry;
    const label = String(first.adapter ?? 'postgres');
    set('matrix', {
      targets: [
        { label, ...first },
        { ...first, label: `${label} 2` },
      ],
    });
    set('target', undefined);
  };
  return (
    <button type="button" className="btn" onClick={several}>
      <Icon name="plus" /> Compare with another target
    </button>
  );
}

/** MatrixFields edits the targets of a matrix; what has no field here stays as in the YAML. */
export function MatrixFields() {
  const { config, errors, set } = useForm();
  const connections = useConnections();
  const plugins = usePlugins();
  const adapters = pluginOptions(plugins.data, 'adapter');
  const list = (get(config, 'matrix.targets') as Entry[] | undefined) ?? [];
  const put = (next: Entry[]) => set('matrix.targets', next);
  const change = (i: number, more: Entry) => put(list.with(i, { ...list[i], ...more }));
  const drop = (i: number) => {
    const rest = list.filter((_, k) => k !== i);
    if (rest.length > 1) return put(rest);
    const lastTarget = { ...rest[0] };
    delete lastTarget.label;
    set('target', lastTarget);
    set('matrix', undefined);
  };
  return (
    <>
      {list.map((t, i) => {
        const wrong = errors.filter(
          (e) => e.field === `matrix.targets[${i}]` || e.field.startsWith(`matrix.targets[${i}].`),
        );
        const inline = typeof t.connection === 'object' && t.connection !== null;
        const name = t.label || `target ${i + 1}`;
        return (
          <fieldset key={i} className="matrix-target">
            <legend>
              {i + 1}. {name}
              {i === 0 && <span className="muted"> baseline of the comparison</span>}
            </legend>
            <div className="form-grid four">
              <label className="field">
                <span className="label">Label</span>
                <input
                  className="input"
                  value={t.label ?? ''}
                  maxLength={60}
                  onChange={(e) => change(i, { label: e.target.value || undefined })}
                />
              </label>
              <label className="field">
                <span className="label">Connection</span>
                <select
                  className="input"
                  value={inline ? '\u0000inline' : shownAs(t.connection)}
                  disabled={inline}
                  onChange={(e) => change(i, { connection: e.target.value })}
                >
                  {inline && <option value={'\u0000inline'}>written in the YAML</option>}
                  {!inline && !(connections.data ?? []).some((c) => c.name === t.connection) && (
                    <option value={shownAs(t.connection)}>{safeText(shownAs(t.connection)) || 'Choose…'}</option>
                  )}
                  {(connections.data ?? []).map((c) => (
                    <option key={c.connection_id} value={c.name}>
                      {c.name}
                      {c.builtin ? ' (built in)' : ''}
                    </option>
                  ))}
                </select>
              </label>
              <label className="field">
                <span className="label">Table type</span>
                <select
                  className="input"
                  value={t.adapter ?? 'postgres'}
                  onChange={(e) => change(i, { adapter: e.target.value, params: undefined })}
                >
                  {(adapters.length ? adapters : [{ value: 'postgres', label: 'postgres' }]).map((a) => (
                    <option key={a.value} value={a.value}>
                      {a.label}
                    </option>
                  ))}
                </select>
              </label>
              <label className="field">
                <span className="label">Table</span>
                <input
                  className="input mono"
                  value={t.table_name ?? ''}
                  onChange={(e) => change(i, { table_name: e.target.value || undefined })}
                />
              </label>
              <label className="field">
                <span className="label">Sample rows</span>
                <input
                  className="input"
                  type="number"
                  min={1}
                  value={t.prepare?.rows ?? ''}
                  placeholder="existing table"
                  onChange={(e) =>
                    change(i, {
                      prepare: e.target.value
                        ? { if_exists: 'use', ...t.prepare, rows: Number(e.target.value) }
                        : undefined,
                    })
                  }
                />
              </label>
              <label className="field">
                <span className="label">Warehouse</span>
                <input
                  className="input"
                  value={shownAs(t.warehouse)}
                  placeholder="the connection's"
                  onChange={(e) => change(i, { warehouse: e.target.value || undefined })}
                />
              </label>
            </div>
            {wrong.map((e) => (
              <p key={e.field + e.message} className={e.warning ? 'caution' : 'problem'} role="alert">
                <code>{e.field.replace(`matrix.targets[${i}].`, '')}</code> {fieldProblemText(e)}
              </p>
            ))}
            <button type="button" className="btn quiet small" onClick={() => drop(i)} aria-label={`Remove ${name}`}>
              <Icon name="trash" size={14} /> Remove
            </button>
          </fieldset>
        );
      })}
      <div className="row">
        <button
          type="button"
          className="btn"
          disabled={list.length >= maxTargets}
          onClick={() => put([...list, { ...list[list.length - 1], label: `target ${list.length + 1}` }])}
        >
          <Icon name="plus" /> Add a target
        </button>
        <label className="row">
          <input
            type="checkbox"
            checked={get(config, 'matrix.stop_on_failure') === true}
            onChange={(e) => set('matrix.stop_on_failure', e.target.checked || undefined)}
          />
          Stop when one fails
        </label>
      </div>
    </>
  );
}
