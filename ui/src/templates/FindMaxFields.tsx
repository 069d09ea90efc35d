import { terms } from '../design/terms';
import { NumberField, SelectField, useForm } from './fields';
import { get } from './schema';

/** useLevel renders a field of the search that is a level: a rate, or a number of connections. */
function useLevel() {
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
  return { rate, level };
}

/** FindMaxFields configures the search for the limit: its objective first, then where it searches. */
export function FindMaxFields() {
  const { rate, level } = useLevel();
  return (
    <div className="form-grid">
      <NumberField
        path="find_max.slo.p95_ms"
        label="Objective: P95 under"
        unit="ms"
        placeholder="none"
        tip={terms.slo}
        help="Empty: the search ends where throughput stops growing or latency leaves that of the first step."
      />
      <SelectField
        path="find_max.unit"
        label="Search over"
        options={[
          { value: 'connections', label: 'Connections' },
          { value: 'rate', label: 'Operations per second' },
        ]}
      />
      {rate ? (
        <>
          {level('start_rate', 'First step', '500', 'The rate of the warm-up and the first step.')}
          {level('max_rate', 'Maximum', 'no limit', 'The highest rate to try.')}
        </>
      ) : (
        <>
          {level('start_concurrency', 'First step', '5', 'The connections of the warm-up and the first step.')}
          {level('max_concurrency', 'Maximum', 'automatic', 'Empty: the limit of the workers and the target.')}
        </>
      )}
    </div>
  );
}

/** moreFindMax are the paths of MoreFindMaxFields. */
export const moreFindMax = (rate: boolean) => [
  'find_max.slo.p99_ms',
  rate ? 'find_max.rate_increment' : 'find_max.concurrency_increment',
  'find_max.step_duration_seconds',
  'find_max.max_duration_seconds',
  'find_max.latency_stability_pct',
  'find_max.max_error_rate_pct',
  'workload.repeat',
];

/** MoreFindMaxFields are the details of the search. */
export function MoreFindMaxFields() {
  const { rate, level } = useLevel();
  return (
    <div className="form-grid">
      <NumberField path="find_max.slo.p99_ms" label="Objective: P99 under" unit="ms" placeholder="none" />
      {rate
        ? level('rate_increment', 'Increment', 'as the first step', 'Added by each step of the climb.')
        : level('concurrency_increment', 'Increment', '10', 'Added by each step of the climb.')}
      <NumberField
        path="find_max.step_duration_seconds"
        label="Step"
        unit="s"
        placeholder="30"
        help="The measured time of each step, after at most 2 s to settle."
      />
      <NumberField path="find_max.max_duration_seconds" label="Longest search" unit="s" placeholder="1800" />
      <NumberField
        path="find_max.latency_stability_pct"
        label="P95 over the first step"
        unit="%"
        placeholder="20"
        tip={terms.stability}
      />
      <NumberField path="find_max.max_error_rate_pct" label="Errors" unit="%" placeholder="1" />
      <NumberField
        path="workload.repeat"
        label="Searches"
        placeholder="1"
        help="Number of searches in one run. The result shows the spread of their answers."
      />
    </div>
  );
}
