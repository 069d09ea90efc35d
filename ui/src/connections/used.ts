import type { Worked } from '../api/types';
import { ago } from '../design/format';

/** When the database behind a connection last answered, in words. */
export function workedWords(worked: Worked | null, now = Date.now()): string {
  if (!worked) return 'Not known to have worked yet: test it.';
  const by = worked.by === 'test' ? 'a test' : 'a run';
  const since = worked.changed_since ? ', before the connection was changed' : '';
  return `Last worked ${ago(worked.at, now)}, for ${by}${since}.`;
}

/** Names as they stand in a sentence; of more than `most` the number of the others. */
export function listed(names: string[], most: number): string {
  if (names.length > most) return `${names.slice(0, most).join(', ')} and ${names.length - most} more`;
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
