import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createElement, type ReactNode } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import type { Cost, Enrichment, Payload, RunDetail, Summary, WarehousePoint } from '../src/api/types';
import { Tips } from '../src/design/Controls';
import { money } from '../src/design/format';
import { AccountingView } from '../src/runs/AccountingView';
import { CostView } from '../src/runs/CostView';
import { EnrichmentView } from '../src/runs/Enrichment';
import { mergePolls, WarehousePanel } from '../src/runs/Warehouse';

/** text renders a component without markup. */
function text(of: ReactNode): string {
  const html = renderToStaticMarkup(
    createElement(QueryClientProvider, { client: new QueryClient() }, createElement(Tips, null, of)),
  );
  return html
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#x27;/g, "'")
    .replace(/\s+/g, ' ');
}

describe('the counts of a run', () => {
  const counts = (more: object): Summary['accounting'] =>
    ({
      scheduled: 10,
      dropped: 0,
      started: 10,
      succeeded: 10,
      failed: 0,
      recorded: 8,
      warmup: 1,
      balanced: false,
      problems: ['the number of records is not the number started'],
      ...more,
    }) as Summary['accounting'];
  const view = (more: object) => text(createElement(AccountingView, { f: { accounting: counts(more), ...more } }));

  it('say what does not add up', () =>
    expect(view({})).toMatch(/Does not balance.*Some operations are missing from the account.*difference 2/));
  it('are not held against each other where nothing was asked for', () => {
    const none = { scheduled: 0, started: 0, succeeded: 0, recorded: 0, warmup: 0, balanced: true, problems: [] };
    expect(view(none)).toMatch(/No operations were scheduled.*ended before its load began/);
    expect(view(none)).not.toMatch(/scheduled \d|recorded/);
  });
  it('are none where a run worker ended without telling them, and the least where others told theirs', () => {
    const missing = { problems: ['a run worker ended without telling its counts'], counts_missing: true };
    const nothing = view({ ...missing, scheduled: 0, started: 0, succeeded: 0 });
    expect(nothing).toMatch(/Counts are missing.*scheduled not reported.*started not reported.*recorded 8/);
    expect(nothing).not.toMatch(/scheduled 0|started 0|failed 0|difference|≠|Do not rely/);
    expect(view(missing)).toMatch(/scheduled at least 10.*failed not reported.*recorded 8/);
  });
});

describe('money', () => {
  it('has three digits, its currency, and the exact amount on hover', () =>
    expect(money(1.23456, 'USD')).toEqual({ value: '1.23', unit: 'USD', exact: '1.23456 USD' }));
  it('keeps small amounts apart from nothing', () => {
    expect(money(0.000123, 'EUR').value).toBe('0.000123');
    expect(money(0, 'EUR')).toMatchObject({ value: '0', unit: 'EUR' });
  });
  it.each([null, undefined, Number.NaN, Number.POSITIVE_INFINITY])('%s is no amount', (n) =>
    expect(money(n, 'USD')).toMatchObject({ unit: '' }),
  );
});

const cost: Cost = {
  warehouse: 'BENCH_WH',
  warehouse_type: 'STANDARD',
  warehouse_size: 'X-Small',
  warehouse_generation: '',
  clusters: 1,
  credits_per_hour: 1,
  credits: 0.0167,
  run_credits: 0.025,
  credit_price: 3,
  currency: 'USD',
  price: 0.0501,
  run_price: 0.075,
  caused_seconds: 310,
  caused_credits: 0.09,
  caused_price: 0.27,
  price_per_million_operations: 4.2,
  price_list: 'list of 2026',
  notes: ['Storage is not in it.'],
};

describe('the cost card', () => {
  it('tells the price of a million operations, of the measurement and of the run', () => {
    const shown = text(createElement(CostView, { c: cost, simulated: false }));
    expect(shown).toMatch(/a million operations 4\.20 USD/);
    expect(shown).toMatch(/measurement 0\.0501 USD/);
    expect(shown).toMatch(/whole run 0\.0750 USD/);
    expect(shown).toMatch(/until it suspended 0\.270 USD/);
    expect(shown).toContain(
      'BENCH_WH, standard X-Small: 1 cluster at 1.00 credits an hour, 3.00 USD each (list of 2026). ' +
        'Storage is not in it.',
    );
    expect(shown).not.toContain('simulated');
  });
  it('counts clusters, and says that a stand-in was priced', () => {
    const shown = text(createElement(CostView, { c: { ...cost, clusters: 1.5 }, simulated: true }));
    expect(shown).toContain('1.50 clusters');
    expect(shown).toContain('simulated');
  });
  it('shows no price where the size has none, but why', () => {
    const shown = text(
      createElement(CostView, {
        c: { ...cost, credits_per_hour: 0, notes: ['The list has no such size.'] },
        simulated: false,
      }),
    );
    expect(shown).not.toMatch(/USD|credits/);
    expect(shown).toContain('The list has no such size.');
  });
});

