import { api } from '../api/client';
import type { Template } from '../api/types';

/** firstRunSource is the template of the first run, when none has its name: examples/first-run.yaml. */
export const firstRunSource = `# The first run: a mixed workload on the built-in Postgres, for 20 seconds.
name: first run
target:
  connection: playground
  adapter: postgres
  table_name: orders
  prepare: {rows: 100000, if_exists: use}
workload:
  plugin: mix
  params:
    weights: {POINT_LOOKUP: 70, RANGE_SCAN: 10, INSERT: 10, UPDATE: 10}
    keys: zipfian
  load_mode: CONCURRENCY
  concurrent_connections: 16
  think_time_ms: 20
  warmup_seconds: 3
  duration_seconds: 20
  seed: 42
scaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 8}
thresholds:
  - p95_ms < 250
  - error_rate < 0.001
tags: {example: first-run}
`;

/** firstRun returns the request that starts the first run, and creates its template when missing. */
export async function firstRun(templates: Template[] | undefined): Promise<{ template_id: string; start: true }> {
  const before = templates?.find((x) => /^first[ -]run$/i.test(x.name));
  const t = before ?? (await api.post('/api/templates', { body: { source: firstRunSource } }));
  return { template_id: t.template_id, start: true };
}
