#!/usr/bin/env bash
# The program without Snowflake: nothing of it is inside, it says so where it is asked for it, and the
# rest works. Usage: deploy/nosnowflake.sh FILE (where the program is put)
set -euo pipefail
program=$1
modfile=$(deploy/modfile.sh)
CGO_ENABLED=0 go build -buildvcs=false -trimpath -modfile "$modfile" -tags nosnowflake,grpcnotrace -ldflags '-s -w' -o "$program" .
if go list -deps -tags nosnowflake . | grep -E 'gosnowflake|loadstone/snowsim|target/snowflake'; then
	echo "packages of Snowflake are in the program without it" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

says() { # says WORDS COMMAND...: the command fails, and these words are in what it says
	local words=$1
	shift
	if "$@" >"$work/said" 2>&1; then
		echo "it should have failed: $*" >&2
		exit 1
	fi
	grep -qF "$words" "$work/said" || {
		cat "$work/said" >&2
		exit 1
	}
}

target() { # target CONNECTION ADAPTER: a template
	printf 'name: without\ntarget: {connection: %s, adapter: %s, table_name: orders, prepare: {rows: 1000}}\n' "$1" "$2"
	printf 'workload: {plugin: mix, concurrent_connections: 2, warmup_seconds: 0, duration_seconds: 2}\n'
}

without="built without Snowflake"
says "$without" "$program" snowsim --listen 127.0.0.1:0
target '{driver: snowflake, dsn: "snowflake://u:p@a.snowflakecomputing.com/d/s"}' snowflake_standard >"$work/snowflake.yaml"
says "$without" "$program" run "$work/snowflake.yaml" --data-dir "$work/data" --calibrate off --quiet
target playground postgres >"$work/postgres.yaml"
"$program" run "$work/postgres.yaml" --data-dir "$work/data" --calibrate off --quiet >"$work/said"
grep -q 'validity' "$work/said"
echo "The program without Snowflake has $(stat -c %s "$program") bytes, and works."
