#!/usr/bin/env bash
# A failover, measured: a primary and a standby with asynchronous streaming replication on this machine, the load of
# examples/failover.yaml on both, and after 15 s of it the primary is killed and the standby promoted.
# usage: deploy/failover-demo.sh BINARY [ARGUMENT of loadstone run …]
# With LOSE=1 replication is cut two seconds before: what the primary acknowledged in them is gone.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$1
shift
primary=54331 standby=54332

for dir in "${LOADSTONE_PG_BIN:-}" $(dirname "$(command -v initdb 2>/dev/null || echo /none/x)") /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin; do
	[ -n "$dir" ] && [ -x "$dir/initdb" ] && [ -x "$dir/pg_basebackup" ] && pg=$dir
done
[ -n "${pg:-}" ] || { echo "No Postgres is found: set LOADSTONE_PG_BIN to the folder of initdb and pg_basebackup." >&2; exit 1; }

work=$(mktemp -d)
as=()
if [ "$(id -u)" = 0 ]; then # Postgres does not run as root
	chown postgres "$work"
	as=(runuser -u postgres --)
fi
chmod 755 "$work"
control() { "${as[@]}" "$pg/pg_ctl" -D "$work/$1" "${@:2}"; }
sql() { "$pg/psql" -h 127.0.0.1 -p "$1" -U demo -d "${3:-demo}" -XAtq -c "$2"; }
stop() {
	for server in primary standby; do
		control "$server" -m immediate stop >/dev/null 2>&1 || true
	done
	rm -rf "$work"
}
trap stop EXIT

"${as[@]}" "$pg/initdb" -D "$work/primary" -U demo -A trust >/dev/null
"${as[@]}" tee -a "$work/primary/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$work'
wal_keep_size = '256MB'
CONF
control primary -o "-p $primary" -l "$work/primary.log" -w start >/dev/null
sql $primary 'CREATE DATABASE demo' postgres
"${as[@]}" "$pg/pg_basebackup" -h 127.0.0.1 -p $primary -U demo -D "$work/standby" -R -X stream --checkpoint=fast
control standby -o "-p $standby" -l "$work/standby.log" -w start >/dev/null
echo "The primary is at 127.0.0.1:$primary, its standby at 127.0.0.1:$standby."

failover() {
	until [ "$(sql $primary "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadstone worker%'" 2>/dev/null || echo 0)" -ge 16 ]; do sleep 0.5; done
	sleep 13
	if [ -n "${LOSE:-}" ]; then
		sql $standby "ALTER SYSTEM SET primary_conninfo = ''"
		sql $standby 'SELECT pg_reload_conf()' >/dev/null
		echo "Replication is cut."
	fi
	sleep 2
	control primary -m immediate stop >/dev/null
	echo "The primary is killed at $(date +%T.%3N)."
	control standby -w promote >/dev/null
	echo "The standby is promoted at $(date +%T.%3N)."
}
failover &
watcher=$!
status=0
"$binary" run examples/failover.yaml --data-dir "$work/data" "$@" || status=$?
kill "$watcher" 2>/dev/null || true
wait "$watcher" 2>/dev/null || true
exit $status
