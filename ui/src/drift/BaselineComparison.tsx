import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { api } from '../api/client';
import type { RunDetail } from '../api/types';
import { OperatorOnly } from '../app/OperatorOnly';
import { difference, interval } from '../compare/model';
import { Icon } from '../design/icons';
import { Failed, Skeleton } from '../design/States';
import { useBaseline, useBaselineComparison, useSetBaseline } from './baseline';
import { figures, relabelBaselineNote } from './model';
import { DriftStateBadge } from './DriftStateBadge';
import './drift.css';

/** BaselineComparison compares a finished run with its template's baseline; nothing when it cannot be compared. */
export function BaselineComparison({ run }: { run: RunDetail }) {
  const template = run.template_id || null;
  if (!template || run.status !== 'COMPLETED' || !run.summary?.operations) return null;
  return <ComparisonWithBaseline run={run} template={template} />;
}

/** BaselineSummary is the comparison with the baseline in a few words; nothing without a baseline. */
export function BaselineSummary({ run }: { run: RunDetail }) {
  const template = run.template_id || null;
  const comparable = template !== null && run.status === 'COMPLETED' && Boolean(run.summary?.operations);
  const baseline = useBaseline(comparable ? template : null);
  const base = baseline.data?.run_id ?? null;
  const against = useBaselineComparison(base, run.run_id);
  if (!comparable || base === null) return null;
  if (base === run.run_id) return <DriftStateBadge of="baseline" />;
  if (!against.data) return against.error ? <span>not comparable with the baseline</span> : <Skeleton width={160} />;
  return (
    <span>
      vs. baseline:{' '}
      {figures
        .filter((f) => f.value === 'qps' || f.value === 'p95_ms')
        .flatMap((f) => {
          const m = against.data.metrics?.find((x) => x.name === f.value);
          return m && m.difference !== null ? [`${f.label} ${difference(m)} (${m.verdict})`] : [];
        })
        .join(', ')}
    </span>
  );
}

function ComparisonWithBaseline({ run, template }: { run: RunDetail; template: string }) {
  const baseline = useBaseline(template);
  const set = useSetBaseline(template);
  if (baseline.isPending)
    return (
      <section className="panel against" aria-busy="true" aria-label="Against the baseline">
        <Skeleton width={320} height={18} />
      </section>
    );
  if (baseline.error)
    return (
      <section className="panel" aria-label="Against the baseline">
        <Failed what="The baseline could not be read." error={baseline.error} retry={() => baseline.refetch()} />
      </section>
    );
  const base = baseline.data?.run_id ?? null;
  const isBaseline = base === run.run_id;
  const drift = (
    <Link href={`/history?template=${encodeURIComponent(template)}`} className="quiet-link">
      Drift over time
    </Link>
  );
  return (
    <section className="panel against" aria-label="Against the baseline">
      {base === null ? (
        <span>This template has no baseline.</span>
      ) : isBaseline ? (
        <span>
          <DriftStateBadge of="baseline" /> Other runs of the template are compared with this run.
        </span>
      ) : (
        <Differences run={run} base={base} />
      )}
      <span className="row end">
        {drift}
        <OperatorOnly>
          {isBaseline ? (
            <button type="button" className="btn small" disabled={set.isPending} onClick={() => set.mutate(null)}>
              Remove baseline
            </button>
          ) : (
            <button type="button" className="btn small" disabled={set.isPending} onClick={() => set.mutate(run.run_id)}>
              <Icon name="check" size={12} /> Make this the baseline
            </button>
          )}
        </OperatorOnly>
      </span>
    </section>
  );
}

function Differences({ run, base }: { run: RunDetail; base: string }) {
  const against = useBaselineComparison(base, run.run_id);
  const other = useQuery({
    queryKey: ['run', base],
    queryFn: ({ signal }) => api.get('/api/runs/{id}', { path: { id: base }, signal }),
  });
  const to = (
    <Link href={`/compare?runs=${base},${run.run_id}`} className="btn small">
      <Icon name="chart" size={12} /> Compare
    </Link>
  );
  if (against.isPending) return <Skeleton width={320} height={18} />;
  if (against.error)
    return (
      <Failed
        what="The run could not be compared with its baseline."
        error={against.error}
        retry={() => against.refetch()}
      />
    );
  const name = other.data?.test_name;
  return (
    <>
      <span>Against the baseline{name && name !== run.test_name ? ` “${name}”` : ''}</span>
      {figures.map((f) => {
        const m = against.data.metrics?.find((x) => x.name === f.value);
        if (!m || m.difference === null) return null;
        const between = interval(m);
        return (
          <span key={f.value} className="against-figure">
            <span className="muted">{f.label}</span> <b>{difference(m)}</b>
            {between && <span className="muted">({between})</span>} <DriftStateBadge of={m.verdict} reason={m.reason} />
          </span>
        );
      })}
      {to}
      {(against.data.notes?.length ?? 0) > 0 && (
        <ul className="against-notes" aria-label="Notes on the comparison">
          {against.data.notes!.map((n) => (
            <li key={n}>{relabelBaselineNote(n, base, run.run_id)}</li>
          ))}
        </ul>
      )}
    </>
  );
}
