// Checks a summary against the Parquet files it was made from, with a reader
// and an arithmetic that share nothing with the program's own.
// usage: node e2e/figures.mjs SUMMARY.json FOLDER
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';

/** PERCENTILE_CONT of sorted values. */
function percentile(sorted, q) {
  const at = q * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}

const near = (actual, expected, what) =>
  assert.ok(
    Math.abs(actual - expected) <= 1e-9 * Math.max(1, Math.abs(expected)),
    `${what}: the summary says ${actual}, the records say ${expected}`,
  );

export async function check(summary, folder) {
  const rows = [];
  for (const name of readdirSync(folder).filter((n) => n.endsWith('.parquet'))) {
    const bytes = readFileSync(join(folder, name));
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    const columns = [
      'run_id',
      'worker_id',
      'connection_id',
      'seq',
      'warmup',
      'kind',
      'app_elapsed_ms',
      'success',
      'error_class',
    ];
    for (const row of await parquetReadObjects({ file, columns })) rows.push(row);
  }
  assert.equal(rows.length, summary.accounting.recorded, 'recorded');
  assert.ok(rows.every((r) => r.run_id === summary.run_id));
  assert.equal(rows.filter((r) => r.success).length, summary.accounting.succeeded, 'succeeded');
  assert.equal(rows.filter((r) => r.warmup).length, summary.accounting.warmup, 'warm-up');
  const ids = new Set(rows.map((r) => `${r.worker_id}/${r.connection_id}/${r.seq}`));
  assert.equal(ids.size, rows.length, 'an execution stands twice');

  const measured = rows.filter((r) => !r.warmup);
  assert.equal(measured.length, summary.operations, 'operations');
  const judge = (figures, executions, what) => {
    const ms = executions.map((r) => r.app_elapsed_ms).sort((a, b) => a - b);
    for (const [name, q] of [
      ['p50', 0.5],
      ['p90', 0.9],
      ['p95', 0.95],
      ['p99', 0.99],
      ['p999', 0.999],
    ])
      near(figures[name], percentile(ms, q), `${what} ${name}`);
    near(figures.min, ms[0], `${what} min`);
    near(figures.max, ms[ms.length - 1], `${what} max`);
    near(figures.avg, ms.reduce((a, b) => a + b, 0) / ms.length, `${what} avg`);
  };
  judge(summary.latency_ms, measured, 'all');
  for (const [kind, figures] of Object.entries(summary.by_kind)) {
    const own = measured.filter((r) => r.kind === kind);
    assert.equal(own.length, figures.count, `${kind} count`);
    if (own.length > 0) judge(figures.latency_ms, own, kind);
  }
  assert.equal(measured.filter((r) => !r.success).length, summary.errors.count, 'errors');
  return rows.length;
}

const [summary, folder] = process.argv.slice(2);
const count = await check(JSON.parse(readFileSync(summary, 'utf8')), folder);
console.log(`The summary agrees with ${count} records, read independently.`);
