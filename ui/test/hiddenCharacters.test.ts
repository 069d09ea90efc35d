import { expect, it } from 'vitest';
import type { ScenarioDraft } from '../src/api/types';
import { hiddenCharacterWarnings, removeHiddenCharacters } from '../src/templates/hiddenCharacters';

const config = {
  name: 'first \u202etxt.exe',
  description: 'plain',
  thresholds: ['qps > 5', 'p95_ms \u200b< 5'],
  tags: { 'ti\u2066cket': 'PERF-1' },
  workload: { params: { weights: { READ: 5 } } },
} as unknown as ScenarioDraft;

it('what nobody sees in a template is named where it stands, as a warning', () => {
  const found = hiddenCharacterWarnings(config);
  expect(found.map((f) => f.field)).toEqual(['name', 'thresholds[1]', 'tags.ti\ufffdcket']);
  expect(found.map((f) => /U\+[0-9A-F]+$/.exec(f.message)?.[0])).toEqual(['U+202E', 'U+200B', 'U+2066']);
  expect(found.every((f) => f.warning)).toBe(true);
  expect(hiddenCharacterWarnings({ ...config, name: 'a', thresholds: [], tags: {} })).toEqual([]);
});

it('it is taken out of texts and names, and nothing else is', () => {
  expect(removeHiddenCharacters(config)).toEqual({
    name: 'first txt.exe',
    description: 'plain',
    thresholds: ['qps > 5', 'p95_ms < 5'],
    tags: { ticket: 'PERF-1' },
    workload: { params: { weights: { READ: 5 } } },
  });
  expect(removeHiddenCharacters('a\u202eb')).toBe('ab');
});
