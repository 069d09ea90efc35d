#!/usr/bin/env bash
# Compares what two versions of the program say of the same work: the summary of each example, and every
# answer of the API that takes no body, field by field. Measured numbers differ by nature: what is compared is
# which fields there are, of which type, and what their texts say once numbers, ids and times are taken out.
# usage: deploy/same-answers.sh OLD NEW
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
chmod 755 "$work" # the embedded Postgres may be another user

# answers BINARY FOLDER
answers() {
	local binary=$1 to=$work/$2 example name url token
	mkdir -p "$to"
	# The answers do not depend on the server's own address, nor on a name that is drawn.
	"$binary" serve --listen 127.0.0.1:0 --data-dir "$to/data" --calibrate off --log-format json >"$to/out" 2>"$to/log" &
	server=$!
	for _ in $(seq 1 300); do
		url=$(grep -ohE 'http://127\.0\.0\.1:[0-9]+' "$to/out" "$to/log" | head -1 || true)
		[ -z "$url" ] || ! curl -fsS "$url/readyz" >/dev/null 2>&1 || break
		kill -0 "$server" 2>/dev/null || { cat "$to/out" "$to/log" >&2; exit 1; }
		sleep 0.2
	done
	token=$("$binary" token "same answers" --scope admin --data-dir "$to/data" | grep -oE 'lst_[A-Za-z0-9_-]+' | head -1)
	for example in examples/*.yaml; do
		name=$(basename "$example" .yaml)
		[ "$name" != index ] || continue
		echo "$2: $name"
		local set=(--set workload.duration_seconds=4 --set workload.warmup_seconds=1)
		case $name in
		find-max) set=(--set workload.find_max.step_seconds=3 --set workload.find_max.max_steps=3) ;;
		esac
		LOADSTONE_TOKEN=$token "$binary" run "$example" --server "$url" --quiet --wait-enrichment 5s "${set[@]}" \
			--out "$to/$name.json" >"$to/$name.said" 2>&1 || echo "exit $?" >>"$to/$name.said"
	done
	node deploy/same-answers.mjs ask "$url" "$token" "$to/api"
	kill "$server" && wait "$server" || true
	server=
}

answers "$(realpath "$1")" old
answers "$(realpath "$2")" new
node deploy/same-answers.mjs compare "$work/old" "$work/new"
