import { expect, it } from 'vitest';
import { Problem, unconfirmedConnections } from '../src/api/client';
import type { Connection, ScenarioDraft } from '../src/api/types';
import { accessInput, accessText, canEdit, canUse, draftOf } from '../src/app/AccessFields';
import { forbiddenConnections } from '../src/templates/relations';

const refusal = (...fields: { field: string; message: string; hint: string; subject: string }[]) =>
  new Problem(422, 'invalid', 'x', '', fields);

it('reads from a refusal which names are to be typed', () => {
  const one = {
    field: 'confirm_production',
    message: 'm',
    hint: 'confirm by typing its name: orders: prod',
    subject: 'orders: prod',
  };
  expect(unconfirmedConnections(refusal(one))).toEqual(['orders: prod']);
  expect(unconfirmedConnections(refusal(one, { ...one, subject: 'b' }))).toEqual(['orders: prod', 'b']);
  expect(unconfirmedConnections(refusal(one, { ...one, field: 'name' }))).toEqual([]);
  expect(unconfirmedConnections(refusal())).toEqual([]);
  expect(unconfirmedConnections(new Error('x'))).toEqual([]);
});

it('sends who may use a thing only when that was changed', () => {
  const saved = { owner: 'ada', owner_id: '1', restricted: true, users: [{ user_id: '2', name: 'bob' }] };
  expect(accessInput(draftOf(saved), saved)).toBeUndefined();
  expect(accessInput(draftOf(), undefined)).toBeUndefined();
  expect(accessInput({ restricted: true, users: ' bob,eve  x@y.z; ' }, saved)).toEqual({
    restricted: true,
    users: ['bob', 'eve', 'x@y.z'],
  });
  expect(accessText(saved)).toBe('only its owner ada, bob and admins may use it');
  expect(accessText({ restricted: true, owner: 'admin' })).toBe('only its owner admin and admins may use it');
  expect(accessText({ restricted: true })).toBe('only admins may use it');
  expect(accessText({ restricted: false, owner: 'ada' })).toBe('ada’s; all operators may use it');
});

it('says in the form of a template which of its connections its user may not use', () => {
  const access = { owner: 'ada', owner_id: '1', restricted: true, users: [{ user_id: '2', name: 'bob' }] };
  const as = (user_id: string, role: 'admin' | 'operator' | 'viewer') => ({ user_id, role });
  expect(canUse(access, as('1', 'operator'))).toBe(true);
  expect(canUse(access, as('2', 'operator'))).toBe(true);
  expect(canUse(access, as('3', 'admin'))).toBe(true);
  expect(canUse(access, as('3', 'operator'))).toBe(false);
  expect(canUse({ restricted: true }, as('3', 'operator'))).toBe(false);
  expect(canUse({ restricted: false }, as('3', 'operator'))).toBe(true);
  expect(canUse({ restricted: false }, as('3', 'viewer'))).toBe(false);

  const connections = [
    { name: 'prod', access },
    { name: 'play', access: { restricted: false } },
  ] as Connection[];
  const on = (...names: string[]) =>
    (names.length === 1
      ? { target: { connection: names[0] } }
      : { matrix: { targets: names.map((connection) => ({ connection })) } }) as unknown as ScenarioDraft;
  const findings = forbiddenConnections(on('prod'), connections, as('3', 'operator'));
  expect(findings).toMatchObject([{ field: 'target.connection', warning: true }]);
  expect(findings[0]!.hint).toContain('its owner ada or an admin');
  expect(forbiddenConnections(on('play', 'prod'), connections, as('3', 'operator'))).toMatchObject([
    { field: 'matrix.targets[1].connection' },
  ]);
  expect(forbiddenConnections(on('prod'), connections, as('2', 'operator'))).toEqual([]);
  expect(forbiddenConnections(on('elsewhere'), connections, as('3', 'operator'))).toEqual([]);
  expect(forbiddenConnections(on('prod'), connections, as('3', 'viewer'))).toEqual([]);
});

it('says what a user may change', () => {
  const as = (user_id: string, role: 'admin' | 'operator' | 'viewer') => ({ user_id, role });
  const hers = { owner: 'ada', owner_id: '1', restricted: false, users: [{ user_id: '2', name: 'bob' }] };
  expect(canEdit(hers, as('1', 'operator'))).toBe(true);
  expect(canEdit(hers, as('1', 'viewer'))).toBe(false);
  // A user who may use it may not change it.
  expect(canEdit(hers, as('2', 'operator'))).toBe(false);
  expect(canEdit(hers, as('3', 'admin'))).toBe(true);
  expect(canEdit({ restricted: false }, as('3', 'operator'))).toBe(true);
  expect(canEdit({ restricted: true }, as('3', 'operator'))).toBe(false);
});
