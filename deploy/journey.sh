#!/usr/bin/env bash
# The journey of a newcomer in a real browser: starts a server of its own and
# stops it by its process id, also when a test fails. usage: deploy/journey.sh BINARY [smoke]
# With smoke it is a short journey, without the plugin, the node and the receiver of the whole one.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$1
kind=${2:-whole}
work=$(mktemp -d)
chmod 755 "$work"
server= node= receiver=
stop() {
	for process in $server $node $receiver; do
		if kill -0 "$process" 2>/dev/null; then
			kill -TERM "$process"
			wait "$process" || true
		fi
	done
	rm -rf "$work"
}
trap stop EXIT
# They are read before the processes that write them have been able to make them.
: >"$work/receiver.out" >"$work/node.out" >"$work/out"

# What the whole journey has beside the server.
accompany() {
	GOOS=wasip1 GOARCH=wasm GOFLAGS= go build -buildvcs=false -buildmode=c-shared -trimpath -ldflags='-s -w' -o "$work/counters.wasm" ./examples/plugins/counters

	# What the metrics of its runs are sent to.
	node ui/e2e/receiver.mjs >"$work/receiver.out" &
	receiver=$!

	# A node to look at, with no room for the journey's runs.
	"$binary" worker --listen 127.0.0.1:0 --data-dir "$work/node" --capacity 1 >"$work/node.out" 2>"$work/node.log" &
	node=$!
	for _ in $(seq 300); do
		address=$(grep -oE '127\.0\.0\.1:[0-9]+' "$work/node.out" || true)
		[ -n "$address" ] && break
		kill -0 "$node" 2>/dev/null || { cat "$work/node.log" >&2; echo "the node ended before it listened" >&2; exit 1; }
		sleep 0.1
	done
	sent=
	for _ in $(seq 100); do
		sent=$(cat "$work/receiver.out")
		[ -n "$sent" ] && break
		sleep 0.1
	done
	[ -n "$sent" ] || { echo "the receiver of metrics does not listen" >&2; exit 1; }
}

flags=() serve=()
if [ "$kind" = smoke ]; then
	flags=(--smoke)
else
	accompany
	serve=(--nodes "$address" --remote-write "$sent/api/v1/push")
	flags=(--plugin "$work/counters.wasm" --receiver "$sent")
fi
"$binary" serve --data-dir "$work/data" --listen 127.0.0.1:0 "${serve[@]}" >"$work/out" 2>"$work/log" &
server=$!
link=
for _ in $(seq 300); do
	link=$(sed -n 's/^ *Open: *//p' "$work/out")
	[ -n "$link" ] && break
	kill -0 "$server" 2>/dev/null || { cat "$work/log" >&2; echo "the server ended before it was ready" >&2; exit 1; }
	sleep 0.1
done
[ -n "$link" ] || { cat "$work/log" >&2; echo "the server was not ready within 30 s" >&2; exit 1; }
export LOADSTONE_CHROMIUM="${LOADSTONE_CHROMIUM:-$(command -v chromium)}"
if ! (cd ui && npm run --silent e2e -- --base-url "${link%/signin*}" --token "${link##*token=}" "${flags[@]}"); then
	tail -n 40 "$work/log" >&2
	exit 1
fi
