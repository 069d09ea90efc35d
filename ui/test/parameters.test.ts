import { describe, expect, it } from 'vitest';
import type { KeptValue } from '../src/api/types';
import { cutOff, leftOut, shown, unseen } from '../src/runs/parameters';

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
    expect(shown(value({ length: 12 }))).toEqual({ text: 'text(12)', value: false });
    expect(shown(value({ type: 'bytes', length: 10_000_000 })).text).toBe('bytes(10,000,000)');
    expect(shown(value({ type: 'i64' })).text).toBe('number');
    expect(shown(value({ type: 'timestamp' })).text).toBe('time');
  });
  it('is NULL in either way, and not the text of that name', () => {
    expect(shown(value({ type: 'null' }))).toEqual({ text: 'NULL', value: true });
    expect(shown(value({ text: 'NULL', length: 4 }))).toEqual({ text: 'NULL', value: true });
  });
  it('is what it is when it is shown', () => {
    expect(shown(value({ text: '<b>', length: 3 }))).toEqual({ text: '<b>', value: true });
    expect(shown(value({ type: 'bytes', text: '00ff', length: 2 })).text).toBe('\\x00ff');
    expect(shown(value({ type: 'i64', text: '-5' })).text).toBe('-5');
  });
  it('says how long it was when it is cut', () => {
    expect(cutOff(value({ text: 'lo', length: 1_000_000, cut: true }))).toBe('the beginning of 1,000,000 bytes');
    expect(cutOff(value({ text: 'lo', length: 2 }))).toBe('');
  });
});

it('a list says why there are no values', () => {
  expect(unseen({ mode: 'masked', values_shown: false })).toContain('binds: masked');
  expect(unseen({ mode: 'plain', values_shown: false })).toContain('not shown');
  expect(unseen({ mode: 'none', values_shown: false })).toContain('binds: none');
  expect(unseen({ mode: 'plain', values_shown: true })).toBe('');
});

it('a list says for how many executions there was no room', () => {
  expect(leftOut({ left_out: 0 })).toBe('');
  expect(leftOut({ left_out: 1 })).toBe('There was no room for 1 further execution of this run.');
  expect(leftOut({ left_out: 4711 })).toContain('4,711 further executions');
});
