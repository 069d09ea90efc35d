import { expect, it } from 'vitest';
import { formatTags, parseTags } from '../src/runs/tagLines';

it('tags are edited one a line', () => {
  expect(formatTags({ ticket: 'PERF-1', a: 'b:c' })).toBe('a:b:c\nticket:PERF-1');
  expect(parseTags(' a : b:c \n\nticket:PERF-1')).toEqual({ a: 'b:c', ticket: 'PERF-1' });
  expect(parseTags(formatTags({ x: 'y' }))).toEqual({ x: 'y' });
  expect(parseTags('')).toEqual({});
  expect(parseTags('a:b\nno tag')).toMatch(/^Line 2 is not a tag/);
  expect(parseTags(':b')).toMatch(/^Line 1 is not a tag/);
  expect(parseTags('a:1\na:2')).toBe('Line 2 repeats the tag a.');
  expect(parseTags('__proto__:x')).toEqual(Object.fromEntries([['__proto__', 'x']]));
});
