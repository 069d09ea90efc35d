import { expect, test } from 'vitest';
import { workedWords } from '../src/connections/used';

test('when a connection last worked, and that it was changed since', () => {
  const now = Date.parse('2026-11-24T12:00:00Z');
  const at = '2026-11-24T11:57:00Z';
  expect(workedWords(null)).toBe('Not known to have worked yet: test it.');
  expect(workedWords({ at, by: 'test', changed_since: false }, now)).toBe('Last worked 3 min ago, for a test.');
  expect(workedWords({ at, by: 'run', run_id: 'r', changed_since: true }, now)).toBe(
    'Last worked 3 min ago, for a run, before the connection was changed.',
  );
});
