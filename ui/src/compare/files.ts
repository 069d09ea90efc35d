import type { PartComparison } from '../api/types';
import { csv } from '../charts/export';
import { type Compared, letter } from './model';

/** asJson exports the comparison with all digits. */
export function asJson(list: Compared[], tolerance_pct: number, parts: (PartComparison | null)[]): string {
  const runs = list.map((c, i) => ({
    letter: letter(i),
    run_id: c.run.run_id,
    name: c.label,
    against_first: c.against,
    parts_against_first: i === 0 ? null : (parts[i] ?? null),
  }));
  return `${JSON.stringify({ tolerance_pct, runs }, null, 2)}\n`;
}

/** partsCsv writes one line per figure of each kind and statement, with all digits. */
export function partsCsv(list: Compared[], parts: (PartComparison | null)[]): string {
  return csv(
    [
      'run',
      'run_id',
      'kind',
      'statement_id',
      'in_transaction',
      'metric',
      'a',
      'b',
      'difference',
      'low',
      'high',
      'verdict',
    ],
    list.flatMap((c, i) =>
      i === 0 || !parts[i]
        ? []
        : [...parts[i].kinds, ...parts[i].statements].flatMap((p) =>
            p.metrics.map((m) => [
              c.label,
              c.run.run_id,
              p.kind,
              p.statement_id,
              String(p.in_transaction),
              m.name,
              m.a,
              m.b,
              m.difference,
              m.low,
              m.high,
              m.verdict,
            ]),
          ),
    ),
  );
}
