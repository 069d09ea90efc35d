import { createContext, type ReactNode, useContext, useEffect, useId, useState } from 'react';
import { safeText } from '../api/safeText';
import type { ScenarioDraft } from '../api/types';
import { Term } from '../design/Controls';
import { Icon } from '../design/icons';
import { appliesTo } from './draft';
import { type Finding, withFormLabels } from './findings';
import { get, shownAs } from './schema';

interface Form {
  config: ScenarioDraft;
  errors: Finding[];
  set: (path: string, value: unknown) => void;
  /** Changes the document when a control does more than setting its field. */
  change: (path: string, next: (config: ScenarioDraft) => ScenarioDraft) => void;
}

export const FormContext = createContext<Form>({
  config: {} as ScenarioDraft,
  errors: [],
  set: () => {},
  change: () => {},
});
export const useForm = () => useContext(FormContext);

/** useErrors returns the errors of a control. */
export function useErrors(path: string): Finding[] {
  const { errors } = useForm();
  return errors.filter((e) => appliesTo(path, e.field));
}

/** isSet reports whether a value of the document says something. */
function isSet(v: unknown): boolean {
  if (v === undefined || v === null || v === '') return false;
  return typeof v !== 'object' || Object.keys(v).length > 0;
}

/** countSet counts the paths that a document sets. */
export const countSet = (config: ScenarioDraft, paths: string[]): number =>
  paths.filter((p) => isSet(get(config, p))).length;

/** More folds the fields at these paths away, and says how many of them are set. It opens for an error. */
export function More({ paths, children }: { paths: string[]; children: ReactNode }) {
  const { config, errors } = useForm();
  const [open, setOpen] = useState(false);
  const wrong = hasErrors(errors.filter((e) => paths.some((p) => appliesTo(p, e.field))));
  if (paths.length === 0) return null;
  const set = countSet(config, paths);
  return (
    <details className="more" open={open || wrong} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        More <span className="muted">{`${paths.length} ${paths.length === 1 ? 'field' : 'fields'}, ${set} set`}</span>
      </summary>
      <div className="stack">{children}</div>
    </details>
  );
}

interface FieldProps {
  path: string;
  label: string;
  tip?: string;
  help?: ReactNode;
  optional?: boolean;
  className?: string;
  /** Keeps the help next to errors, when it explains the format. */
  keepHelp?: boolean;
}

/** Field is a labelled control with help or errors. */
export function Field(
  props: FieldProps & {
    children: (a: {
      id: string;
      'aria-invalid': boolean;
      'aria-describedby': string;
      'data-field': string;
    }) => ReactNode;
  },
) {
  const id = useId();
  const errors = useErrors(props.path);
  const note = `${id}-note`;
  return (
    <div className={`field ${props.className ?? ''}`}>
      <label className="label" htmlFor={id}>
        {props.tip ? <Term tip={props.tip}>{props.label}</Term> : props.label}
        {props.optional && <span className="muted">optional</span>}
      </label>
      {props.children({ id, 'aria-invalid': hasErrors(errors), 'aria-describedby': note, 'data-field': props.path })}
      <div id={note} className={tone(errors)}>
        {errors.length ? <Problems errors={errors} path={props.path} /> : props.help}
      </div>
      {errors.length > 0 && props.keepHelp && <div className="help">{props.help}</div>}
    </div>
  );
}

/** hasErrors ignores warnings. */
export const hasErrors = (errors: Finding[]) => errors.some((e) => !e.warning);

/** tone is the style of the line below a control: help, error or warning. */
export const tone = (errors: Finding[]) => (errors.length === 0 ? 'help' : hasErrors(errors) ? 'problem' : 'caution');

export function Problems({ errors, path }: { errors: Finding[]; path: string }) {
  return (
    <>
      <Icon name={hasErrors(errors) ? 'alert' : 'warn'} size={14} />
      <span>
        {errors.map((e, i) => (
          <span key={e.field + e.message}>
            {i > 0 && ' '}
            {e.field !== path && <code>{e.field.slice(path.length).replace(/^\./, '')} </code>}
            {withFormLabels(e.message)}
            {e.hint ? `: ${withFormLabels(e.hint)}${/[.?]$/.test(e.hint) ? '' : '.'}` : '.'}
          </span>
        ))}
      </span>
    </>
  );
}

export function TextField(
  props: FieldProps & { placeholder?: string; long?: boolean; mono?: boolean; autoFocus?: boolean },
) {
  const { config, set } = useForm();
  const value = get(config, props.path);
  const text = typeof value === 'string' ? value : '';
  const change = (v: string) => set(props.path, props.optional && v === '' ? undefined : v);
  return (
    <Field {...props}>
      {(a) =>
        props.long ? (
          <textarea
            {...a}
            className="input"
            rows={2}
            value={text}
            placeholder={props.placeholder}
            onChange={(e) => change(e.target.value)}
          />
        ) : (
          <input
            {...a}
            className={`input${props.mono ? ' mono' : ''}`}
            value={text}
            placeholder={props.placeholder}
            spellCheck={!props.mono}
            autoFocus={props.autoFocus}
            onChange={(e) => change(e.target.value)}
          />
        )
      }
    </Field>
  );
}

