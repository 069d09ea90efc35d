import { describe, expect, it } from 'vitest';
import {
  cellFilter,
  emptyFilter,
  executionsPath,
  executionsRequest,
  filterFromSearch,
  filterProblem,
  isFiltered,
  withFilter,
} from '../src/runs/executionFilter';

describe('what the table of executions is asked for', () => {
  it('goes through the address and back, special characters and all', () => {
    const wanted = {
      ...emptyFilter,
      kind: 'INSERT',
      message: 'Key (a,b)=(1&2) "x" <b> 50%',
      over: '1.5',
      inside: 'yes',
    };
    const address = executionsPath('r1', wanted);
    expect(address.startsWith('/runs/r1?tab=executions')).toBe(true);
    expect(filterFromSearch(address.slice(address.indexOf('?')))).toEqual(wanted);
  });
  it('begins at the first page again when a filter changes, and leaves the rest of the address', () => {
    const s = withFilter('?tab=executions&after=abc&range=1-2&kind=INSERT&worker=w', { kind: '', outcome: 'failed' });
    expect(s).toBe('?tab=executions&range=1-2&worker=w&outcome=failed');
  });
  it('turns seconds of the run into times and leaves out what is empty', () => {
    const start = Date.parse('2026-11-01T12:00:00Z');
    const r = executionsRequest({ ...emptyFilter, since: '1.5', before: '2', upto: '7,5', message: 'a,b' }, start, '');
    expect(r.from).toBe('2026-11-01T12:00:01.500Z');
    expect(r.until).toBe('2026-11-01T12:00:02.000Z');
    expect(r.upto_ms).toBe(7.5);
    expect(r.error_message).toEqual(['a,b']);
    expect(r.kind).toBeUndefined();
    expect(r.sort).toBe('time');
    expect(executionsRequest({ ...emptyFilter, since: '1' }, 0, '').from).toBeUndefined();
  });
  it('says what cannot be asked for', () => {
    expect(filterProblem(emptyFilter)).toBe('');
    expect(filterProblem({ ...emptyFilter, over: 'fast' })).toContain('Above');
    expect(filterProblem({ ...emptyFilter, since: '-1' })).toContain('From');
    expect(filterProblem({ ...emptyFilter, since: '5', before: '5' })).toContain('Until');
    expect(filterProblem({ ...emptyFilter, over: '5', upto: '4' })).toContain('Up to');
  });
  it('opens a cell of the heat map with its time and its latencies', () => {
    const w = cellFilter(3.2001, 4.2004, { from: 0.9999998, to: 1.0442738 });
    expect(w).toEqual({ since: '3.200', before: '4.200', over: '1.000000', upto: '1.044274', sort: 'latency' });
    expect(isFiltered({ ...emptyFilter, ...w })).toBe(true);
    expect(isFiltered({ ...emptyFilter, sort: 'latency' })).toBe(false);
  });
});
