import type { Accounting } from '../api/types';
import { Term } from '../design/Controls';
import { exact, sentence } from '../design/format';
import { Icon } from '../design/icons';
import { Notice } from '../design/States';
import { terms } from '../design/terms';

/**
 * Whether a run worker ended without telling its counts, as the server puts it: then what is known of them is the least
 * that there can have been, and no side of an equation can be held against the other.
 */
export const untold = (a: Pick<Accounting, 'problems'>) =>
  (a.problems ?? []).some((p) => p.includes('ended without telling its counts'));

interface Part {
  label: string;
  value: number;
  tone: 'ok' | 'bad' | 'plain' | 'warmup';
  tip?: string;
}

/** Draws "left = sum of parts" as two bars of one scale, so that a difference is visible as a length. */
function Balance({ left, parts, of, told }: { left: Part; parts: Part[]; of: number; told: boolean }) {
  if (!told) return <Told parts={[left, ...parts]} />;
  const sum = parts.reduce((n, p) => n + p.value, 0);
  const balanced = sum === left.value;
  const lost = left.value - sum;
  const width = (v: number) => `${of > 0 ? (v / of) * 100 : 0}%`;
  return (
    <div className={`balance ${balanced ? 'ok' : 'bad'}`}>
      <div className="equation">
        <Icon name={balanced ? 'check' : 'alert'} size={18} />
        <span>
          <Named part={left} /> <b>{exact(left.value)}</b>
        </span>
        <span className="sign">{balanced ? '=' : '≠'}</span>
        {parts.map((p, i) => (
          <span key={p.label}>
            {i > 0 && <span className="sign">+ </span>}
            <Named part={p} /> <b>{exact(p.value)}</b>
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

/** The counts of an equation that some run workers told and others did not; records are there or not. */
function Told({ parts }: { parts: Part[] }) {
  const of = (p: Part) =>
    p.label === 'recorded' ? exact(p.value) : p.value > 0 ? `at least ${exact(p.value)}` : 'not told';
  return (
    <div className="balance">
      <div className="equation">
        {parts.map((p) => (
          <span key={p.label}>
            <Named part={p} /> <b>{of(p)}</b>
          </span>
        ))}
      </div>
    </div>
  );
}

function Named({ part }: { part: Part }) {
  return part.tip ? <Term tip={part.tip}>{part.label}</Term> : part.label;
}

/** Why operations were dropped; runs of older versions do not say. */
function Dropped({ a }: { a: Accounting }) {
  const d = a.dropped_by_reason;
  if (!d || d.max_in_flight + d.stopped + d.not_dispatched === 0) return null;
  const reasons = [
    d.max_in_flight > 0 && `${exact(d.max_in_flight)} came while max_in_flight were not finished`,
    d.stopped > 0 && `${exact(d.stopped)} waited for a connection when the run was given up`,
    d.not_dispatched > 0 && `${exact(d.not_dispatched)} were due when the load stopped and not dispatched`,
  ].filter((r): r is string => r !== false);
  return (
    <p className="muted">
      Of the {exact(a.dropped)} dropped operations {reasons.join(', ')}.
      {!!a.warmup_dropped && ` ${exact(a.warmup_dropped)} of them were due in the warm-up.`}
    </p>
  );
}

/** Nothing was asked for, sent or recorded: a run that ended before its load began. */
const nothing = (a: Accounting) => a.scheduled + a.started + a.recorded === 0;

/** What the account comes to. Where nothing was asked for, it says that, and not that all of it is there. */
const verdict = (a: Accounting, told: boolean) =>
  !a.balanced
    ? told
      ? 'Does not balance'
      : 'Counts are missing'
    : nothing(a)
      ? 'No operation was asked for'
      : 'Everything is accounted for';

/** The accounting identity of a run: nothing is sampled and nothing is lost silently. */
export function AccountingView({ a }: { a: Accounting }) {
  const told = !untold(a);
  const empty = a.balanced && nothing(a);
  return (
    <section className="panel">
      <header>
        <h2 className="h3">
          <Term tip={terms.accounting}>Accounting</Term>
        </h2>
        <span className={`badge ${a.balanced ? 'ok' : 'bad'}`}>{verdict(a, told)}</span>
      </header>
      <div className="body stack">
        {!a.balanced && (
          <Notice tone="bad">
            {told ? (
              <>
                <strong>Some operations are not accounted for.</strong> {sentence((a.problems ?? []).join('; '))}. Do
                not rely on these figures.
              </>
            ) : (
              <>
                <strong>{sentence((a.problems ?? []).join('; '))}.</strong> How many operations were scheduled and
                started is not known, so that the record cannot be held against it.
              </>
            )}
          </Notice>
        )}
        {empty ? (
          <p className="muted">The run ended before its load began: there is nothing to hold against each other.</p>
        ) : (
          <Sums a={a} told={told} />
        )}
      </div>
    </section>
  );
}

/** The equations of an account, and what is counted in them. */
function Sums({ a, told }: { a: Accounting; told: boolean }) {
  const of = Math.max(a.scheduled, a.started, a.recorded, 1);
  const scheduled: Part = {
    label: 'scheduled',
    value: a.scheduled,
    tone: 'plain',
    tip:
      'Operations that the schedule or the workload asked for, warm-up included. They are counted there, ' +
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
        told={told}
      />
      <Balance
        left={started}
        parts={[
          { label: 'succeeded', value: a.succeeded, tone: 'ok' },
          { label: 'failed', value: a.failed, tone: 'bad' },
        ]}
        of={of}
        told={told}
      />
      <Balance
        left={started}
        parts={[
          { label: 'recorded', value: a.recorded, tone: 'ok', tip: 'Executions in the Parquet files of this run.' },
        ]}
        of={of}
        told={told}
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
