import { expect, it } from 'vitest';
import type { RunDetail } from '../src/api/types';
import { matrixScenario, targetsNeedingWrites, targetsRefusedWrites } from '../src/matrix/targets';

const leave = { outcome: 'failed', message: 'UPDATE in public.b, 5 rows', field: 'matrix.targets[1].allow_writes' };

it('asks for the targets that need leave, by their names', () => {
  const found = { checks: [leave], targets: [{ checks: [{ outcome: 'ok', message: '' }] }, { checks: [leave] }] };
  expect(targetsNeedingWrites(found, ['a', 'b'])).toEqual([{ label: 'b', line: 'UPDATE in public.b, 5 rows' }]);
  expect(targetsNeedingWrites(undefined, ['a'])).toEqual([]);
  // A preflight that reached no target says nothing about any.
  expect(targetsNeedingWrites({ checks: [leave] }, ['a', 'b'])).toEqual([]);
});

it('knows the targets that were refused', () => {
  const reason =
    'Set-up failed: The run writes to tables that Loadstone did not create: UPDATE in public.b ' +
    'target.allow_writes: is not set; x';
  expect(
    targetsRefusedWrites([
      { status: 'COMPLETED', cancellation_reason: null, matrix_label: 'a' },
      { status: 'FAILED', cancellation_reason: reason, matrix_label: 'b' },
      { status: 'FAILED', cancellation_reason: 'Set-up failed: no such table', matrix_label: 'c' },
    ]),
  ).toEqual([{ label: 'b', line: 'UPDATE in public.b' }]);
});

it('is made anew from its runs', () => {
  const run = (label: string, table: string) =>
    ({
      matrix_label: label,
      scenario_config: {
        name: `m · ${label}`,
        template_id: 't',
        target: { connection: 'c', adapter: 'postgres', table_name: table },
        workload: { plugin: 'mix' },
      },
    }) as unknown as RunDetail;
  expect(matrixScenario({ name: 'm', stop_on_failure: true }, [run('a', 'x'), run('b', 'y')])).toEqual({
    name: 'm',
    workload: { plugin: 'mix' },
    matrix: {
      targets: [
        { label: 'a', connection: 'c', adapter: 'postgres', table_name: 'x' },
        { label: 'b', connection: 'c', adapter: 'postgres', table_name: 'y' },
      ],
      stop_on_failure: true,
    },
  });
  expect(matrixScenario({ name: 'm', stop_on_failure: true }, [run('a', 'x'), undefined])).toBeNull();
});
