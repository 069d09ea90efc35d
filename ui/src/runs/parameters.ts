// Queries for captured parameters, and their formatting.
import type { KeptBinds, KeptValue } from '../api/types';
import { exact } from '../design/format';

/** ParameterQuery selects executions; omitted fields do not filter. */
export interface ParameterQuery {
  why?: 'failed' | 'slow';
  statement?: string;
  error_class?: string;
  error_code?: string;
  inside?: 'yes' | 'no';
  worker?: string;
  connection?: number;
  seq?: number;
}

const units: Record<string, string> = {
  i64: 'number',
  f64: 'number',
  bool: 'true or false',
  timestamp: 'time',
  ref: 'of an earlier answer',
};

/** valueText formats a value, and reports whether it is the value itself. */
export function valueText(v: KeptValue): { text: string; value: boolean } {
  if (v.type === 'null') return { text: 'NULL', value: true };
  if (v.text === null) {
    const long = v.type === 'text' || v.type === 'bytes';
    return { text: long ? `${v.type}(${exact(v.length)})` : (units[v.type] ?? v.type), value: false };
  }
  return { text: v.type === 'bytes' ? `\\x${v.text}` : v.text, value: true };
}

/** truncationNote says how much of a long value is missing. */
export const truncationNote = (v: KeptValue) => (v.cut ? `the beginning of ${exact(v.length)} bytes` : '');

/** hiddenValuesNote explains why a list has no values; '' when it has. */
export function hiddenValuesNote(binds: Pick<KeptBinds, 'mode' | 'values_shown'>): string {
  if (binds.values_shown) return '';
  switch (binds.mode) {
    case 'plain':
      return 'The values are stored but not shown.';
    case 'masked':
      return 'Types and lengths were stored without values, because the template sets binds: masked.';
    default:
      return 'No parameters were stored, because the template sets binds: none or the run is of an older version.';
  }
}

/** omittedNote counts the run's executions without captured parameters; '' when there are none. */
export function omittedNote(binds: Pick<KeptBinds, 'left_out'>): string {
  const n = binds.left_out;
  if (!n) return '';
  return `No space was left for ${exact(n)} more ${n === 1 ? 'execution' : 'executions'} of this run.`;
}
