import type { CheckResult, Run } from '../api/types';

/** The field of a template with which its user lets a run write to tables that Loadstone did not make. */
export const allowWrites = 'target.allow_writes';

/** What a preflight found, of a matrix for each target. */
export type Looked = Found & { targets?: Found[] | null };
type Found = { checks: Pick<CheckResult, 'outcome' | 'message' | 'field'>[] | null };

/** What a run would do to tables of others and has no leave for, as the preflight says it; null when it needs none. */
export function asksToWrite(found: Looked | undefined, index = 0): string | null {
  const looked = found?.targets?.[index] ?? found;
  const lines = (looked?.checks ?? [])
    .filter((c) => c.outcome === 'failed' && (c.field ?? '').endsWith('.allow_writes'))
    .map((c) => c.message);
  return lines.length ? lines.join(' ') : null;
}

/** The same of a run that ended because it had no leave. */
export function refusedWrites(run: Pick<Run, 'status' | 'cancellation_reason'>): string | null {
  const reason = run.status === 'FAILED' ? (run.cancellation_reason ?? '') : '';
  const at = reason.indexOf(`${allowWrites}: `);
  if (at < 0) return null;
  return reason
    .slice(0, at)
    .replace(/^Set-up failed: /, '')
    .trim();
}
