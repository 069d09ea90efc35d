import { expect, it } from 'vitest';
import type { RunDetail } from '../src/api/types';
import { table, toListedRun } from '../src/history/BulkActions';
import { nextSort, sortFrom } from '../src/history/sorting';

it('a list is in the order that the address says', () => {
  expect(sortFrom('-p95_ms')).toEqual({ by: 'p95_ms', direction: 'desc' });
  expect(sortFrom('name')).toEqual({ by: 'name', direction: 'asc' });
  expect(sortFrom('')).toBeNull();
  expect(sortFrom('password')).toBeNull();
});

it('a head is pressed three times until the newest come first again', () => {
  expect(nextSort('', 'qps')).toBe('-qps');
  expect(nextSort('-qps', 'qps')).toBe('qps');
  expect(nextSort('qps', 'qps')).toBe('');
  expect(nextSort('-qps', 'p95_ms')).toBe('p95_ms');
  expect(nextSort('p95_ms', 'p95_ms')).toBe('-p95_ms');
});

it('names of others are no formulas in a spreadsheet', () => {
  const run = {
    run_id: 'r',
    test_name: "=cmd|'/c calc'!A1",
    status: 'COMPLETED' as const,
    start_time: null,
    end_time: null,
  };
  const line = table([{ ...run, total_ops: 1, qps: -1.5, passed: false }]).split('\r\n')[1];
  expect(line).toBe("r,'=cmd|'/c calc'!A1,COMPLETED,,,-1.5,,,,,1,false");
});

it('a run of another page of the list is saved with its figures', () => {
  const run = {
    run_id: 'r',
    test_name: 'n',
    status: 'COMPLETED',
    start_time: null,
    end_time: null,
    total_ops: 9,
    summary: {
      qps: 3,
      operations: 6,
      errors: { rate: 0.5 },
      latency_ms: { p50: 1, p95: 2, p99: 4 },
      passed: false,
    },
  } as unknown as RunDetail;
  expect(table([toListedRun(run)]).split('\r\n')[1]).toBe('r,n,COMPLETED,,,3,1,2,4,0.5,9,false');
  expect(table([toListedRun({ ...run, summary: null })]).split('\r\n')[1]).toBe('r,n,COMPLETED,,,,,,,,9,');
});
