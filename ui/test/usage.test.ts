import { expect, test } from 'vitest';
import { lastAnswerText, nameList } from '../src/connections/usage';

test('when a connection last worked, and that it was changed since', () => {
  const now = Date.parse('2026-11-24T12:00:00Z');
  const at = '2026-11-24T11:57:00Z';
  expect(lastAnswerText(null)).toBe('Not tested yet.');
  expect(lastAnswerText({ at, by: 'test', changed_since: false }, now)).toBe('Last worked 3 min ago, for a test.');
  expect(lastAnswerText({ at, by: 'run', run_id: 'r', changed_since: true }, now)).toBe(
    'Last worked 3 min ago, for a run, before the connection was changed.',
  );
});

test('names in a sentence', () => {
  expect(nameList(['a'], 5)).toBe('a');
  expect(nameList(['a', 'b', 'c'], 5)).toBe('a, b and c');
  expect(nameList(['a', 'b', 'c'], 2)).toBe('a, b and 1 more');
});
