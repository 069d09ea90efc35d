import { expect, it } from 'vitest';
import type { Summary } from '../src/api/types';
import { relabelNote } from '../src/compare/model';
import { isTooShort } from '../src/runs/validity';
import { connectionsLine, summaryLines } from '../src/runs/summaryLines';

it('tells of connections only when some did not hold', () => {
  expect(connectionsLine({ lost: 0, refused: 0, reopened: 0, most_missing: 0 })).toBeNull();
  expect(connectionsLine({ active: 8, target: 8, missing: 0, lost: 0, refused: 0, reopened: 0 })).toBeNull();
  expect(connectionsLine(null)).toBeNull();
  expect(connectionsLine({ lost: 1200, refused: 0, reopened: 3, most_missing: 4 })).toBe(
    'Connections: 1,200 lost, 3 reopened, 4 missing at most.',
  );
  expect(connectionsLine({ active: 6, target: 8, missing: 2, lost: 2, refused: 5, reopened: 0 })).toBe(
    'Connections: 2 lost, 5 refused, 2 missing now.',
  );
});

it('shows the notes of the verdict, and what is in no rate where no note says so', () => {
  const s = { finished_late: 21, drain_seconds: 0.00214 } as Summary;
  const noted = (notes: string[], code = 'text') =>
    ({ ...s, validity_detail: { verdict: 'VALID', causes: [], notes, note_details: [{ code }] } }) as Summary;
  expect(summaryLines(s)).toHaveLength(1);
  expect(summaryLines(s)[0]).toContain('21 operations ended after the measurement, within 2.14 ms');
  expect(summaryLines(s)[0]).toContain('their latency counts, they are in no rate');
  expect(summaryLines({ ...s, finished_late: 1 })[0]).toMatch(
    /^1 operation ended.*: its latency counts, it is in no rate/,
  );
  expect(summaryLines(noted(['1 other run was live.']))).toEqual([
    '1 other run was live.',
    expect.stringContaining('21 operations ended'),
  ]);
  expect(summaryLines(noted(['21 operations (7 %) ended late.'], 'finished_late'))).toHaveLength(1);
  expect(summaryLines({ ...noted(Array.from({ length: 11 }, (_, i) => `note ${i}`)), finished_late: 0 }).at(-1)).toBe(
    '3 more notes: see Environment.',
  );
  expect(summaryLines({} as Summary)).toEqual([]);
  expect(summaryLines({ carried_over: 200 } as Summary)[0]).toMatch(/^200 operations were due in the warm-up/);
  expect(summaryLines({ ...noted(['carried'], 'carried_over'), finished_late: 0, carried_over: 200 })).toHaveLength(1);
});

it('calls a measurement short when no comparison would judge it, and a search never', () => {
  const mode = (load_mode: string) => ({ scenario_config: { workload: { load_mode } } as never });
  expect(isTooShort({ measured_seconds: 1 })).toBe(true);
  expect(isTooShort({ measured_seconds: 19.6, ...mode('CONCURRENCY') })).toBe(false);
  expect(isTooShort({ measured_seconds: null })).toBe(false);
  expect(isTooShort({ measured_seconds: 2, ...mode('FIND_MAX_CONCURRENCY') })).toBe(false);
});

it('calls the runs of a note by the letters of the page', () => {
  const ids = ['id-a', 'id-b', 'id-c'];
  expect(relabelNote('Side B has only 8 seconds.', ids, 2)).toBe('Run C has only 8 seconds.');
  expect(relabelNote('Run id-b is DEGRADED.', ids, 1)).toBe('Run B is DEGRADED.');
  expect(relabelNote('The figures of A are real, those of B simulated: beware.', ids, 2)).toBe(
    'The figures of A are real, those of C simulated: beware.',
  );
});
