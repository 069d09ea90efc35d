import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import type { Outage, RunDetail, Summary } from '../src/api/types';
import { Outages } from '../src/runs/Outages';
import { outageCounts, outageRanges, outageTitle } from '../src/runs/outages';

const outage = {
  number: 1,
  last_success_before: '2026-11-22T12:00:10.000Z',
  first_failure: '2026-11-22T12:00:10.010Z',
  last_failure: '2026-11-22T12:00:13.500Z',
  first_success_after: '2026-11-22T12:00:13.420Z',
  down_seconds: 3.42,
  rate_before: 1000,
  full_rate_at: '2026-11-22T12:00:17.900Z',
  full_rate_seconds: 7.9,
  failed: 412,
  unknown: 3,
  delayed: 20,
  dropped: 1208,
  errors: { down: { connection: 400 }, recovery: { timeout: 12 } },
  by_kind: [],
  server_before: null,
  server_after: null,
} as Outage;

it('says how long an outage was, and what became of its operations', () => {
  expect(outageTitle(outage)).toMatch(/^Outage 1: down for 3\.42\ss, full rate after 7\.90\ss$/u);
  expect(outageCounts(outage)).toBe('412 failed, 3 of them with an unknown outcome, 20 delayed, 1,208 dropped.');
  expect(outageTitle({ ...outage, kind: 'INSERT', to_the_end: true, full_rate_seconds: null })).toContain(
    'of Insert: down for',
  );
});

it('shades the time in which the target was down', () => {
  expect(outageRanges([outage], '2026-11-22T12:00:00Z')).toEqual([{ from: 10, to: 13.42 }]);
  expect(outageRanges(null, '2026-11-22T12:00:00Z')).toEqual([]);
  expect(outageRanges([outage], null)).toEqual([]);
});

it('shows a card for each outage, and nothing without one', () => {
  const show = (outages: Outage[] | undefined) =>
    renderToStaticMarkup(
      createElement(Outages, {
        run: { start_time: '2026-11-22T12:00:00Z' } as RunDetail,
        s: { outages } as Summary,
      }),
    );
  expect(show(undefined)).toBe('');
  const server = {
    at: null,
    address: '127.0.0.1:5432',
    role: 'standby',
    version: '18.1',
    started_at: '2026-11-22T11:00:00Z',
  };
  const html = show([outage, { ...outage, number: 2, server_after: server }]);
  expect(html.match(/<section/g)).toHaveLength(2);
  expect(html).toContain('while it was down 400 connection; after the return 12 timeout');
  expect(html).toContain('After: standby at 127.0.0.1:5432, version 18.1');
});
