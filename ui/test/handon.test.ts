import { expect, it } from 'vitest';
import { tagLines, tagsOf } from '../src/runs/tagLines';

it('tags are edited one a line', () => {
  expect(tagLines({ ticket: 'PERF-1', a: 'b:c' })).toBe('a:b:c\nticket:PERF-1');
  expect(tagsOf(' a : b:c \n\nticket:PERF-1')).toEqual({ a: 'b:c', ticket: 'PERF-1' });
  expect(tagsOf(tagLines({ x: 'y' }))).toEqual({ x: 'y' });
  expect(tagsOf('')).toEqual({});
  expect(tagsOf('a:b\nno tag')).toMatch(/^Line 2 is no tag/);
  expect(tagsOf(':b')).toMatch(/^Line 1 is no tag/);
  expect(tagsOf('a:1\na:2')).toBe('Line 2 gives a a second value.');
  expect(tagsOf('__proto__:x')).toEqual(Object.fromEntries([['__proto__', 'x']]));
});
