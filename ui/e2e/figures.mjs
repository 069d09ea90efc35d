// Checks a summary against its Parquet files with an independent reader and arithmetic. usage: node e2e/figures.mjs
// SUMMARY.json FOLDER
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetReadObjects } from 'hyparquet';

/** percentile is PERCENTILE_CONT of sorted values. */
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
  const all = [];
  for (const name of readdirSync(folder).filter((n) => /^executions-.*\.parquet$/.test(n))) {
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
      'statement_id',
      'retries',
      'position',
      'rolled_back',
    ];
    for (const row of await parquetReadObjects({ file, columns })) all.push(row);
  }
  // Rows with a position are statements of transactions, counted separately.
  const rows = all.filter((r) => r.position === 0);
  const inside = all.filter((r) => r.position !== 0);
  assert.equal(inside.length, summary.accounting.statements, 'statements of transactions');
  assert.equal(rows.length, summary.accounting.recorded, 'recorded');
  assert.ok(rows.every((r) => r.run_id === summary.run_id));
  assert.equal(rows.filter((r) => r.success).length, summary.accounting.succeeded, 'succeeded');
  assert.equal(rows.filter((r) => r.warmup).length, summary.accounting.warmup, 'warm-up');
  const ids = new Set(rows.map((r) => `${r.worker_id}/${r.connection_id}/${r.seq}`));
  assert.equal(ids.size, rows.length, 'an execution stands twice');
  for (const r of inside)
    assert.ok(ids.has(`${r.worker_id}/${r.connection_id}/${r.seq}`), 'a statement has no transaction');

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
  const sum = (of, value) => of.reduce((n, r) => n + Number(value(r)), 0);
  assert.equal(
    sum(measured, (r) => r.retries),
    summary.retries,
    'retries',
  );
  const transactions = measured.filter((r) => r.kind === 'TRANSACTION');
  assert.equal(transactions.length, summary.transactions?.count ?? 0, 'transactions');
  assert.equal(transactions.filter((r) => r.rolled_back).length, summary.transactions?.rolled_back ?? 0, 'rolled back');

  // Percentiles by statement come from a histogram: within 0.55 %.
  const groups = new Map();
  for (const r of all.filter((r) => !r.warmup)) {
    const key = JSON.stringify([r.statement_id, r.kind, r.position !== 0]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(r);
  }
  assert.equal(groups.size, summary.by_statement.length, 'statements');
  for (const f of summary.by_statement) {
    const own = groups.get(JSON.stringify([f.statement_id, f.kind, f.in_transaction])) ?? [];
    assert.equal(own.length, f.count, `${f.statement_id} count`);
    assert.equal(own.filter((r) => !r.success).length, f.errors, `${f.statement_id} errors`);
    const ms = own.map((r) => r.app_elapsed_ms).sort((a, b) => a - b);
    near(f.latency_ms.avg, sum(own, (r) => r.app_elapsed_ms) / own.length, `${f.statement_id} mean`);
    near(f.latency_ms.max, ms[ms.length - 1], `${f.statement_id} max`);
    // A histogram's quantile may have a neighbouring rank.
    for (const [name, q] of [
      ['p50', 0.5],
      ['p95', 0.95],
      ['p99', 0.99],
    ]) {
      const at = q * (ms.length - 1);
      const low = ms[Math.max(0, Math.floor(at) - 1)] * 0.99;
      const high = ms[Math.min(ms.length - 1, Math.ceil(at) + 1)] * 1.01;
      assert.ok(
        f.latency_ms[name] >= low && f.latency_ms[name] <= high,
        `${f.statement_id} ${name}: ${f.latency_ms[name]} is not between ${low} and ${high}`,
      );
    }
  }
  return rows.length;
}

const [summary, folder] = process.argv.slice(2);
const count = await check(JSON.parse(readFileSync(summary, 'utf8')), folder);
console.log(`The summary agrees with ${count} records, read independently.`);
