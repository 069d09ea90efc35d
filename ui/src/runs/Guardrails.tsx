import type { GuardrailName, Payload, RunDetail, Scenario } from '../api/types';
import { Term } from '../design/Controls';
import { latency, percent, plain } from '../design/format';
import { Icon } from '../design/icons';
import { terms } from '../design/terms';
import type { Columns, Sample } from './series';

type Limits = Record<GuardrailName, { label: string; unit: '%' | 'ms'; of: (s: Sample) => number | null }>;

/** measured ignores the warm-up, which guardrails do not evaluate. */
const measured = (of: (s: Sample) => number | null) => (s: Sample) => (s.phase === 'WARMUP' ? null : of(s));

const names: Limits = {
  max_cpu_percent: { label: 'Generator CPU', unit: '%', of: (s) => s.cpu },
  max_memory_percent: { label: 'Generator memory', unit: '%', of: (s) => s.memory },
  max_host_cpu_percent: { label: 'Host CPU', unit: '%', of: (s) => s.hostCpu },
  max_host_memory_percent: { label: 'Host memory', unit: '%', of: (s) => s.hostMemory },
  max_error_rate_pct: {
    label: 'Error rate',
    unit: '%',
    of: measured((s) => (s.qps > 0 ? (100 * s.errors) / s.qps : null)),
  },
  max_p95_ms: { label: 'P95', unit: 'ms', of: measured((s) => s.p95) },
  max_p99_ms: { label: 'P99', unit: 'ms', of: measured((s) => s.p99) },
};

/** limitWords lists a scenario's limits briefly: "P95 100 ms". */
export function limitWords(limits: Scenario['guardrails']): string[] {
  return (Object.keys(names) as GuardrailName[]).flatMap((name) => {
    const limit = limits?.[name];
    return limit === null || limit === undefined ? [] : [`${names[name].label} ${limit} ${names[name].unit}`];
  });
}

export interface Guard {
  name: GuardrailName;
  label: string;
  unit: '%' | 'ms';
  limit: number;
  /** The latest value of a live run, the highest of a finished one; null without reports. */
  value: number | null;
  /** How many of how many seconds a live run has exceeded it; 0 when it does not. */
  heldSeconds: number;
  hold: number;
}

/** guards returns a run's limits with the observed values. */
export function guards(run: Pick<RunDetail, 'scenario_config'>, c: Columns, live: Payload | null): Guard[] {
  const limits = run.scenario_config.guardrails ?? {};
  const peak = (of: (s: Sample) => number | null) =>
    c.rows.reduce<number | null>((m, r) => {
      const v = r && of(r);
      return v === null ? m : Math.max(m ?? 0, v);
    }, null);
  return (Object.keys(names) as GuardrailName[]).flatMap((name) => {
    const limit = limits[name];
    if (limit === null || limit === undefined) return [];
    const { label, unit, of } = names[name];
    const now = live?.guardrails?.find((g) => g.name === name);
    return [
      {
        name,
        label,
        unit,
        limit,
        value: live ? (now?.value ?? null) : peak(of),
        heldSeconds: now?.held_seconds ?? 0,
        hold: now?.hold_seconds ?? limits.hold_seconds ?? 5,
      },
    ];
  });
}

/** Guardrails shows how close a run is to its limits; nothing without limits. */
export function Guardrails({ run, c, live }: { run: RunDetail; c: Columns; live: Payload | null }) {
  const list = guards(run, c, live);
  if (list.length === 0) return null;
  return (
    <section className="panel guards" aria-label="Guardrails">
      <h2 className="h3">
        <Term tip={terms.guardrails}>Guardrails</Term>
        <span className="muted note">
          {live ? `now; ${list[0]!.hold} s over a limit stop the run` : 'highest second'}
        </span>
      </h2>
      {list.map((g) => {
        const over = g.value !== null && g.value > g.limit;
        const near = !over && g.value !== null && g.value > g.limit * 0.85;
        const value = g.unit === '%' ? percent(g.value, 2) : latency(g.value);
        // Percentages end at 100; latencies end a little above the limit.
        const full = g.unit === '%' && g.name !== 'max_error_rate_pct' ? 100 : g.limit > 0 ? g.limit * 1.25 : 1;
        return (
          <div key={g.name} className={`guard ${over ? 'bad' : near ? 'warn' : ''}`}>
            <span className="guard-words">
              {over && <Icon name="alert" size={14} />}
              {g.label} <b title={value.exact}>{plain(value)}</b>{' '}
              <span className="muted">
                of {g.limit} {g.unit}
                {live && g.heldSeconds > 0 && ` for ${Math.round(g.heldSeconds)} s`}
              </span>
              {over && <span className="sr">, over the limit</span>}
            </span>
            <span className="guard-bar" aria-hidden="true">
              <i style={{ width: `${Math.min(100, (100 * (g.value ?? 0)) / full)}%` }} />
              <u style={{ left: `${Math.min(100, (100 * g.limit) / full)}%` }} />
            </span>
          </div>
        );
      })}
    </section>
  );
}
