// What is asked for of the parameters that a run has kept, and how one of them reads.
import type { KeptValue, KeptBinds } from '../api/types';
import { exact } from '../design/format';

/** Which executions: what is left out does not narrow. */
export interface BindsOf {
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

/** A value as the page shows it, and whether it is the value itself. */
export function shown(v: KeptValue): { text: string; value: boolean } {
  if (v.type === 'null') return { text: 'NULL', value: true };
  if (v.text === null) {
    const long = v.type === 'text' || v.type === 'bytes';
    return { text: long ? `${v.type}(${exact(v.length)})` : (units[v.type] ?? v.type), value: false };
  }
  return { text: v.type === 'bytes' ? `\\x${v.text}` : v.text, value: true };
}

/** How much of a long value is not there. */
export const cutOff = (v: KeptValue) => (v.cut ? `the beginning of ${exact(v.length)} bytes` : '');

/** What a list of parameters says of itself where no values are in it; empty where they are. */
export function unseen(kept: Pick<KeptBinds, 'mode' | 'values_shown'>): string {
  if (kept.values_shown) return '';
  switch (kept.mode) {
    case 'plain':
      return 'The values are kept, and not shown.';
    case 'masked':
      return 'Types and lengths were kept, and no values: the template says binds: masked.';
    default:
      return 'Nothing was kept of parameters: the template says binds: none, or the run is of a version before them.';
  }
}

/** What a list of parameters says of executions of the whole run for which there was no room; empty where there was. */
export function leftOut(kept: Pick<KeptBinds, 'left_out'>): string {
  const n = kept.left_out;
  if (!n) return '';
  return `There was no room for ${exact(n)} further ${n === 1 ? 'execution' : 'executions'} of this run.`;
}
