import { expect, it } from 'vitest';
import { Problem, unconfirmed } from '../src/api/client';
import type { Connection, Sketch } from '../src/api/types';
import { accessInput, accessWords, draftOf, mayChange, mayUse } from '../src/app/AccessFields';
import { barred } from '../src/templates/relations';

const refusal = (...fields: { field: string; message: string; hint: string }[]) =>
  new Problem(422, 'invalid', 'x', '', fields);

it('reads from a refusal which names are to be typed', () => {
  const one = { field: 'confirm_production', message: 'm', hint: 'confirm by typing its name: orders: prod' };
  expect(unconfirmed(refusal(one))).toEqual(['orders: prod']);
  expect(unconfirmed(refusal(one, { ...one, hint: 'confirm by typing its name: b' }))).toEqual(['orders: prod', 'b']);
  expect(unconfirmed(refusal(one, { ...one, field: 'name' }))).toEqual([]);
  expect(unconfirmed(refusal())).toEqual([]);
  expect(unconfirmed(new Error('x'))).toEqual([]);
});

it('sends who may use a thing only when that was changed', () => {
  const saved = { owner: 'ada', owner_id: '1', restricted: true, users: [{ user_id: '2', name: 'bob' }] };
  expect(accessInput(draftOf(saved), saved)).toBeUndefined();
  expect(accessInput(draftOf(), undefined)).toBeUndefined();
  expect(accessInput({ restricted: true, users: ' bob,eve  x@y.z; ' }, saved)).toEqual({
    restricted: true,
    users: ['bob', 'eve', 'x@y.z'],
  });
  expect(accessWords(saved)).toBe('only its owner ada, bob and admins may use it');
  expect(accessWords({ restricted: true, owner: 'admin' })).toBe('only its owner admin and admins may use it');
  expect(accessWords({ restricted: true })).toBe('only admins may use it');
  expect(accessWords({ restricted: false, owner: 'ada' })).toBe('ada’s; every operator may use it');
});

it('says in the form of a template which of its connections its user may not use', () => {
  const access = { owner: 'ada', owner_id: '1', restricted: true, users: [{ user_id: '2', name: 'bob' }] };
  const as = (user_id: string, role: 'admin' | 'operator' | 'viewer') => ({ user_id, role });
  expect(mayUse(access, as('1', 'operator'))).toBe(true);
  expect(mayUse(access, as('2', 'operator'))).toBe(true);
  expect(mayUse(access, as('3', 'admin'))).toBe(true);
  expect(mayUse(access, as('3', 'operator'))).toBe(false);
  expect(mayUse({ restricted: true }, as('3', 'operator'))).toBe(false);
  expect(mayUse({ restricted: false }, as('3', 'operator'))).toBe(true);
  expect(mayUse({ restricted: false }, as('3', 'viewer'))).toBe(false);

  const connections = [
    { name: 'prod', access },
    { name: 'play', access: { restricted: false } },
  ] as Connection[];
  const on = (...names: string[]) =>
    (names.length === 1
      ? { target: { connection: names[0] } }
      : { matrix: { targets: names.map((connection) => ({ connection })) } }) as unknown as Sketch;
  const told = barred(on('prod'), connections, as('3', 'operator'));
  expect(told).toMatchObject([{ field: 'target.connection', warning: true }]);
  expect(told[0]!.hint).toContain('its owner ada or an admin');
  expect(barred(on('play', 'prod'), connections, as('3', 'operator'))).toMatchObject([
    { field: 'matrix.targets[1].connection' },
  ]);
  expect(barred(on('prod'), connections, as('2', 'operator'))).toEqual([]);
  expect(barred(on('elsewhere'), connections, as('3', 'operator'))).toEqual([]);
  expect(barred(on('prod'), connections, as('3', 'viewer'))).toEqual([]);
});

it('says what a user may change', () => {
  const as = (user_id: string, role: 'admin' | 'operator' | 'viewer') => ({ user_id, role });
  const hers = { owner: 'ada', owner_id: '1', restricted: false, users: [{ user_id: '2', name: 'bob' }] };
  expect(mayChange(hers, as('1', 'operator'))).toBe(true);
  expect(mayChange(hers, as('1', 'viewer'))).toBe(false);
  // Who may use it may not change it.
  expect(mayChange(hers, as('2', 'operator'))).toBe(false);
  expect(mayChange(hers, as('3', 'admin'))).toBe(true);
  expect(mayChange({ restricted: false }, as('3', 'operator'))).toBe(true);
  expect(mayChange({ restricted: true }, as('3', 'operator'))).toBe(false);
});
