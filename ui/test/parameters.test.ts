import { describe, expect, it } from 'vitest';
import type { KeptValue } from '../src/api/types';
import { hiddenValuesNote, omittedNote, truncationNote, valueText } from '../src/runs/parameters';

const value = (v: Partial<KeptValue>): KeptValue => ({
  name: 'a',
  parameters: [1],
  type: 'text',
  length: 0,
  text: null,
  cut: false,
  ...v,
});

describe('a parameter', () => {
  it('is told by its type and length while it is masked', () => {
    expect(valueText(value({ length: 12 }))).toEqual({ text: 'text(12)', value: false });
    expect(valueText(value({ type: 'bytes', length: 10_000_000 })).text).toBe('bytes(10,000,000)');
    expect(valueText(value({ type: 'i64' })).text).toBe('number');
    expect(valueText(value({ type: 'timestamp' })).text).toBe('time');
  });
  it('is NULL in either way, and not the text of that name', () => {
    expect(valueText(value({ type: 'null' }))).toEqual({ text: 'NULL', value: true });
    expect(valueText(value({ text: 'NULL', length: 4 }))).toEqual({ text: 'NULL', value: true });
  });
  it('is what it is when it is shown', () => {
    expect(valueText(value({ text: '<b>', length: 3 }))).toEqual({ text: '<b>', value: true });
    expect(valueText(value({ type: 'bytes', text: '00ff', length: 2 })).text).toBe('\\x00ff');
    expect(valueText(value({ type: 'i64', text: '-5' })).text).toBe('-5');
  });
  it('says how long it was when it is cut', () => {
    expect(truncationNote(value({ text: 'lo', length: 1_000_000, cut: true }))).toBe(
      'the beginning of 1,000,000 bytes',
    );
    expect(truncationNote(value({ text: 'lo', length: 2 }))).toBe('');
  });
});

it('a list says why there are no values', () => {
  expect(hiddenValuesNote({ mode: 'masked', values_shown: false })).toContain('binds: masked');
  expect(hiddenValuesNote({ mode: 'plain', values_shown: false })).toContain('not shown');
  expect(hiddenValuesNote({ mode: 'none', values_shown: false })).toContain('binds: none');
  expect(hiddenValuesNote({ mode: 'plain', values_shown: true })).toBe('');
});

it('a list says for how many executions there was no room', () => {
  expect(omittedNote({ left_out: 0 })).toBe('');
  expect(omittedNote({ left_out: 1 })).toBe('No space was left for 1 more execution of this run.');
  expect(omittedNote({ left_out: 4711 })).toContain('4,711 more executions');
});
