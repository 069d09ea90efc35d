import { useQueryClient } from '@tanstack/react-query';
import { asProblem, fetchFile } from '../api/client';
import type { PartComparison } from '../api/types';
import { useParam } from '../app/location';
import { save } from '../charts/export';
import { ActionsMenu } from '../design/Controls';
import { useToast } from '../design/Toast';
import { asCsv, type Compared, markdown } from './model';
import { asJson, partsCsv } from './files';
import { problemText } from '../design/sentences';

const choices = [1, 2, 5, 10, 20];

/** useTolerance is the smallest difference that matters, in percent, kept in the address. */
export function useTolerance(): [number, (n: number) => void] {
  const [text, set] = useParam('tolerance', '5');
  const n = Number(text);
  return [Number.isFinite(n) && n >= 0 && n <= 1000 ? n : 5, (v) => set(String(v))];
}

export function Tolerance({ value, onChange }: { value: number; onChange: (n: number) => void }) {
  const list = choices.includes(value) ? choices : [...choices, value].sort((a, b) => a - b);
  return (
    <select
      className="input auto"
      aria-label="Tolerance"
      title="The smallest difference that counts"
      value={value}
      onChange={(e) => onChange(Number(e.target.value))}
    >
      {list.map((n) => (
        <option key={n} value={n}>
          ± {n} %
        </option>
      ))}
    </select>
  );
}

/** CopyComparison copies the table of figures. */
export function CopyComparison({ compared, tolerance }: { compared: (Compared | null)[]; tolerance: number }) {
  const toast = useToast();
  const qc = useQueryClient();
  const list = compared.filter((c) => c !== null);
  const copy = async (text: string) => {
    try {
      await navigator.clipboard.writeText(text);
      toast('Copied.', 'ok');
    } catch {
      toast('The browser blocked copying. Save the CSV instead.', 'warn');
    }
  };
  const ids = list.map((c) => c.run.run_id);
  const parts = ids.map((id) => qc.getQueryData<PartComparison>(['compare-parts', ids[0], id, tolerance]) ?? null);
  const report = async () => {
    const q = new URLSearchParams({ runs: ids.join(','), tolerance_pct: String(tolerance) });
    try {
      save('comparison-report.html', await fetchFile(`/api/v1/compare/report?${q}`));
    } catch (e) {
      const p = asProblem(e);
      toast(`The file could not be created. ${problemText(p)}`, 'bad');
    }
  };
  const disabled = list.length < compared.length;
  return (
    <ActionsMenu
      label="Copy or save the comparison"
      actions={[
        { label: 'Copy as Markdown', icon: 'copy', disabled, act: () => void copy(markdown(list, tolerance)) },
        { label: 'Copy as CSV', icon: 'copy', disabled, act: () => void copy(asCsv(list)) },
        {
          label: 'Save as one HTML file',
          icon: 'download',
          disabled: disabled || list.length < 2,
          act: () => void report(),
        },
        {
          label: 'Save as JSON',
          icon: 'download',
          disabled,
          act: () => save('comparison.json', new Blob([asJson(list, tolerance, parts)], { type: 'application/json' })),
        },
        {
          label: 'Save kinds and statements as CSV',
          icon: 'table',
          disabled: disabled || parts.every((p) => p === null),
          act: () => save('comparison-parts.csv', new Blob([partsCsv(list, parts)], { type: 'text/csv' })),
        },
        {
          label: 'Save as CSV',
          icon: 'download',
          disabled,
          act: () => save('comparison.csv', new Blob([asCsv(list)], { type: 'text/csv' })),
        },
      ]}
    />
  );
}
