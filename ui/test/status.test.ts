import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { StatusBadge, unmetThresholds } from '../src/design/Status';

it('a run without thresholds has not failed any', () => {
  const words = (passed: boolean | null, failed?: number) =>
    renderToStaticMarkup(createElement(StatusBadge, { status: 'COMPLETED', passed, failed })).replace(/<[^>]*>/g, '');
  expect(words(true)).toBe('Completed');
  expect(words(null)).toBe('Completed');
  expect(words(false, 2)).toBe('Thresholds failed');
  expect(words(false, 0)).toBe('Nothing succeeded');
  expect(words(false)).toBe('Nothing succeeded');
  expect(unmetThresholds({ thresholds: [{ passed: false }, { passed: true }] })).toBe(1);
  expect(unmetThresholds(null)).toBe(0);
});