/** NumberInput can be empty while typing; invalid text is sent unchanged, so that its error appears. */
export function NumberInput(props: {
  value: unknown;
  onChange: (v: number | string | undefined) => void;
  unit?: string;
  placeholder?: string;
  attrs?: Record<string, unknown>;
}) {
  const valueAsText = shownAs(props.value);
  const [text, setText] = useState(valueAsText);
  useEffect(() => {
    setText((now) =>
      now.trim() !== '' && Number(now) === Number(valueAsText) && valueAsText !== '' ? now : valueAsText,
    );
  }, [valueAsText]);
  return (
    <div className={props.unit ? 'with-unit' : ''}>
      <input
        {...props.attrs}
        className="input numeric"
        inputMode="decimal"
        autoComplete="off"
        value={text}
        placeholder={props.placeholder}
        onChange={(e) => {
          setText(e.target.value);
          const t = e.target.value.trim().replaceAll(/[\s_,](?=\d{3})/g, '');
          const n = Number(t);
          props.onChange(t === '' ? undefined : Number.isFinite(n) ? n : t);
        }}
      />
      {props.unit && <span>{props.unit}</span>}
    </div>
  );
}

export function NumberField(props: FieldProps & { unit?: string; placeholder?: string }) {
  const { config, set } = useForm();
  return (
    <Field {...props}>
      {(a) => (
        <NumberInput
          attrs={a}
          unit={props.unit}
          placeholder={props.placeholder}
          value={get(config, props.path)}
          onChange={(v) => set(props.path, v)}
        />
      )}
    </Field>
  );
}

export function SelectField(
  props: FieldProps & {
    options: { value: string; label: string; disabled?: boolean }[];
    /** Label of the default, when the field is omitted. */
    unset?: string;
    /** Replaces setting the field, when the choice affects more. */
    onPick?: (value: string) => void;
  },
) {
  const { config, set } = useForm();
  const value = shownAs(get(config, props.path) ?? props.unset);
  const known = props.options.some((o) => o.value === value);
  return (
    <Field {...props}>
      {(a) => (
        <select
          {...a}
          className="input"
          value={value}
          onChange={(e) => (props.onPick ? props.onPick(e.target.value) : set(props.path, e.target.value))}
        >
          {!known && <option value={value}>{value === '' ? 'Choose…' : safeText(value)}</option>}
          {props.options.map((o) => (
            <option key={o.value} value={o.value} disabled={o.disabled}>
              {o.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** ListField is a short list of texts, one per line. */
export function ListField(props: FieldProps & { placeholder: string; add: string }) {
  const { config, set } = useForm();
  const list = (get(config, props.path) as string[] | null | undefined) ?? [];
  const errors = useErrors(props.path);
  const change = (next: string[]) => set(props.path, next.length ? next : undefined);
  return (
    <fieldset className="field">
      <legend className="label">{props.tip ? <Term tip={props.tip}>{props.label}</Term> : props.label}</legend>
      {list.map((v, i) => (
        <div key={i} className="row nowrap">
          <input
            className="input mono"
            aria-label={`${props.label} ${i + 1}`}
            data-field={`${props.path}[${i}]`}
            aria-invalid={errors.some((e) => e.field === `${props.path}[${i}]` || e.field === props.path)}
            value={v}
            placeholder={props.placeholder}
            spellCheck={false}
            onChange={(e) => change(list.with(i, e.target.value))}
          />
          <button
            type="button"
            className="btn quiet icon"
            aria-label={`Remove ${props.label.toLowerCase()} ${i + 1}`}
            onClick={() => change(list.toSpliced(i, 1))}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      <button type="button" className="btn small fit" onClick={() => change([...list, ''])}>
        <Icon name="plus" size={14} /> {props.add}
      </button>
      <div className={tone(errors)}>{errors.length ? <Problems errors={errors} path={props.path} /> : props.help}</div>
    </fieldset>
  );
}

/** TagsField keeps its rows apart from the document, so that a name may be empty or duplicate while it is typed. */
export function TagsField(props: FieldProps & { add: string }) {
  const { config, set } = useForm();
  const storedTags = (get(config, props.path) as Record<string, string> | null | undefined) ?? {};
  const [rows, setRows] = useState<[string, string][]>(() => Object.entries(storedTags));
  const errors = useErrors(props.path);
  const storedJson = JSON.stringify(storedTags);
  useEffect(() => {
    setRows((now) => {
      const currentJson = JSON.stringify(Object.fromEntries(now.filter(([k]) => k !== '')));
      return currentJson === storedJson ? now : Object.entries(JSON.parse(storedJson) as Record<string, string>);
    });
  }, [storedJson]);
  const change = (next: [string, string][]) => {
    setRows(next);
    const doc = Object.fromEntries(next.filter(([k]) => k !== ''));
    set(props.path, Object.keys(doc).length ? doc : undefined);
  };
  return (
    <fieldset className="field">
      <legend className="label">{props.label}</legend>
      {rows.map(([k, v], i) => (
        <div key={i} className="row nowrap">
          <input
            className="input"
            aria-label={`Name of tag ${i + 1}`}
            value={k}
            placeholder="ticket"
            onChange={(e) => change(rows.with(i, [e.target.value, v]))}
          />
          <input
            className="input"
            aria-label={`Value of tag ${i + 1}`}
            value={v}
            placeholder="PERF-1"
            onChange={(e) => change(rows.with(i, [k, e.target.value]))}
          />
          <button
            type="button"
            className="btn quiet icon"
            aria-label={`Remove tag ${i + 1}`}
            onClick={() => change(rows.toSpliced(i, 1))}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      <button type="button" className="btn small fit" onClick={() => setRows([...rows, ['', '']])}>
        <Icon name="plus" size={14} /> {props.add}
      </button>
      <div className={tone(errors)}>{errors.length ? <Problems errors={errors} path={props.path} /> : props.help}</div>
    </fieldset>
  );
}
