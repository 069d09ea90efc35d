import type { Accounting, Summary } from '../api/types';
import { Term } from '../design/Controls';
import { capitalize, exact } from '../design/format';
import { Icon } from '../design/icons';
import { Notice } from '../design/States';
import { terms } from '../design/terms';

interface Part {
  label: string;
  value: number;
  tone: 'ok' | 'bad' | 'plain' | 'warmup';
  tip?: string;
}

/** Balance draws "left = sum of parts" as two bars of one scale, so that a difference is visible. */
function Balance({ left, parts, of, complete }: { left: Part; parts: Part[]; of: number; complete: boolean }) {
  if (!complete) return <ReportedCounts parts={[left, ...parts]} />;
  const sum = parts.reduce((n, p) => n + p.value, 0);
  const balanced = sum === left.value;
  const lost = left.value - sum;
  const width = (v: number) => `${of > 0 ? (v / of) * 100 : 0}%`;
  return (
    <div className={`balance ${balanced ? 'ok' : 'bad'}`}>
      <div className="equation">
        <Icon name={balanced ? 'check' : 'alert'} size={18} />
        <span>
          <PartLabel part={left} /> <b>{exact(left.value)}</b>
        </span>
        <span className="sign">{balanced ? '=' : '≠'}</span>
        {parts.map((p, i) => (
          <span key={p.label}>
            {i > 0 && <span className="sign">+ </span>}
            <PartLabel part={p} /> <b>{exact(p.value)}</b>
          </span>
        ))}
        {!balanced && <span className="difference">difference {exact(Math.abs(left.value - sum))}</span>}
      </div>
      <div className="beam" aria-hidden="true">
        <i className={left.tone} style={{ width: width(left.value) }} />
      </div>
      <div className="beam" aria-hidden="true">
        {parts
          .filter((p) => p.value > 0)
          .map((p) => (
            <i key={p.label} className={p.tone} style={{ width: width(p.value), minWidth: 3 }} />
          ))}
        {lost > 0 && <i className="bad" style={{ width: width(lost), minWidth: 8 }} />}
      </div>
    </div>
  );
}

/** ReportedCounts shows partially reported counts without an equation. */
function ReportedCounts({ parts }: { parts: Part[] }) {
  const of = (p: Part) =>
    p.label === 'recorded' ? exact(p.value) : p.value > 0 ? `at least ${exact(p.value)}` : 'not reported';
  return (
    <div className="balance">
      <div className="equation">
        {parts.map((p) => (
          <span key={p.label}>
            <PartLabel part={p} /> <b>{of(p)}</b>
          </span>
        ))}
      </div>
    </div>
  );
}

function PartLabel({ part }: { part: Part }) {
  return part.tip ? <Term tip={part.tip}>{part.label}</Term> : part.label;
}

/** Dropped shows why operations were dropped; runs of older versions lack it. */
function Dropped({ a }: { a: Accounting }) {
  const d = a.dropped_by_reason;
  if (!d || d.max_in_flight + d.stopped + d.not_dispatched === 0) return null;
  const reasons = [
    d.max_in_flight > 0 && `${exact(d.max_in_flight)} arrived while max_in_flight operations were unfinished`,
    d.stopped > 0 && `${exact(d.stopped)} were waiting for a connection when the run was stopped`,
    d.not_dispatched > 0 && `${exact(d.not_dispatched)} were due when the load stopped and were not dispatched`,
  ].filter((r): r is string => r !== false);
  return (
    <p className="muted">
      Of the {exact(a.dropped)} dropped operations {reasons.join(', ')}.
      {!!a.warmup_dropped && ` ${exact(a.warmup_dropped)} of them were due in the warm-up.`}
    </p>
  );
}

/** nothing: the run ended before its load began. */
const nothing = (a: Accounting) => a.scheduled + a.started + a.recorded === 0;

/** verdictText summarizes the account; a run without load is not called complete. */
const verdictText = (a: Accounting, complete: boolean) =>
  !a.balanced
    ? complete
      ? 'Does not balance'
      : 'Counts are missing'
    : nothing(a)
      ? 'No operations were scheduled'
      : 'Everything is accounted for';

/** AccountingView shows that every scheduled operation is accounted for. */
export function AccountingView({ f }: { f: Pick<Summary, 'accounting' | 'counts_missing'> }) {
  const a = f.accounting;
  const complete = !f.counts_missing;
  const empty = a.balanced && nothing(a);
  return (
    <section className="panel">
      <header>
        <h2 className="h3">
          <Term tip={terms.accounting}>Accounting</Term>
        </h2>
        <span className={`badge ${a.balanced ? 'ok' : 'bad'}`}>{verdictText(a, complete)}</span>
      </header>
      <div className="body stack">
        {!a.balanced && (
          <Notice tone="bad">
            {complete ? (
              <>
                <strong>Some operations are missing from the account.</strong>{' '}
                {capitalize((a.problems ?? []).join('; '))}. Do not rely on these figures.
              </>
            ) : (
              <>
                <strong>{capitalize((a.problems ?? []).join('; '))}.</strong> How many operations were scheduled and
                started is unknown, so the record cannot be checked.
              </>
            )}
          </Notice>
        )}
        {empty ? (
          <p className="muted">The run ended before its load began. There is nothing to account for.</p>
        ) : (
          <Sums a={a} complete={complete} />
        )}
      </div>
    </section>
  );
}

/** Sums are the equations of an account. */
function Sums({ a, complete }: { a: Accounting; complete: boolean }) {
  const of = Math.max(a.scheduled, a.started, a.recorded, 1);
  const scheduled: Part = {
    label: 'scheduled',
    value: a.scheduled,
    tone: 'plain',
    tip:
      'Operations that the schedule or the workload requested, including the warm-up. They are counted there, ' +
      'not added up from the parts.',
  };
  const started: Part = {
    label: 'started',
    value: a.started,
    tone: 'plain',
    tip: 'Operations that were sent to the database.',
  };
  return (
    <>
      <Balance
        left={scheduled}
        parts={[started, { label: 'dropped', value: a.dropped, tone: 'bad', tip: terms.dropped }]}
        of={of}
        complete={complete}
      />
      <Balance
        left={started}
        parts={[
          { label: 'succeeded', value: a.succeeded, tone: 'ok' },
          { label: 'failed', value: a.failed, tone: 'bad' },
        ]}
        of={of}
        complete={complete}
      />
      <Balance
        left={started}
        parts={[
          { label: 'recorded', value: a.recorded, tone: 'ok', tip: 'Executions in the Parquet files of this run.' },
        ]}
        of={of}
        complete={complete}
      />
      {a.dropped > 0 && <Dropped a={a} />}
      <p className="muted">
        Warm-up and measurement are counted together here: {exact(a.warmup)} of the recorded executions belong to the
        warm-up and are left out of the figures above; {exact(a.recorded - a.warmup)} are measured.
        {!!a.statements &&
          ` ${exact(a.statements)} statements inside transactions are recorded too; they are parts of ` +
            'these executions and counted in none of the sums.'}
      </p>
    </>
  );
}
