import { describe, expect, it } from 'vitest';
import { startTimingText } from '../src/runs/startTiming';

describe('how a run worker began', () => {
  const b = { node_id: 'a', began_at: null, start_late_ms: 0, clock_error_ms: 0.5 };
  it('is said with what its clock is worth', () =>
    expect(startTimingText(b)).toBe(
      "The load began on time. The clock of a differs from the server's by at most 0.500 ms.",
    ));
  it('says by how much it was late', () =>
    expect(startTimingText({ ...b, start_late_ms: 412 })).toMatch(/^The load began 412 ms after the planned start/));
  it('does not say that an unknown clock is right', () =>
    expect(startTimingText({ ...b, clock_error_ms: null })).toMatch(/The clock error of a is unknown\.$/));
  it("names the server's own node as such", () =>
    expect(startTimingText({ ...b, node_id: 'local', clock_error_ms: 0 })).toMatch(/the server's own node differs/));
});
