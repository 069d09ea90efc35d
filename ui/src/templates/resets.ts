// What else changes when a document's workload or table type changes.
import type { Plugin, ScenarioDraft } from '../api/types';
import { findPlugin } from '../plugins/refs';
import { get, set, shownAs } from './schema';

/** tablesOf says whether a workload has several tables, and whether its parameters set their rows (tpcb's scale). */
export function tablesOf(plugins: Plugin[] | undefined, workload: string) {
  const chosen = findPlugin(plugins, 'workload', workload);
  const tables = chosen?.manifest.tables ?? [];
  const several = tables.length > 1;
  /** Own SQL and replays use existing tables. */
  const none = chosen !== undefined && tables.length === 0;
  return { first: tables[0]?.name, several, none, sized: several && tables.every((t) => t.rows || t.empty) };
}

/**
 * withWorkload switches the workload. Parameters reset; a workload with several tables needs no table name or rows; a
 * recording needs a replay workload.
 */
export function withWorkload(config: ScenarioDraft, workload: string, plugins: Plugin[] | undefined): ScenarioDraft {
  const before = tablesOf(plugins, shownAs(config.workload.plugin));
  const now = tablesOf(plugins, workload);
  let next = set(config, 'workload.plugin', workload);
  next = set(next, 'workload.params', {});
  if (now.several) next = set(next, 'target.table_name', undefined);
  if (now.none) next = set(next, 'target.prepare', undefined);
  else if (before.none) next = set(next, 'target.prepare', { rows: 100_000, if_exists: 'use' });
  if (now.sized && get(next, 'target.prepare')) next = set(next, 'target.prepare.rows', undefined);
  if (!findPlugin(plugins, 'workload', workload)?.manifest.feed) next = set(next, 'workload.feed', undefined);
  return next;
}

/** FeedSource is a replay's source and the document's statements. */
export interface FeedSource {
  feed: { run: string } | { csv: string };
  statements?: unknown;
}

/** withFeed switches the replay's source. A recorded run supplies its statements, so the document must have none. */
export function withFeed(config: ScenarioDraft, { feed, statements }: FeedSource): ScenarioDraft {
  return set(set(config, 'workload.feed', feed), 'workload.params.statements', 'run' in feed ? undefined : statements);
}

/** feedHasStatements reports that a recorded run supplies the statements. */
export function feedHasStatements(config: ScenarioDraft): boolean {
  const csv = get(config, 'workload.feed.csv');
  return typeof csv !== 'string' && get(config, 'workload.params.statements') === undefined;
}

/** withTableType switches the table type and resets its parameters. */
export function withTableType(config: ScenarioDraft, adapter: string): ScenarioDraft {
  return set(set(config, 'target.adapter', adapter), 'target.params', undefined);
}
