import { expect, it } from 'vitest';
import { Problem, unconfirmed } from '../src/api/client';
import { accessInput, accessWords, draftOf } from '../src/app/AccessFields';

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
  expect(accessWords(saved)).toBe('only ada, bob and admins may use it');
  expect(accessWords({ restricted: true })).toBe('only admins may use it');
  expect(accessWords({ restricted: false, owner: 'ada' })).toBe('ada’s; every operator may use it');
});
