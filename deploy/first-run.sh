#!/usr/bin/env bash
# The main job, as CI does it: the first run from the command line, its exit
# code, and the fields of its summary. usage: deploy/first-run.sh BINARY
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

"$binary" run examples/first-run.yaml --data-dir "$work/data" --out "$work/s.json" --junit "$work/j.xml" \
	--set workload.duration_seconds=5 --set workload.warmup_seconds=1

node --input-type=module - "$work/s.json" "$work/j.xml" <<'JS'
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
const [summary, junit] = process.argv.slice(2);
const s = JSON.parse(readFileSync(summary, 'utf8'));
for (const field of ['run_id', 'status', 'validity', 'qps', 'duration_seconds', 'latency_ms', 'by_kind', 'errors', 'accounting', 'plugins', 'environment'])
  assert.ok(field in s, `the summary has no ${field}`);
assert.equal(s.status, 'COMPLETED');
for (const p of ['p50', 'p95', 'p99', 'avg', 'min', 'max']) assert.ok(s.latency_ms[p] > 0, `latency_ms.${p} is ${s.latency_ms[p]}`);
assert.ok(s.latency_ms.min <= s.latency_ms.p50 && s.latency_ms.p50 <= s.latency_ms.p95 && s.latency_ms.p99 <= s.latency_ms.max);
assert.ok(s.qps > 50, `only ${s.qps} operations per second`);
const a = s.accounting;
assert.equal(a.scheduled, a.started + a.dropped);
assert.equal(a.started, a.succeeded + a.failed);
assert.equal(a.recorded, a.started);
for (const kind of ['POINT_LOOKUP', 'RANGE_SCAN', 'INSERT', 'UPDATE']) assert.ok(s.by_kind[kind].count > 0, `no ${kind}`);
assert.deepEqual(s.plugins.map((p) => p.name).sort(), ['mix', 'postgres']);
for (const p of s.plugins) assert.match(p.sha256, /^[0-9a-f]{64}$/);
assert.match(readFileSync(junit, 'utf8'), /<testsuite /);
console.log('The first run is as it should be.');
JS

run_id=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).run_id' "$work/s.json")
node ui/e2e/figures.mjs "$work/s.json" "$work/data/results/$run_id"

# What fails does so with its code and its reason.
fails() { # fails CODE WORDS ARGUMENTS…
	local want=$1 words=$2 code=0
	shift 2
	"$binary" run examples/first-run.yaml --data-dir "$work/data" --quiet "$@" >"$work/out" 2>&1 || code=$?
	if [ "$code" != "$want" ] || ! grep -q "$words" "$work/out"; then
		cat "$work/out" >&2
		echo "run $*: exit $code, want $want and \"$words\"" >&2
		exit 1
	fi
}
short=(--set workload.duration_seconds=0.5 --set workload.warmup_seconds=0)
fails 1 'did you mean "duration_seconds"' --set workload.duration_second=1
fails 1 'Nothing accepts connections' "${short[@]}" --set 'target.connection={driver: postgres, dsn: "postgres://nobody@127.0.0.1:1/none"}'
fails 1 'does not exist' "${short[@]}" --set target.table_name=missing --set target.prepare=null
fails 3 'FAILED' "${short[@]}" --set 'thresholds=["p95_ms < 0.0001"]'
echo "Exit codes are as the contract says."

# A server on the same data takes the run into its tables: every execution is there, and a reader writes nothing.
"$binary" serve --data-dir "$work/data" --listen 127.0.0.1:0 --calibrate off >"$work/serve" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
recorded=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).accounting.recorded' "$work/s.json")
taken="SELECT s.executions, sum(r.operations) FROM run_summary s JOIN run_seconds r USING (run_id) WHERE run_id = '$run_id' GROUP BY 1"
for _ in $(seq 120); do
	rows=$("$binary" sql --data-dir "$work/data" --format csv "$taken" 2>"$work/out" | tail -n +2) || true
	[ -z "$rows" ] || break
	sleep 0.5
done
if [ "$rows" != "$recorded,$recorded" ]; then
	cat "$work/out" "$work/serve" >&2
	echo "The tables have the executions \"$rows\" of $recorded." >&2
	exit 1
fi
if "$binary" sql --data-dir "$work/data" "DELETE FROM rollup.runs" >"$work/out" 2>&1; then
	echo "loadstone sql has written." >&2
	exit 1
fi
echo "The run is in the tables."
url=$(sed -n 's|^ *Open: *\(http://[^/]*\).*|\1|p' "$work/serve")
node deploy/grafana/check.mjs "$url" "$("$binary" token grafana --scope read --data-dir "$work/data" 2>"$work/out" | tail -n 1)" "$run_id"
