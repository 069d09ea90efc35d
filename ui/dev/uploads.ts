// Uploaded plugins of the mock and its responses to uploads.
import { createHash } from 'node:crypto';
import type { Plugin, PluginStatement } from '../src/api/types';
import { iso } from './data';
import { Refusal } from './refusal';

const counters = (
  version: string,
  state: Plugin['state'],
  parameters: Record<string, unknown>,
  statements: PluginStatement[],
  more: Partial<Plugin> = {},
): Plugin => ({
  kind: 'workload',
  name: 'counters',
  version,
  sha256: createHash('sha256').update(`counters ${version}`).digest('hex'),
  size_bytes: 2_483_229,
  abi: '1.0',
  imports: ['ls.log', 'wasi_snapshot_preview1.fd_write', 'wasi_snapshot_preview1.random_get'],
  exports: ['ls_abi', 'ls_alloc', 'ls_describe', 'ls_error', 'ls_fill', 'ls_open', 'memory'],
  manifest: {
    kind: 'workload',
    name: 'counters',
    version,
    title: 'Counters',
    author: 'Grace <grace@example.com>',
    description: 'Raises a few hot counters and reads them back: what a like button does to a table.',
    parameters: { type: 'object', additionalProperties: false, properties: parameters },
    tables: [
      {
        name: 'counters',
        key: ['id'],
        columns: [
          { name: 'id', type: 'i64' },
          { name: 'hits', type: 'i64' },
        ],
      },
    ],
    statements,
  },
  enabled: state !== 'disabled',
  bundled: false,
  state,
  origin: 'uploaded',
  default: state === 'enabled',
  uploaded_by: 'grace',
  uploaded_at: iso(Date.now() - 3 * 3600_000),
  enabled_by: state === 'disabled' ? undefined : 'admin',
  enabled_at: state === 'disabled' ? null : iso(Date.now() - 2 * 3600_000),
  templates: [],
  live_runs: [],
  ...more,
});

const reads = {
  title: 'Reads',
  description: 'Share of reads, in percent.',
  type: 'integer',
  minimum: 0,
  maximum: 100,
  default: 20,
};
const id = { name: 'id', type: 'i64' };
const hit: PluginStatement = {
  id: 'hit',
  kind: 'UPDATE',
  table: 'counters',
  writes: true,
  binds: [id],
  sql: {
    postgres: 'UPDATE counters\n   SET hits = hits + 1\n WHERE id = $1',
    snowflake: 'UPDATE counters SET hits = hits + 1 WHERE id = ?',
  },
};
const read: PluginStatement = { id: 'read', kind: 'POINT_LOOKUP', table: 'counters', binds: [id], columns: ['hits'] };

export const uploads: Plugin[] = [
  counters(
    '1.1.0',
    'disabled',
    {
      reads,
      hot: {
        type: 'integer',
        title: 'Hot counters',
        description: 'How many counters take the hits.',
        minimum: 1,
        maximum: 1000,
        default: 4,
      },
    },
    [
      hit,
      read,
      { id: 'reset', kind: 'GENERIC_SQL', writes: true, sql: { '*': 'DELETE FROM counters WHERE hits > 1000000' } },
    ],
  ),
  counters('1.0.0', 'enabled', { reads }, [hit, read], { templates: [{ id: 'x', name: 'hot counters' }] }),
  counters('0.9.0', 'damaged', { reads }, [hit], {
    default: false,
    problem: 'The plugin counters@0.9.0 is damaged: its file was changed after it was uploaded. It was not executed.',
  }),
];

/** receive handles an upload: text is rejected, anything that begins like WebAssembly is counters 1.2.0. */
export function receive(plugins: Plugin[], file: string): Plugin {
  if (!file.startsWith('\0asm'))
    throw new Refusal(
      422,
      'plugin_refused',
      'The file is not a plugin that this version accepts: it is a text, not a WebAssembly module.',
      'The author sees the same, and more, with: loadstone plugin test FILE',
    );
  const p = counters('1.2.0', 'disabled', { reads }, [hit, read], { uploaded_at: iso(Date.now()) });
  plugins.push(p);
  return p;
}
