import type { Worked } from '../api/types';
import { ago } from '../design/format';

/** When the database behind a connection last answered, in words. */
export function workedWords(worked: Worked | null, now = Date.now()): string {
  if (!worked) return 'Not known to have worked yet: test it.';
  const by = worked.by === 'test' ? 'a test' : 'a run';
  const since = worked.changed_since ? ', before the connection was changed' : '';
  return `Last worked ${ago(worked.at, now)}, for ${by}${since}.`;
}
