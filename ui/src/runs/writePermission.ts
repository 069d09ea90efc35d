import type { CheckResult, Run } from '../api/types';

/** allowWrites is the template field that permits writes to existing tables. */
const allowWrites = 'target.allow_writes';

/** PreflightFindings are a preflight's checks, per target in a matrix. */
export type PreflightFindings = TargetFindings & { targets?: TargetFindings[] | null };
type TargetFindings = { checks: Pick<CheckResult, 'outcome' | 'message' | 'field'>[] | null };

/**
 * neededWrites is what a run would do to existing tables without permission, from the preflight; null when it needs
 * none.
 */
export function neededWrites(preflight: PreflightFindings | undefined, index = 0): string | null {
  const findings = preflight?.targets?.[index] ?? preflight;
  const lines = (findings?.checks ?? [])
    .filter((c) => c.outcome === 'failed' && (c.field ?? '').endsWith('.allow_writes'))
    .map((c) => c.message);
  return lines.length ? lines.join(' ') : null;
}

/** refusedWrites is the same, for a run that was rejected for it. */
export function refusedWrites(run: Pick<Run, 'status' | 'cancellation_reason'>): string | null {
  const reason = run.status === 'FAILED' ? (run.cancellation_reason ?? '') : '';
  const at = reason.indexOf(`${allowWrites}: `);
  if (at < 0) return null;
  return reason
    .slice(0, at)
    .replace(/^Set-up failed: /, '')
    .trim();
}
