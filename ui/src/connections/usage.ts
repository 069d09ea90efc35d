import type { Worked } from '../api/types';
import { ago } from '../design/format';

/** lastAnswerText says when the connection's database last answered. */
export function lastAnswerText(worked: Worked | null, now = Date.now()): string {
  if (!worked) return 'Not tested yet.';
  const by = worked.by === 'test' ? 'a test' : 'a run';
  const since = worked.changed_since ? ', before the connection was changed' : '';
  return `Last worked ${ago(worked.at, now)}, for ${by}${since}.`;
}

/** nameList joins names for a sentence; names beyond the limit are counted. */
export function nameList(names: string[], limit: number): string {
  if (names.length > limit) return `${names.slice(0, limit).join(', ')} and ${names.length - limit} more`;
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
