import { expect, test } from 'vitest';
import { unattended } from '../src/api/unattended';

test('requests of a page whose user is away say so', () => {
  expect(unattended()).toEqual({});
  expect(unattended(Date.now() + 6 * 60_000)).toEqual({ 'X-Loadstone-Unattended': '1' });
});
