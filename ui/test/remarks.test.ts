import { expect, it } from 'vitest';
import type { Summary } from '../src/api/types';
import { named } from '../src/compare/model';
import { connectionsLine, summaryLines } from '../src/runs/lines';

it('tells of connections only when some did not hold', () => {
  expect(connectionsLine({ lost: 0, refused: 0, reopened: 0, most_missing: 0 })).toBeNull();
  expect(connectionsLine({ active: 8, target: 8, missing: 0, lost: 0, refused: 0, reopened: 0 })).toBeNull();
  expect(connectionsLine(null)).toBeNull();
  expect(connectionsLine({ lost: 1200, refused: 0, reopened: 3, most_missing: 4 })).toBe(
    'Connections: 1,200 lost, 3 reopened, 4 missing at once, at most.',
  );
  expect(connectionsLine({ active: 6, target: 8, missing: 2, lost: 2, refused: 5, reopened: 0 })).toBe(
    'Connections: 2 lost, 5 refused, 2 missing now.',
  );
});

it('says what is in no rate, and what stalls hide in a closed loop only', () => {
  const s = {
    finished_late: 21,
    drain_seconds: 0.00214,
    coordinated_omission: {
      stalled_seconds: 1.5,
      missed_operations: 9,
      p50_ms: 1,
      p95_ms: 2,
      p99_ms: 970,
      p999_ms: 990,
    },
  } as Summary;
  expect(summaryLines(s)).toHaveLength(2);
  expect(summaryLines(s)[0]).toContain('21 operations ended after the measurement, within 2.14 ms');
  expect(summaryLines(s)[1]).toContain('stood still for 1.50 s');
  expect(summaryLines({ ...s, service_ms: {} as never })).toHaveLength(1);
  expect(summaryLines({} as Summary)).toEqual([]);
});

it('calls the runs of a note by the letters of the page', () => {
  const ids = ['id-a', 'id-b', 'id-c'];
  expect(named('Side B has only 8 seconds.', ids, 2)).toBe('Run C has only 8 seconds.');
  expect(named('Run id-b is DEGRADED.', ids, 1)).toBe('Run B is DEGRADED.');
  expect(named('The figures of A are real, those of B simulated: beware.', ids, 2)).toBe(
    'The figures of A are real, those of C simulated: beware.',
  );
});
