import { describe, expect, it } from 'vitest';
import { neededWrites, refusedWrites } from '../src/runs/writePermission';

const line = 'INSERT and UPDATE in shop.orders, 1.2 M rows; triggers: 2';

describe('writes to tables of others', () => {
  it('asks with the line of the preflight', () => {
    const checks = [
      { outcome: 'ok', message: 'fine' },
      { outcome: 'failed', message: line, field: 'target.allow_writes' },
    ];
    expect(neededWrites({ checks })).toBe(line);
    expect(neededWrites({ checks: checks.slice(0, 1) })).toBeNull();
    expect(neededWrites({ checks: [{ outcome: 'warning', message: line, field: 'target.allow_writes' }] })).toBeNull();
    expect(neededWrites(undefined)).toBeNull();
    expect(neededWrites({ checks: null, targets: [{ checks: [] }, { checks }] }, 1)).toBe(line);
  });

  it('asks for a run that was refused for it', () => {
    const reason =
      `Set-up failed: The run writes to tables that Loadstone did not create: ${line} target.allow_writes: ` +
      'allow it.';
    expect(refusedWrites({ status: 'FAILED', cancellation_reason: reason })).toBe(
      `The run writes to tables that Loadstone did not create: ${line}`,
    );
    expect(refusedWrites({ status: 'FAILED', cancellation_reason: 'Set-up failed: no such table' })).toBeNull();
    expect(refusedWrites({ status: 'COMPLETED', cancellation_reason: null })).toBeNull();
  });
});
