import { terms } from '../design/terms';
import { NumberField, SelectField, useForm } from './fields';
import { get } from './schema';

/** FindMaxFields configures the search for the limit. */
export function FindMaxFields() {
  const { config } = useForm();
  const rate = get(config, 'find_max.unit') === 'rate';
  const level = (field: string, label: string, placeholder: string, help: string) => (
    <NumberField
      path={`find_max.${field}`}
      label={label}
      unit={rate ? '/s' : 'conn.'}
      placeholder={placeholder}
      help={help}
    />
  );
  return (
    <>
      <div className="form-grid">
        <SelectField
          path="find_max.unit"
          label="Searches over"
          options={[
            { value: 'connections', label: 'Connections' },
            { value: 'rate', label: 'Operations per second' },
          ]}
        />
        {rate ? (
          <>
            {level('start_rate', 'First step', '500', 'The rate of the warm-up and the first step.')}
            {level('rate_increment', 'Increment', 'as the first step', 'Added by each step of the climb.')}
            {level('max_rate', 'At most', 'no limit', 'The highest rate to try.')}
          </>
        ) : (
          <>
            {level('start_concurrency', 'First step', '5', 'Of the warm-up and the first step, the baseline.')}
            {level('concurrency_increment', 'Increment', '10', 'Added by each step of the climb.')}
            {level('max_concurrency', 'At most', 'what fits', 'Empty: what the workers and the target allow.')}
          </>
        )}
      </div>
      <div className="form-grid">
        <NumberField
          path="find_max.step_duration_seconds"
          label="Step"
          unit="s"
          placeholder="30"
          help="Each step is measured so long, after 2 s at most to settle."
        />
        <NumberField path="find_max.max_duration_seconds" label="Longest search" unit="s" placeholder="1800" />
        <NumberField
          path="find_max.latency_stability_pct"
          label="P95 over the first step"
          unit="%"
          placeholder="20"
          tip={terms.baseline}
        />
        <NumberField path="find_max.max_error_rate_pct" label="Errors" unit="%" placeholder="1" />
      </div>
      <div className="form-grid">
        <NumberField path="find_max.slo.p95_ms" label="P95 objective" unit="ms" placeholder="none" tip={terms.slo} />
        <NumberField path="find_max.slo.p99_ms" label="P99 objective" unit="ms" placeholder="none" />
        <NumberField
          path="workload.repeat"
          label="Searches"
          placeholder="1"
          help="Made so often in one run; the spread of the answers is told."
        />
      </div>
    </>
  );
}
