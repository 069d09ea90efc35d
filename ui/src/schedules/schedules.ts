import type { FieldError, Schedule, ScheduledStart } from '../api/types';

/** examples are expressions to begin with. */
export const examples = [
  { value: '0 2 * * *', label: 'every night at 2:00' },
  { value: '0 2 * * mon-fri', label: 'Monday to Friday at 2:00' },
  { value: '@weekly', label: 'every Sunday at midnight' },
  { value: '0 */6 * * *', label: 'every six hours' },
] as const;

/** browserZone is the time zone of this browser, UTC where it tells none. */
export const browserZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

/** ScheduleDraft is a schedule being edited. */
export interface ScheduleDraft {
  name: string;
  template_id: string;
  cron: string;
  time_zone: string;
  paused: boolean;
}

export const draftOf = (s: Schedule | null, template = ''): ScheduleDraft => ({
  name: s?.name ?? '',
  template_id: s?.template_id ?? template,
  cron: s?.cron ?? examples[0].value,
  time_zone: s?.time_zone ?? browserZone(),
  paused: s?.paused ?? false,
});

/** zonedTime is a moment as a clock in a time zone shows it. */
export function zonedTime(iso: string, zone: string): string {
  try {
    return new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      weekday: 'short',
      day: 'numeric',
      month: 'short',
      year: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      timeZoneName: 'short',
    }).format(new Date(iso));
  } catch {
    return iso; // the browser does not know the zone
  }
}

/** stateText says when a schedule starts a run next, or why it does not. */
export function stateText(s: Schedule): string {
  if (s.suspended_reason) return `Suspended: ${s.suspended_reason}.`;
  if (s.paused || !s.next_due) return 'Paused.';
  return `Next: ${zonedTime(s.next_due, s.time_zone)}`;
}

const outcomes: Record<ScheduledStart['outcome'], string> = {
  STARTING: 'Starting',
  STARTED: 'Started',
  SKIPPED: 'Skipped',
  MISSED: 'Missed',
  FAILED: 'Failed',
};

/** outcomeText names what became of a start; of several that were missed, their number. */
export function outcomeText(st: ScheduledStart): string {
  const text = outcomes[st.outcome];
  return st.missed && st.missed > 1 ? `${text} ${st.missed} times` : text;
}

/** outcomeTone is the tone of a badge. */
export const outcomeTone = (st: ScheduledStart): '' | 'ok' | 'bad' =>
  st.outcome === 'STARTED' ? 'ok' : st.outcome === 'STARTING' ? '' : 'bad';

/** fieldErrors maps the server's errors by field. */
export function fieldErrors(fields: FieldError[]): Record<string, string> {
  const out: Record<string, string> = {};
  for (const f of fields) out[f.field.replace(/^body\./, '')] ??= f.hint ? `${f.message}. ${f.hint}` : f.message;
  return out;
}
