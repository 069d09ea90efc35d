import type { GeneratorSample, TrialFault } from '../api/types';
import { hasErrors, Problems, tone, useErrors } from '../templates/fields';
import { shownAs } from '../templates/schema';
import {
  type Bind,
  type GeneratorField,
  generatorOf,
  generators,
  readValues,
  withGenerator,
  writeValues,
} from './binds';
import { useEffect, useState } from 'react';
import type { Place } from './columns';

const types = ['i64', 'f64', 'text', 'bytes', 'bool', 'timestamp'];

/** BindRow edits a parameter: name, generator and samples. */
export function BindRow(props: {
  bind: Bind;
  path: string;
  /** A replay supplies the values: only the type is edited. */
  plain: boolean;
  /** The earlier statements of its transaction. */
  earlier: string[];
  sample: GeneratorSample | undefined;
  values: (string | null)[] | undefined;
  /** Where the parameter is used, if known. */
  place: Place | undefined;
  /** The database's error about its value in the last trial. */
  fault: TrialFault | undefined;
  onChange: (b: Bind) => void;
}) {
  const { bind: b } = props;
  const errors = useErrors(props.path);
  const generator = generatorOf(b);
  const shown = props.values?.length ? props.values : (props.sample?.values ?? []);
  const problem = props.sample?.problem;
  const set = (field: string, value: unknown) => {
    const next = { ...b };
    if (value === undefined) delete next[field];
    else next[field] = value;
    props.onChange(next);
  };
  return (
    <div className="bind field">
      <div className="bind-name">
        <code>:{b.name}</code>
        {props.place?.column && (
          <span className="muted" title={`${props.place.relation!.name}.${props.place.column.name}`}>
            {props.place.column.type}
          </span>
        )}
      </div>
      {props.plain ? (
        <select
          className="input"
          aria-label={`Type of :${b.name}`}
          value={shownAs(b.type)}
          onChange={(e) => set('type', e.target.value)}
        >
          {types.map((t) => (
            <option key={t}>{t}</option>
          ))}
        </select>
      ) : (
        <>
          <select
            className="input"
            aria-label={`Generator of :${b.name}`}
            aria-invalid={hasErrors(errors) || Boolean(problem)}
            data-field={props.path}
            value={generator}
            onChange={(e) => props.onChange(withGenerator(b, e.target.value))}
          >
            {generator === '' && <option value="">Choose…</option>}
            {Object.entries(generators).map(([k, g]) => (
              <option key={k} value={k}>
                {g.label}
              </option>
            ))}
            {(props.earlier.length > 0 || generator === 'ref') && (
              <option value="ref">From an earlier statement</option>
            )}
          </select>
          <div className="bind-fields">
            {generator === 'ref' ? (
              <input
                className="input mono"
                aria-label={`Statement and column of :${b.name}`}
                placeholder={`${props.earlier.at(-1) ?? 'see'}.column`}
                value={shownAs(b.ref)}
                onChange={(e) => set('ref', e.target.value)}
              />
            ) : (
              generators[generator]?.fields.map((f) => (
                <FieldInput key={f.name} field={f} of={b.name} value={b[f.name]} onChange={(v) => set(f.name, v)} />
              ))
            )}
          </div>
        </>
      )}
      {(errors.length > 0 || problem) && (
        <div className={errors.length ? tone(errors) : 'problem'}>
          {errors.length ? <Problems errors={errors} path={props.path} /> : <span>{problem}</span>}
        </div>
      )}
      {props.fault && (
        <div className="problem">
          <span>
            {props.fault.message}.
            {props.place?.column && ` It is for ${props.place.relation!.name}.${props.place.column.name}.`} Fix:{' '}
            {props.fault.hint}.
          </span>
        </div>
      )}
      {!props.plain && !problem && (
        <div className="bind-samples" aria-label={`Samples of :${b.name}`}>
          {shown.length > 0
            ? shown.map((v, i) => <code key={i}>{v ?? 'NULL'}</code>)
            : props.sample?.needs_table && (
                <span className="muted">Its values come from the table. Press “Try it”.</span>
              )}
        </div>
      )}
    </div>
  );
}

function FieldInput(props: { field: GeneratorField; of: string; value: unknown; onChange: (v: unknown) => void }) {
  const { field: f } = props;
  const list = f.kind === 'values' || f.kind === 'numbers';
  const valueAsText = list ? writeValues(props.value) : shownAs(props.value);
  const [text, setText] = useState(valueAsText);
  useEffect(() => setText(valueAsText), [valueAsText]);
  const read = (t: string): unknown => {
    if (t.trim() === '') return undefined;
    if (list) return readValues(t);
    const [v] = readValues(t);
    return f.kind === 'number' || f.name === 'value' ? v : t;
  };
  return (
    <label>
      <span className="muted">{f.label}</span>
      <input
        className={`input${f.kind === 'number' ? ' numeric' : ''}`}
        aria-label={`${f.label} of :${props.of}`}
        value={text}
        placeholder={f.placeholder}
        spellCheck={false}
        onChange={(e) => {
          setText(e.target.value);
          // A list is parsed on blur: a trailing comma is not a value yet.
          if (!list) props.onChange(read(e.target.value));
        }}
        onBlur={() => list && props.onChange(read(text))}
      />
    </label>
  );
}
