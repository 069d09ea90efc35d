// What else changes in a document when its workload or its table type does.
import type { Plugin, Sketch } from '../api/types';
import { meant } from '../plugins/refs';
import { get, set, shownAs } from './schema';

/**
 * What a workload says of its tables: whether there are several, and whether its parameters decide their rows (tpcb's
 * scale).
 */
export function tablesOf(plugins: Plugin[] | undefined, workload: string) {
  const chosen = meant(plugins, 'workload', workload);
  const tables = chosen?.manifest.tables ?? [];
  const several = tables.length > 1;
  /** Own SQL and replays work on what is there. */
  const none = chosen !== undefined && tables.length === 0;
  return { first: tables[0]?.name, several, none, sized: several && tables.every((t) => t.rows || t.empty) };
}

/**
 * The document with another workload. It has other parameters, and with several tables of its own no use
 * for the name and the rows of one; a recording is for a workload that plays one.
 */
export function withWorkload(config: Sketch, workload: string, plugins: Plugin[] | undefined): Sketch {
  const before = tablesOf(plugins, shownAs(config.workload.plugin));
  const now = tablesOf(plugins, workload);
  let next = set(config, 'workload.plugin', workload);
  next = set(next, 'workload.params', {});
  if (now.several) next = set(next, 'target.table_name', undefined);
  if (now.none) next = set(next, 'target.prepare', undefined);
  else if (before.none) next = set(next, 'target.prepare', { rows: 100_000, if_exists: 'use' });
  if (now.sized && get(next, 'target.prepare')) next = set(next, 'target.prepare.rows', undefined);
  if (!meant(plugins, 'workload', workload)?.manifest.feed) next = set(next, 'workload.feed', undefined);
  return next;
}

/** What a replay takes its operations from, and the statements that stand in the document beside it. */
export interface Feeding {
  feed: { run: string } | { csv: string };
  statements?: unknown;
}

/** The document with another source of operations. A recorded run brings its statements: none may be beside it. */
export function fedFrom(config: Sketch, { feed, statements }: Feeding): Sketch {
  return set(set(config, 'workload.feed', feed), 'workload.params.statements', 'run' in feed ? undefined : statements);
}

/** Whether the statements of a replay come with its run, so that a form has none to ask for. */
export function bringsStatements(config: Sketch): boolean {
  const csv = get(config, 'workload.feed.csv');
  return typeof csv !== 'string' && get(config, 'workload.params.statements') === undefined;
}

/** The document with another table type, which has other parameters. */
export function withTableType(config: Sketch, adapter: string): Sketch {
  return set(set(config, 'target.adapter', adapter), 'target.params', undefined);
}
