import { type ReactNode, useState } from 'react';
import type { RunDetail, Summary } from '../api/types';
import { Icon } from '../design/icons';
import { BaselineComparison, BaselineSummary } from '../drift/BaselineComparison';
import { ByLoad } from './ByLoad';
import { DeletedExecutions } from './DeletedExecutions';
import { Guardrails } from './Guardrails';
import { NoteDialog, NotePanel, useNote } from './Notes';
import { RecordProblems } from './RecordProblems';
import { RunRemarks } from './Remarks';
import { Rules } from './Rules';
import type { Columns } from './series';
import { connectionsLine, summaryLines } from './summaryLines';
import { causesSummary } from './validity';
import { ValidityNotice } from './ValidityNotice';

const openKey = 'loadstone.about-run';

/** useRememberedOpen keeps whether the line is open in this browser. */
function useRememberedOpen(): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(() => {
    try {
      return localStorage.getItem(openKey) === 'open';
    } catch {
      return false;
    }
  });
  return [
    open,
    (now) => {
      setOpen(now);
      try {
        localStorage.setItem(openKey, now ? 'open' : '');
      } catch {
        // Without storage the choice lasts for this visit.
      }
    },
  ];
}

const plural = (n: number, word: string) => `${n} ${word}${n === 1 ? '' : 's'}`;

/** aboutFacts are the short facts of the line: how many notes, loads, guardrails and rules it opens to. */
export function aboutFacts(run: RunDetail, s: Summary | null): string[] {
  const notes = s ? summaryLines(s).length + (connectionsLine(s.connections) ? 1 : 0) : 0;
  const limits = Object.entries(run.scenario_config.guardrails ?? {}).filter(
    ([name, limit]) => name !== 'hold_seconds' && limit !== null && limit !== undefined,
  ).length;
  const rules = run.scenario_config.rules?.length ?? 0;
  const loads = s?.by_load?.length ?? 0;
  return [
    ...(notes > 0 ? [plural(notes, 'note')] : []),
    ...(loads > 0 ? [plural(loads, 'load')] : []),
    ...(limits > 0 ? [plural(limits, 'guardrail')] : []),
    ...(rules > 0 ? [plural(rules, 'rule')] : []),
    ...(run.executions_deleted_at ? ['executions deleted'] : []),
  ];
}

/**
 * AboutRun is one line on a finished run: doubts about its figures, the comparison with the baseline, and how many
 * notes there are. It opens to all of them.
 */
export function AboutRun({ run, measured, c }: { run: RunDetail; measured: boolean; c: Columns }) {
  const [open, setOpen] = useRememberedOpen();
  const [editing, setEditing] = useState(false);
  const s = measured ? run.summary : null;
  const note = useNote(run.run_id).data?.text ?? '';
  const causes = run.summary?.validity_detail?.verdict === 'DEGRADED' ? (run.summary.validity_detail.causes ?? []) : [];
  const items: ReactNode[] = [
    causes.length > 0 && (
      <strong key="doubt" className="about-doubt">
        <Icon name="warn" size={14} /> {causesSummary(causes)}
      </strong>
    ),
    note !== '' && (
      <span key="note" className="about-note clip" dir="auto">
        {note}
      </span>
    ),
    <BaselineSummary key="baseline" run={run} />,
    ...aboutFacts(run, s).map((f) => <span key={f}>{f}</span>),
  ].filter(Boolean);
  return (
    <>
      <details className="panel about-run" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>
          <span className="about-items">{items}</span>
          <span className="muted">{open ? 'Less' : 'Details'}</span>
        </summary>
        {open && (
          <div className="stack body">
            <NotePanel run={run} onEdit={() => setEditing(true)} />
            <ValidityNotice run={run} live={null} c={c} />
            {measured && <RecordProblems run={run} />}
            <DeletedExecutions run={run} />
            <BaselineComparison run={run} />
            {s && <ByLoad run={run} s={s} />}
            <RunRemarks s={s} live={null} />
            <Guardrails run={run} live={null} c={c} />
            <Rules run={run} live={null} />
          </div>
        )}
      </details>
      {editing && <NoteDialog run={run} onClose={() => setEditing(false)} />}
    </>
  );
}
