import { expect, test } from 'vitest';
import type { User } from '../src/api/types';
import { passwordLacks } from '../src/app/NewPassword';
import { waysIn } from '../src/app/Users';

test.each([
  ['', ''],
  ['short', '7 more characters'],
  ['eleven char', '1 more character'],
  ['twelve chars', ''],
  ['🐎🐎🐎🐎🐎🐎🐎🐎🐎🐎🐎', '1 more character'],
])('what %j lacks', (password, lacks) => {
  expect(passwordLacks(password)).toBe(lacks);
});

const user: User = {
  user_id: 'u',
  name: 'ada',
  role: 'viewer',
  created_at: null,
  disabled_at: null,
  has_password: false,
  external: false,
  last_seen_at: null,
};

test.each([
  [{}, 'has not come yet'],
  [{ last_seen_at: '2026-11-23T10:00:00Z' }, 'signs in by link'],
  [{ has_password: true }, 'signs in with a password'],
  [{ has_password: true, disabled_at: '2026-11-23T10:00:00Z' }, 'locked out'],
])('the way in of %j', (state, said) => {
  expect(waysIn({ ...user, ...state })).toBe(said);
});
