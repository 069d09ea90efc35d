import type { GuardrailName, Payload, RunDetail } from '../api/types';
import { Term } from '../design/Controls';
import { percent, plain } from '../design/format';
import { Icon } from '../design/icons';
import { terms } from '../design/terms';
import type { Columns, Sample } from './series';

const names: Record<GuardrailName, { label: string; of: (s: Sample) => number | null }> = {
  max_cpu_percent: { label: 'Generator CPU', of: (s) => s.cpu },
  max_memory_percent: { label: 'Generator memory', of: (s) => s.memory },
  max_host_cpu_percent: { label: 'Host CPU', of: (s) => s.hostCpu },
  max_host_memory_percent: { label: 'Host memory', of: (s) => s.hostMemory },
};

export interface Guard {
  name: GuardrailName;
  label: string;
  limit: number;
  /** The latest value of a live run, the highest of a finished one; null when nothing was reported. */
  value: number | null;
}

/** The limits that a run has, each with what was seen of it. */
export function guards(run: Pick<RunDetail, 'scenario_config'>, c: Columns, live: Payload | null): Guard[] {
  const limits = run.scenario_config.guardrails ?? {};
  const rows = c.rows.filter((r) => r !== null);
  const now = live?.custom_metrics?.resources;
  const latest: Record<GuardrailName, number | null> = {
    max_cpu_percent: now?.cpu_pct ?? null,
    max_memory_percent: now?.memory_pct ?? null,
    max_host_cpu_percent: now?.host_cpu_pct ?? null,
    max_host_memory_percent: now?.host_memory_pct ?? null,
  };
  const peak = (of: (s: Sample) => number | null) =>
    rows.reduce<number | null>((m, r) => {
      const v = of(r);
      return v === null ? m : Math.max(m ?? 0, v);
    }, null);
  return (Object.keys(names) as GuardrailName[]).flatMap((name) => {
    const limit = limits[name];
    if (limit === null || limit === undefined) return [];
    return [{ name, label: names[name].label, limit, value: live ? latest[name] : peak(names[name].of) }];
  });
}

/** The guardrails of a run: how far each is from its limit. Nothing when it has none. */
export function Guardrails({ run, c, live }: { run: RunDetail; c: Columns; live: Payload | null }) {
  const list = guards(run, c, live);
  if (list.length === 0) return null;
  return (
    <section className="panel guards" aria-label="Guardrails">
      <h3>
        <Term tip={terms.guardrails}>Guardrails</Term>
        <span className="muted note">{live ? 'now' : 'highest second'}</span>
      </h3>
      {list.map((g) => {
        const over = g.value !== null && g.value > g.limit;
        const near = !over && g.value !== null && g.value > g.limit * 0.85;
        return (
          <div key={g.name} className={`guard ${over ? 'bad' : near ? 'warn' : ''}`}>
            <span className="guard-words">
              {over && <Icon name="alert" size={14} />}
              {g.label}{' '}
              <b title={percent(g.value).exact}>{plain(percent(g.value, 2))}</b>{' '}
              <span className="muted">of {g.limit} %</span>
              {over && <span className="sr">, over the limit</span>}
            </span>
            <span className="guard-bar" aria-hidden="true">
              <i style={{ width: `${Math.min(100, g.value ?? 0)}%` }} />
              <u style={{ left: `${Math.min(100, g.limit)}%` }} />
            </span>
          </div>
        );
      })}
    </section>
  );
}