const poll = (second: number, running: number): WarehousePoint => ({
  name: 'BENCH_WH',
  state: 'STARTED',
  type: 'STANDARD',
  size: 'X-Small',
  generation: '',
  fallback_warehouse: '',
  started_clusters: 1,
  min_cluster_count: 1,
  max_cluster_count: 3,
  scaling_policy: 'STANDARD',
  running,
  queued: 0,
  polled_at: null,
  timestamp: `2026-11-21T12:00:0${second}.000Z`,
  elapsed_seconds: second,
});

describe('polls of a warehouse', () => {
  it('are joined in order of time, each once, the later told one for the same time', () =>
    expect(mergePolls([poll(1, 1), poll(3, 3)], [poll(2, 2), poll(3, 9), poll(4, 4)]).map((p) => p.running)).toEqual([
      1, 2, 9, 4,
    ]));
  it('may be missing on either side', () => {
    expect(mergePolls([], [])).toEqual([]);
    expect(mergePolls([poll(1, 1)], [])).toEqual([poll(1, 1)]);
  });
  const run = (driver: string) =>
    ({ run_id: 'r', test_name: 't', status: 'COMPLETED', start_time: null, plan: { driver } }) as unknown as RunDetail;
  it('are not shown of a target without a warehouse', () =>
    expect(
      renderToStaticMarkup(
        createElement(
          QueryClientProvider,
          { client: new QueryClient() },
          createElement(WarehousePanel, { run: run('postgres'), live: null, zoom: null, decor: {} as never }),
        ),
      ),
    ).toBe(''));
});

const enrichment: Enrichment = {
  status: 'PARTIAL',
  ratio: 0.9996,
  reason: 'The history left some out.',
  executions: 10_000,
  matched: 9_996,
  without_id: 3,
  polls: 1,
  pages: 2,
  started_at: null,
  ended_at: '2026-11-21T12:10:00.000Z',
  next_poll_at: null,
  retryable: true,
  total: null,
  aggregate: null,
  by_kind: {
    INSERT: { executions: 100, matched: 100, ratio: 1, figures: null },
    POINT_LOOKUP: { executions: 9_900, matched: 9_896, ratio: 0.99959, figures: null },
  },
  notes: ['Hybrid tables leave short queries out.'],
};

describe('enrichment', () => {
  const view = (e: Enrichment) =>
    text(
      createElement(EnrichmentView, {
        run: { run_id: 'r', enrichment: e, status: 'COMPLETED' } as unknown as RunDetail,
        live: { enrichment: e } as unknown as Payload,
        s: { operations: 10_000 } as unknown as Summary,
      }),
    );
  it('rounds ratios down, so that 100 % means all, the most frequent kind first', () => {
    const shown = view(enrichment);
    expect(shown).toMatch(/Point lookup 9,900 9,896 99\.9 %/i);
    expect(shown).toMatch(/Insert 100 100 100 %/i);
    expect(shown.search(/point lookup/i)).toBeLessThan(shown.search(/insert/i));
  });
  it('tells why it is partial, and offers to ask again', () => {
    const shown = view(enrichment);
    for (const part of [
      'The history left some out.',
      'Read 1 time,',
      '3 executions have no query id',
      'Hybrid tables leave short queries out.',
      'Ask again',
    ])
      expect(shown).toContain(part);
  });
  it('tells progress while it runs, and offers to stop', () => {
    const shown = view({ ...enrichment, status: 'RUNNING', ended_at: null, polls: 4 });
    expect(shown).toContain('executions found in 4 polls.');
    expect(shown).toContain('Stop asking');
    expect(shown).not.toContain('Ask again');
  });
  it('says why it was skipped', () =>
    expect(view({ ...enrichment, status: 'SKIPPED', reason: 'Postgres keeps no history.' })).toContain(
      'Postgres keeps no history.',
    ));
});
