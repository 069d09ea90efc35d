#!/usr/bin/env bash
# One workload on all of the simulated table types and on Postgres, as CI does it:
# matrix.json, its comparisons, JUnit and the exit codes. usage: deploy/matrix.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
short=(--data-dir "$work/data" --quiet --wait-enrichment 3s --set workload.duration_seconds=3 --set workload.warmup_seconds=0.5)

"$binary" run examples/table-types-matrix.yaml "${short[@]}" --out "$work/matrix.json" --junit "$work/j.xml"

node --input-type=module - "$work/matrix.json" "$work/j.xml" <<'JS'
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
const [file, junit] = process.argv.slice(2);
const m = JSON.parse(readFileSync(file, 'utf8'));
assert.deepEqual(m.labels, ['standard', 'hybrid', 'interactive', 'postgres']);
assert.equal(m.status, 'COMPLETED');
assert.equal(m.simulated, true);
assert.equal(m.passed, true);
for (const [i, t] of m.targets.entries()) {
  assert.equal(t.label, m.labels[i]);
  assert.equal(t.simulated, t.label !== 'postgres', `${t.label} simulated`);
  const s = t.summary;
  assert.ok(s.qps > 0 && s.latency_ms.p50 > 0, `${t.label} has no figures`);
  assert.equal(s.accounting.recorded, s.accounting.started);
  assert.equal(s.errors.count, 0, `${t.label}: ${JSON.stringify(s.errors.top)}`);
  if (i === 0) assert.equal(t.against_first, null);
  else assert.ok(t.against_first.metrics.find((x) => x.name === 'qps').difference !== null, `${t.label} is not compared`);
}
// A hybrid table answers point lookups much faster than a standard one: that is what is modelled.
const p50 = (label) => m.targets.find((t) => t.label === label).summary.latency_ms.p50;
assert.ok(p50('hybrid') < p50('standard') / 2, `hybrid ${p50('hybrid')} ms, standard ${p50('standard')} ms`);
assert.equal(readFileSync(junit, 'utf8').match(/<testsuite /g).length, 4);
console.log('The table types are compared as they should be.');
JS

# One target that fails does not stop the others, and decides the exit code; so does a threshold.
cat >"$work/two.yaml" <<'YAML'
name: two tables
matrix:
  targets:
    - {label: missing, connection: playground, table_name: missing}
    - {label: there, connection: playground, table_name: matrix_there, prepare: {rows: 1000}}
workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 100}}, concurrent_connections: 2}
thresholds: ["qps > 1e9"]
YAML
code=0
"$binary" run "$work/two.yaml" "${short[@]}" --out "$work/two.json" >"$work/out" 2>&1 || code=$?
if [ "$code" != 1 ] || ! grep -q 'missing: Set-up failed' "$work/out" || ! grep -q 'there: threshold qps > 1e9 FAILED' "$work/out"; then
	cat "$work/out" >&2
	echo "a matrix with a missing table: exit $code, want 1 and the reasons" >&2
	exit 1
fi
echo "Exit codes are as the contract says."
