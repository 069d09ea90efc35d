import { expect, test } from 'vitest';
import type { User } from '../src/api/types';
import { passwordProblem } from '../src/app/NewPassword';
import { endsSoon } from '../src/app/Tokens';
import { signInMethods } from '../src/app/Users';

test.each([
  ['', ''],
  ['short', '7 more characters'],
  ['eleven char', '1 more character'],
  ['twelve chars', ''],
  ['🐎🐎🐎🐎🐎🐎🐎🐎🐎🐎🐎', '1 more character'],
])('what %j lacks', (password, lacks) => {
  expect(passwordProblem(password)).toBe(lacks);
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
  [{}, 'has not signed in yet'],
  [{ last_seen_at: '2026-11-23T10:00:00Z' }, 'signs in by link'],
  [{ has_password: true }, 'signs in with a password'],
  [{ has_password: true, disabled_at: '2026-11-23T10:00:00Z' }, 'disabled'],
])('the way in of %j', (state, said) => {
  expect(signInMethods({ ...user, ...state })).toBe(said);
});

test.each([
  [null, ''],
  ['2026-12-07T10:00:00Z', ''],
  ['2026-12-07T09:59:59Z', 'expires in 13 days'],
  ['2026-11-24T10:00:00Z', 'expires in 1 day'],
  ['2026-11-24T09:30:00Z', 'expires in 23 h'],
  ['2026-11-23T10:30:00Z', 'expires within the hour'],
  ['2026-11-23T10:00:00Z', 'expired'],
])('a token that ends at %j is marked %j', (at, said) => {
  expect(endsSoon(at, Date.parse('2026-11-23T10:00:00Z'))).toBe(said);
});
