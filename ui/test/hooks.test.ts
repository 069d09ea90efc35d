import { describe, expect, it } from 'vitest';
import type { Delivery, Hook } from '../src/api/types';
import { applyDraft, draftOf, hookErrors, hookInput, hookScope, lastDelivery, resumeInput } from '../src/app/hooks';

const chat: Hook = {
  id: 'h1',
  name: 'chat',
  kind: 'slack',
  address: 'https://hooks.example.com:443',
  events: ['failed'],
  signed: false,
};
const ci: Hook = {
  ...chat,
  id: 'h2',
  name: 'ci',
  kind: 'webhook',
  signed: true,
  template_id: 't1',
  tags: { team: 'search' },
};

describe('hooks as they are sent back', () => {
  it('keeps the address and the secret of those that are not edited', () => {
    for (const h of [chat, ci]) {
      expect(hookInput(h)).not.toHaveProperty('url');
      expect(hookInput(h)).not.toHaveProperty('secret');
      expect(hookInput(h)).not.toHaveProperty('address');
    }
    expect(applyDraft([chat, ci], draftOf(ci))).toEqual({ hooks: [hookInput(chat), hookInput(ci)], at: 1 });
  });

  it('keeps what an e-mail has, also where another one is edited', () => {
    const mail: Hook = {
      ...chat,
      id: 'h3',
      kind: 'email',
      address: 'smtp://mail.example.com:587',
      from: 'a@example.com',
      to: ['b@example.com', 'Bob <c@example.com>'],
      user: 'u',
      signed: true,
    };
    const sent = { id: 'h3', kind: 'email', from: mail.from, to: mail.to, user: 'u' };
    expect(applyDraft([mail, ci], draftOf(ci))).toMatchObject({ hooks: [sent, { id: 'h2' }] });
    const own = applyDraft([mail], draftOf(mail));
    expect(own).toMatchObject({ hooks: [sent] });
    expect(typeof own === 'string' ? own : own.hooks[0]).not.toHaveProperty('secret');
    expect(applyDraft([mail], { ...draftOf(mail), user: ' ' })).toMatchObject({ hooks: [{ secret: '' }] });
  });

  it('resumes one of them, and leaves the others whose they are', () => {
    expect(resumeInput([chat, ci], 'h2')).toEqual([hookInput(chat), { ...hookInput(ci), resume: true }]);
  });

  it('adds a new one at the end, and changes one in its place', () => {
    const d = { ...draftOf(), name: ' new ', url: ' https://a.example/x ', secret: 's', tags: 'team:a\n\nday:mon' };
    expect(applyDraft([chat, ci], d)).toEqual({
      hooks: [
        hookInput(chat),
        hookInput(ci),
        {
          name: 'new',
          kind: 'webhook',
          url: 'https://a.example/x',
          secret: 's',
          events: ['regressed', 'failed'],
          tags: { team: 'a', day: 'mon' },
        },
      ],
      at: 2,
    });
    const changed = applyDraft([chat, ci], { ...draftOf(chat), name: 'talk' });
    expect(changed).toMatchObject({ at: 0, hooks: [{ id: 'h1', name: 'talk' }, { id: 'h2' }] });
  });

  it('takes a secret away only when that is asked for, or where messages have none', () => {
    const one = (d: Parameters<typeof applyDraft>[1]) => {
      const out = applyDraft([ci], d);
      return typeof out === 'string' ? out : out.hooks[0];
    };
    expect(one({ ...draftOf(ci), unsign: true, secret: 'x' })).toHaveProperty('secret', '');
    expect(one({ ...draftOf(ci), kind: 'slack' })).toHaveProperty('secret', '');
    expect(one(draftOf(ci))).not.toHaveProperty('secret');
  });

  it('says which line is no tag', () => {
    expect(applyDraft([], { ...draftOf(), tags: 'team:a\nwhat' })).toBe(
      'Line 2 is not a tag. Use the form name:value.',
    );
  });
});

it('finds what was said of the fields of one hook', () => {
  const fields = [
    { field: 'hooks[1].url', message: 'may not be reached', hint: 'allow it' },
    { field: 'body.hooks[1].events', message: 'is empty' },
    { field: 'hooks[10].name', message: 'cannot be used' },
  ];
  expect(hookErrors(fields, 1)).toEqual({ url: 'may not be reached; allow it', events: 'is empty' });
  expect(hookErrors(fields, 0)).toEqual({});
});

it('says which runs somebody is told of', () => {
  const templates = [{ template_id: 't1', name: 'orders' }];
  expect(hookScope(chat, templates)).toBe('all runs');
  expect(hookScope(ci, templates)).toBe('runs of “orders” with team:search');
  expect(hookScope(ci, [])).toBe('runs of a deleted template with team:search');
});

it('shows the newest attempt of a hook', () => {
  const d = (hook_id: string, attempt: number): Delivery => ({
    delivery_id: 'd',
    at: null,
    hook_id,
    hook_name: '',
    event: 'failed',
    attempt,
    arrived: true,
  });
  expect(lastDelivery([d('h2', 3), d('h1', 2), d('h1', 1)], 'h1')?.attempt).toBe(2);
  expect(lastDelivery([], 'h1')).toBeUndefined();
});
