import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { type ComponentType, createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { Router } from 'wouter';
import type { RunDetail } from '../src/api/types';
import { Toasts } from '../src/design/Toast';
import { nextPoll } from '../src/runs/exportStatus';
import { SnowflakeExport } from '../src/runs/SnowflakeExport';
import { RecordProblems } from '../src/runs/RecordProblems';

const run = { run_id: "r'1", end_time: '2026-11-23T10:00:00Z' } as RunDetail;

/** render renders a component with what the server says of the run's export. */
function render(Of: ComponentType<{ run: RunDetail }>, what: string, value: unknown, failing?: object[]): string {
  const client = new QueryClient();
  if (failing) client.setQueryData(['tables', 'exported_executions'], { table: { status: 'ACTIVE', failing } });
  client.setQueryData(['run-export', run.run_id], { record: null, account: null, [what]: value });
  const html = renderToStaticMarkup(
    createElement(
      QueryClientProvider,
      { client },
      createElement(Router, { ssrPath: '/', children: createElement(Toasts, null, createElement(Of, { run })) }),
    ),
  );
  return html
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#x27;/g, "'")
    .replace(/\s+/g, ' ');
}

describe('parts of the record that could not be read', () => {
  const of = (value: unknown) => render(RecordProblems, 'record', value);
  it('are counted and named', () => {
    const text = of({ problems: ['a.parquet is damaged.', 'b.parquet is not there.'], parts: 3 });
    expect(text).toContain('2 of 3 parts of the record could not be loaded.');
    expect(text).toContain('a.parquet is damaged.');
    expect(text).toContain('b.parquet is not there.');
  });
  it('are five at most, and a number', () => {
    const text = of({ problems: Array.from({ length: 8 }, (_, i) => `p${i} is damaged.`), parts: 9 });
    expect(text).toContain('p4 is damaged.');
    expect(text).not.toContain('p5');
    expect(text).toContain('and 3 more');
  });
  it('are not spoken of where there are none, or nothing is known', () => {
    expect(of({ problems: [], parts: 3 }).trim()).toBe('');
    expect(of(null).trim()).toBe('');
  });
});

describe('a run in an account', () => {
  const of = (value: unknown) => render(SnowflakeExport, 'account', value);
  const there = {
    connection: 'warehouse',
    place: 'LOADSTONE.PUBLIC',
    status: 'DONE',
    executions: 1500,
    views: ['V_RUN_SUMMARY'],
    problem: '',
    noted_at: '2026-11-23T10:01:00Z',
  };
  it('has a query for each view', () => {
    const text = of(there);
    expect(text).toMatch(/1[,. ]500 executions of this run are in LOADSTONE\.PUBLIC\.QUERY_EXECUTIONS/);
    expect(text).toContain("SELECT * FROM LOADSTONE.PUBLIC.V_RUN_SUMMARY WHERE RUN_ID = 'r''1'");
    expect(text).not.toContain('failed');
  });
  it('names views that are missing, with the cure', () => {
    const problem = 'Not made: the view V_KIND_STATS. Cure: GRANT CREATE VIEW ON SCHEMA A.B TO ROLE C';
    expect(of({ ...there, problem })).toContain(`Executions exported; other data is missing. ${problem}`);
  });
  it('says that an attempt failed', () => {
    const text = of({ ...there, status: 'FAILED', place: '', problem: 'The account is away.' });
    expect(text).toContain('failed. The account is away.');
    expect(text).not.toContain('SELECT');
    expect(text).toContain('shows whether Loadstone retries the export');
  });
  it('says whether it is tried again', () => {
    const last = { ...there, status: 'FAILED', place: '', problem: 'Its table is taken.' };
    const of = (failures: number) =>
      render(SnowflakeExport, 'account', last, [{ subtask: run.run_id, failures, given_up: failures > 4 }]);
    expect(of(4)).toContain('Loadstone retries the export (4 of 5 tries failed)');
    expect(of(5)).toContain('Loadstone no longer retries the export (5 tries failed). Remove the cause, then');
    expect(of(5)).not.toContain('Loadstone retries');
  });
  it('is not spoken of where there is none', () => expect(of(null).trim()).toBe(''));
});

describe('the export of a run', () => {
  const account = { connection: 'c', place: 'A.B', status: 'DONE' as const, executions: 1, views: [], problem: '' };
  const record = { parts: 1, problems: [] };
  it('is asked again until it is there, or a minute is over', () => {
    expect(nextPoll({ record: null, account: null }, 1, false)).toBe(5_000);
    expect(nextPoll({ record, account: null }, 12, false)).toBe(false);
    expect(nextPoll({ record: null, account: null }, 1, true)).toBe(false);
    expect(nextPoll({ record, account: { ...account, noted_at: '' } }, 1, false)).toBe(false);
  });
  it('is asked again after a failure, which may be retried', () =>
    expect(nextPoll({ record, account: { ...account, status: 'FAILED', noted_at: '' } }, 99, true)).toBe(15_000));
});
