import { lazy, Suspense, useEffect, useState } from 'react';
import { capitalize, humanize } from '../design/format';
import { SkeletonRows } from '../design/States';
import { Field, NumberInput, Problems, tone, useErrors, useForm } from './fields';
import { fieldKind, get, limits, type Schema, schemaType, shownAs } from './schema';

/** Lazy: the statement editor includes a text editor that other workloads do not need. */
const StatementsField = lazy(() => import('../statements/StatementsField'));

const title = (key: string, s: Schema) => s.title ?? capitalize(humanize(key));

function help(s: Schema): string {
  const fallback =
    s.default !== undefined && typeof s.default !== 'object'
      ? `Default ${typeof s.default === 'boolean' ? (s.default ? 'yes' : 'no') : shownAs(s.default)}.`
      : '';
  return [s.description, fallback].filter(Boolean).join(' ');
}

/** ParamsForm is a plugin's parameter form, generated from its JSON Schema. */
export function ParamsForm({ schema, path }: { schema: Schema; path: string }) {
  const fields = Object.entries(schema.properties ?? {});
  const big = fields.filter(([, s]) => ['weights', 'json', 'list'].includes(fieldKind(s)));
  const small = fields.filter((f) => !big.includes(f));
  return (
    <div className="stack">
      {big.map(([k, s]) => (
        <Param key={k} name={k} schema={s} path={`${path}.${k}`} />
      ))}
      <div className="form-grid">
        {small.map(([k, s]) => (
          <Param key={k} name={k} schema={s} path={`${path}.${k}`} />
        ))}
      </div>
    </div>
  );
}

function Param({ name, schema: s, path }: { name: string; schema: Schema; path: string }) {
  const { config, set } = useForm();
  const value = get(config, path);
  const label = title(name, s);
  switch (fieldKind(s)) {
    case 'weights':
      return <Weights label={label} schema={s} path={path} />;
    case 'group':
      return (
        <fieldset className="field">
          <legend className="label">{label}</legend>
          <div className="pair">
            {Object.entries(s.properties ?? {}).map(([k, p]) => (
              <Param key={k} name={k} schema={p} path={`${path}.${k}`} />
            ))}
          </div>
          <div className="help">{s.description}</div>
        </fieldset>
      );
    case 'choice':
      return (
        <Field path={path} label={label} help={help(s)}>
          {(a) => (
            <select
              {...a}
              className="input"
              value={shownAs(value)}
              onChange={(e) =>
                set(path, e.target.value === '' ? undefined : s.enum!.find((v) => String(v) === e.target.value))
              }
            >
              <option value="">{s.default === undefined ? 'not set' : `${shownAs(s.default)} (default)`}</option>
              {s.enum!.map((v) => (
                <option key={String(v)} value={String(v)}>
                  {String(v)}
                </option>
              ))}
            </select>
          )}
        </Field>
      );
    case 'switch':
      return (
        <Field path={path} label={label} help={help(s)}>
          {(a) => (
            <select
              {...a}
              className="input"
              value={shownAs(value)}
              onChange={(e) => set(path, e.target.value === '' ? undefined : e.target.value === 'true')}
            >
              <option value="">{s.default === undefined ? 'not set' : `${s.default ? 'yes' : 'no'} (default)`}</option>
              <option value="true">yes</option>
              <option value="false">no</option>
            </select>
          )}
        </Field>
      );
    case 'number':
    case 'integer':
      return (
        <Field path={path} label={label} help={[help(s), limits(s) && `Range ${limits(s)}.`].filter(Boolean).join(' ')}>
          {(a) => (
            <NumberInput attrs={a} value={value} placeholder={shownAs(s.default)} onChange={(v) => set(path, v)} />
          )}
        </Field>
      );
    case 'list': {
      const numeric = schemaType(s.items!) !== 'string';
      return (
        <Field path={path} label={label} help={`${help(s)} Separated by commas.`}>
          {(a) => (
            <input
              {...a}
              className="input"
              defaultValue={Array.isArray(value) ? value.join(', ') : ''}
              onBlur={(e) => {
                const parts = e.target.value
                  .split(',')
                  .map((x) => x.trim())
                  .filter(Boolean);
                set(path, parts.length ? (numeric ? parts.map(Number) : parts) : undefined);
              }}
            />
          )}
        </Field>
      );
    }
    case 'json':
      if (s.items?.properties?.sql && s.items.properties.binds)
        return (
          <Suspense fallback={<SkeletonRows rows={4} />}>
            <StatementsField path={path} plain={!s.items.properties.binds.items?.properties?.generator} />
          </Suspense>
        );
      return <JsonParam label={label} schema={s} path={path} />;
    default:
      return (
        <Field path={path} label={label} help={help(s)}>
          {(a) => (
            <input
              {...a}
              className="input"
              value={typeof value === 'string' ? value : ''}
              placeholder={shownAs(s.default)}
              onChange={(e) => set(path, e.target.value === '' ? undefined : e.target.value)}
            />
          )}
        </Field>
      );
  }
}

