import type { FieldError, StageDraft } from '../api/types';
import { Term } from '../design/Controls';
import { duration } from '../design/format';
import { Icon } from '../design/icons';
import { terms } from '../design/terms';
import { NumberInput, Problems, useErrors, useForm } from './fields';
import { corners, type StageLevel, totalSeconds } from './stages';

/** StagesField edits ramps and steps of the rate or connections, with a preview. */
export function StagesField() {
  const { config, set } = useForm();
  const path = 'workload.stages';
  const of: StageLevel = config.workload.load_mode === 'QPS' ? 'target_qps' : 'connections';
  const unit = of === 'target_qps' ? '/s' : 'conn.';
  const start = of === 'target_qps' ? config.workload.target_qps : config.workload.concurrent_connections;
  const list = config.workload.stages ?? [];
  const errors = useErrors(path);
  const change = (next: StageDraft[]) => set(path, next.length ? next : undefined);
  const wrong = (i: number, field: string) =>
    errors.some((e) => e.field === `${path}[${i}].${field}` || e.field === `${path}[${i}]`);
  const put = (i: number, field: keyof StageDraft, v: unknown) => change(list.with(i, { ...list[i]!, [field]: v }));
  const attrs = (i: number, field: string, label: string) => ({
    'aria-label': `Stage ${i + 1}: ${label}`,
    'aria-invalid': wrong(i, field),
    'data-field': `${path}[${i}].${field}`,
  });
  return (
    <fieldset className="field" data-field={path}>
      <legend className="label">
        <Term tip={terms.stages}>Stages</Term>
      </legend>
      {list.length > 0 && <Preview points={corners(list, start, of)} />}
      {list.map((s, i) => (
        <div key={i} className="row nowrap stage">
          <NumberInput
            attrs={attrs(i, 'duration_seconds', 'seconds')}
            unit="s"
            value={s.duration_seconds}
            onChange={(v) => put(i, 'duration_seconds', v)}
          />
          <select
            className="input auto"
            {...attrs(i, 'ramp', 'ramp')}
            value={s.ramp ?? 'linear'}
            onChange={(e) => put(i, 'ramp', e.target.value)}
          >
            <option value="linear">ramps to</option>
            <option value="step">steps to</option>
          </select>
          <NumberInput
            attrs={attrs(i, of, of === 'target_qps' ? 'rate' : 'connections')}
            unit={unit}
            value={s[of]}
            onChange={(v) => put(i, of, v)}
          />
          <button
            type="button"
            className="btn quiet icon"
            aria-label={`Remove stage ${i + 1}`}
            onClick={() => change(list.toSpliced(i, 1))}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      <button
        type="button"
        className="btn small fit"
        onClick={() =>
          change([...list, { duration_seconds: 30, [of]: list.at(-1)?.[of] ?? start ?? 100, ramp: 'linear' }])
        }
      >
        <Icon name="plus" size={14} /> Add stage
      </button>
      <div className={errors.length ? 'problem' : 'help'}>
        {errors.length ? (
          <Problems errors={errors.map(inWords)} path={path} />
        ) : list.length ? (
          `The stages last ${duration(totalSeconds(list))}.`
        ) : (
          `Without stages the ${of === 'target_qps' ? 'rate' : 'number of connections'} does not change.`
        )}
      </div>
    </fieldset>
  );
}

/** inWords numbers the stage of an error from 1. */
function inWords(e: FieldError): FieldError {
  const at = /^workload\.stages\[(\d+)\](?:\.(\w+))?$/.exec(e.field);
  if (!at) return e;
  const what = { duration_seconds: 'seconds ', target_qps: 'rate ', connections: 'connections ', ramp: 'ramp ' }[
    at[2] ?? ''
  ];
  return { ...e, field: 'workload.stages', message: `Stage ${Number(at[1]) + 1}: ${what ?? ''}${e.message}` };
}

const width = 480;
const height = 64;

function Preview({ points }: { points: [number, number][] }) {
  const end = points.at(-1)![0] || 1;
  const top = Math.max(...points.map((p) => p[1]), 1e-9);
  const line = points
    .map(([t, v]) => `${((t / end) * width).toFixed(1)},${(height - 2 - (v / top) * (height - 6)).toFixed(1)}`)
    .join(' ');
  return (
    <svg
      className="stages-preview"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`The stages as a curve, up to ${top.toLocaleString('en-US')}`}
    >
      <polygon points={`0,${height} ${line} ${width},${height}`} className="area" />
      <polyline points={line} className="line" />
    </svg>
  );
}
