import type { Matrix, Run, RunDetail, Scenario } from '../api/types';
import { asksToWrite, type Looked, refusedWrites } from '../runs/writes';

/** The document that makes the matrix anew, from its runs; null while one of them is not known. */
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

/** What each target would do to tables of others and has no leave for, as the preflight says it; none when all may. */
export function targetsAsk(found: Looked | undefined, labels: string[]): { label: string; line: string }[] {
  return labels.flatMap((label, i) => {
    const line = found?.targets?.[i] ? asksToWrite(found, i) : null;
    return line ? [{ label, line }] : [];
  });
}

/** The same of targets whose runs were refused for it. */
export function targetsRefused(
  runs: Pick<Run, 'status' | 'cancellation_reason' | 'matrix_label'>[],
): { label: string; line: string }[] {
  return runs.flatMap((r) => {
    const line = refusedWrites(r);
    return line
      ? [
          {
            label: r.matrix_label ?? '',
            line: line.replace(/^The run writes to tables that Loadstone did not make: /, ''),
          },
        ]
      : [];
  });
}
