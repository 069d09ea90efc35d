import type * as schema from '../api/schema';
import { bytes, exact, plain } from '../design/format';

export type Rules = Pick<
  schema.Retention,
  'on' | 'keep_runs_days' | 'keep_executions_days' | 'executions_budget_gb' | 'keep_tags'
>;

/** Draft is the form's state: numbers as typed. */
export interface Draft {
  on: boolean;
  runs: string;
  executions: string;
  budget: string;
  tags: string;
}

export function draftOf(r: Rules): Draft {
  const typed = (n: number) => (n > 0 ? String(n) : '');
  return {
    on: r.on,
    runs: typed(r.keep_runs_days),
    executions: typed(r.keep_executions_days),
    budget: typed(r.executions_budget_gb),
    tags: r.keep_tags.join(', '),
  };
}

export function rulesOf(d: Draft): Rules {
  return {
    on: d.on,
    keep_runs_days: Number(d.runs) || 0,
    keep_executions_days: Number(d.executions) || 0,
    executions_budget_gb: Number(d.budget) || 0,
    keep_tags: d.tags
      .split(',')
      .map((t) => t.trim())
      .filter(Boolean),
  };
}

const plural = (n: number, one: string, more = `${one}s`) => `${exact(n)} ${n === 1 ? one : more}`;

/** previewText says what the rules would delete now. */
export function previewText(p: schema.Preview): string {
  const parts = [];
  if (p.deleted_runs > 0) parts.push(plural(p.deleted_runs, 'run'));
  if (p.deleted_executions > 0) parts.push(`the single executions of ${plural(p.deleted_executions, 'run')}`);
  if (parts.length === 0) {
    return `Loadstone would delete nothing now. ${plural(p.ended_runs, 'run is', 'runs are')} finished.`;
  }
  const freed = `${plain(bytes(p.freed_bytes))} of ${plain(bytes(p.executions_bytes))}`;
  return `Loadstone would now delete ${parts.join(' and ')} and free ${freed}.`;
}

const keepReasons: Record<schema.KeptRuns['by'], string> = {
  baseline: 'as baseline of their template',
  note: 'for their note',
  share: 'for a link that has not expired',
  replay: 'because they are replayed',
  matrix: 'because their matrix is still running',
  tag: 'for a tag',
};

export function keptRunsText(p: schema.Preview): string {
  const list = p.kept.map((k) => `${exact(k.count)} ${keepReasons[k.by]}`);
  return list.length > 0 ? `Old enough but kept: ${list.join(', ')}.` : '';
}

/** leftoverText describes leftover files of a place; empty when there is no problem yet. */
export function leftoverText(l: schema.LeftPlace, since: (at: string | null) => string): string {
  const where = l.label || 'an unknown location';
  const reached = l.seen_at ? `, which a server reached ${since(l.seen_at)}` : '';
  const of = `Files of ${plural(l.runs, 'deleted run')}`;
  if (l.problem) return `${of} could not be removed from ${where}: ${l.problem.replace(/\.$/, '')}. Loadstone retries.`;
  return `${of} wait to be removed from ${where}${reached}.`;
}

export function passText(p: schema.Pass): string {
  if (!p.ended_at) return `Deleting now: ${exact(p.done)} of ${exact(p.planned)} done.`;
  const what = [];
  if (p.runs_deleted > 0) what.push(plural(p.runs_deleted, 'run'));
  if (p.executions_deleted > 0) what.push(`the executions of ${plural(p.executions_deleted, 'run')}`);
  const short = p.cut_short ? ` Cut short after ${exact(p.done)} of ${exact(p.planned)}; the next pass continues.` : '';
  return `Deleted last: ${what.join(' and ') || 'nothing'}, ${plain(bytes(p.bytes_freed))}.${short}`;
}