/** Weights edits shares, each with its percentage of the total. */
function Weights({ label, schema, path }: { label: string; schema: Schema; path: string }) {
  const { config, set } = useForm();
  const errors = useErrors(path);
  const weights = get(config, path) as Record<string, number> | undefined;
  const used = weights ?? ((schema.default ?? schema.examples?.[0]) as Record<string, number> | undefined) ?? {};
  const total = Object.values(used).reduce((n, v) => n + (typeof v === 'number' ? v : 0), 0);
  const colorOf = (k: string, i: number) =>
    /^[A-Z_]+$/.test(k) ? `var(--k-${k.toLowerCase()}, var(--accent))` : `var(--e-${(i % 5) + 1})`;
  const entries = Object.entries(schema.properties ?? {});
  return (
    <fieldset className="field">
      <legend className="label">{label}</legend>
      <div className="mix-bar" aria-hidden="true">
        {entries.map(([k], i) => (
          <i key={k} style={{ flexGrow: total > 0 ? (used[k] ?? 0) / total : 0, background: colorOf(k, i) }} />
        ))}
      </div>
      <div className="weights">
        {entries.map(([k, p], i) => {
          const share = total > 0 && typeof used[k] === 'number' ? ((used[k] ?? 0) / total) * 100 : 0;
          return (
            <label key={k} title={p.description}>
              <span className="row nowrap">
                <i className="swatch" style={{ background: colorOf(k, i) }} />
                {p.title ?? capitalize(humanize(k))}
              </span>
              <NumberInput
                value={used[k] ?? 0}
                attrs={{
                  'data-field': `${path}.${k}`,
                  'aria-invalid': errors.some((e) => e.field === `${path}.${k}` || e.field === path),
                }}
                onChange={(v) => set(path, { ...used, [k]: v ?? 0 })}
              />
              <span className="muted share-text">{share ? `${Number(share.toPrecision(3))} %` : '–'}</span>
            </label>
          );
        })}
      </div>
      <div className={tone(errors)}>
        {errors.length ? <Problems errors={errors} path={path} /> : schema.description}
      </div>
    </fieldset>
  );
}

/** JsonParam edits an unstructured parameter as JSON. */
function JsonParam({ label, schema, path }: { label: string; schema: Schema; path: string }) {
  const { config, set } = useForm();
  const value = get(config, path);
  const json = value === undefined ? '' : JSON.stringify(value, null, 2);
  const [text, setText] = useState(json);
  const [bad, setBad] = useState(false);
  useEffect(() => setText(json), [json]);
  return (
    <Field path={path} label={label} keepHelp help={bad ? 'Not valid JSON yet.' : `${help(schema)} As JSON.`}>
      {(a) => (
        <textarea
          {...a}
          aria-invalid={bad || a['aria-invalid']}
          className="input mono"
          rows={4}
          value={text}
          spellCheck={false}
          onChange={(e) => {
            setText(e.target.value);
            setBad(false);
          }}
          onBlur={() => {
            if (text.trim() === '') return set(path, undefined);
            try {
              set(path, JSON.parse(text));
              setBad(false);
            } catch {
              setBad(true);
            }
          }}
        />
      )}
    </Field>
  );
}
