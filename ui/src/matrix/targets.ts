import type { Matrix, Run, RunDetail, Scenario } from '../api/types';
import { neededWrites, type PreflightFindings, refusedWrites } from '../runs/writePermission';

/** matrixScenario rebuilds the matrix document from its runs; null until all are known. */
export function matrixScenario(
  m: Pick<Matrix, 'name' | 'stop_on_failure'>,
  runs: (RunDetail | undefined)[],
): Scenario | null {
  const first = runs[0]?.scenario_config;
  if (!first || runs.some((r) => r === undefined)) return null;
  const { target: _target, template_id: _id, template_name: _name, ...rest } = first;
  return {
    ...rest,
    name: m.name,
    matrix: {
      targets: runs.map((r) => ({ label: r!.matrix_label ?? '', ...r!.scenario_config.target })),
      stop_on_failure: m.stop_on_failure,
    },
  } as unknown as Scenario;
}

/** targetsNeedingWrites lists what each target would do to existing tables without permission, from the preflight. */
export function targetsNeedingWrites(
  found: PreflightFindings | undefined,
  labels: string[],
): { label: string; line: string }[] {
  return labels.flatMap((label, i) => {
    const line = found?.targets?.[i] ? neededWrites(found, i) : null;
    return line ? [{ label, line }] : [];
  });
}

/** targetsRefusedWrites lists targets whose runs were rejected for it. */
export function targetsRefusedWrites(
  runs: Pick<Run, 'status' | 'cancellation_reason' | 'matrix_label'>[],
): { label: string; line: string }[] {
  return runs.flatMap((r) => {
    const line = refusedWrites(r);
    return line
      ? [
          {
            label: r.matrix_label ?? '',
            line: line.replace(/^The run writes to tables that Loadstone did not (?:make|create): /, ''),
          },
        ]
      : [];
  });
}
