import { expect, it } from 'vitest';
import { table } from '../src/history/Bulk';
import { pressed, sortFrom } from '../src/history/sorting';

it('a list is in the order that the address says', () => {
  expect(sortFrom('-p95_ms')).toEqual({ by: 'p95_ms', way: 'desc' });
  expect(sortFrom('name')).toEqual({ by: 'name', way: 'asc' });
  expect(sortFrom('')).toBeNull();
  expect(sortFrom('password')).toBeNull();
});

it('a head is pressed three times until the newest come first again', () => {
  expect(pressed('', 'qps')).toBe('-qps');
  expect(pressed('-qps', 'qps')).toBe('qps');
  expect(pressed('qps', 'qps')).toBe('');
  expect(pressed('-qps', 'p95_ms')).toBe('p95_ms');
  expect(pressed('p95_ms', 'p95_ms')).toBe('-p95_ms');
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
