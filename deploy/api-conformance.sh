#!/usr/bin/env bash
# Sends generated requests, right and wrong ones, to a server of its own and compares its
# answers with the OpenAPI document it serves (https://schemathesis.readthedocs.io).
# The server has a finished run, a matrix, templates, connections and plugins, whose ids
# the requests use (api-conformance.py), so that real answers are compared too.
# usage: deploy/api-conformance.sh BINARY [DOCUMENT]
# DOCUMENT takes the place of the served one: with a false one the run has to fail.
# It needs python3 with venv, and a network the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
document=${2:+$(realpath "$2")}
version=4.32.5

cache="$PWD/.cache/schemathesis-$version"
if [ ! -e "$cache/installed" ]; then
	echo "Installing schemathesis $version; this takes a minute, once."
	rm -rf "$cache"
	python3 -m venv "$cache"
	if ! "$cache/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version"; then
		echo "schemathesis $version cannot be installed from PyPI, so nobody has compared the API with its document." >&2
		exit 1
	fi
	touch "$cache/installed"
fi

work=$(mktemp -d)
server= node=
finish() {
	for process in $server $node; do
		kill "$process" 2>/dev/null || true
		wait "$process" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
chmod 755 "$work" # the embedded Postgres may be another user

# A node that is drained and removed is not the one that carries the runs.
"$binary" worker --listen 127.0.0.1:0 --data-dir "$work/node" --log-format json >"$work/node.out" 2>"$work/node.log" &
node=$!
for _ in $(seq 1 300); do
	address=$(grep -oE '127\.0\.0\.1:[0-9]+' "$work/node.out" | head -1 || true)
	[ -z "$address" ] || break
	sleep 0.2
done
"$binary" serve --listen 127.0.0.1:0 --nodes "$address" --data-dir "$work/data" --calibrate off --log-format json >"$work/out" 2>"$work/log" &
server=$!
broken() {
	cat "$work/out" "$work/log" >&2
	echo "$*" >&2
	exit 1
}
url=
for _ in $(seq 1 300); do
	url=$(grep -ohE 'http://127\.0\.0\.1:[0-9]+' "$work/out" "$work/log" | head -1 || true)
	if [ -n "$url" ] && curl -fsS "$url/readyz" >/dev/null 2>&1; then
		ready=yes
		break
	fi
	kill -0 "$server" 2>/dev/null || broken "The server ended before it was ready."
	sleep 0.2
done
[ -n "${ready:-}" ] || broken "The server was not ready within a minute."
token=$("$binary" token "API conformance" --scope admin --data-dir "$work/data" | grep -oE 'lst_[A-Za-z0-9_-]+' | head -1) ||
	broken "There is no token."
if [ -z "$document" ]; then
	document=$work/served.json
	curl -fsS -H "Authorization: Bearer $token" "$url/api/openapi.json" -o "$document"
fi
cp "$document" "$work/openapi.json"
document=$work/openapi.json
python3 deploy/api-conformance.py fill "$url" "$token" "$document" plugins/bundled/built/tpcb.wasm ||
	broken "There is nothing to ask the server about."

# Left out: a body may be right by its schema and still name nothing that there is, or two things where one is
# asked for (422); and null for an optional field, like an empty parameter, is read as none.
# The same requests each time, so that who changes nothing sees nothing new.
code=0
(
	cd "$work"
	timeout 170 "$cache/bin/schemathesis" run "$document" --url "$url" -H "Authorization: Bearer $token" \
		--phases examples,coverage,fuzzing --max-examples 10 --generation-deterministic \
		--exclude-checks positive_data_acceptance,negative_data_rejection \
		--request-timeout 30 --continue-on-failure --no-shrink --no-color --warnings off --report har --report-har-path "$work/requests.har"
) || code=$?
if [ "$code" = 124 ]; then
	echo "Schemathesis did not end within 170 s." >&2
fi
python3 deploy/api-conformance.py judge "$document" "$work/requests.har" || code=1

# Answers to a caller who is not known any more would all conform.
[ "$(curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$url/api/info")" = 200 ] ||
	broken "The server, or the token, did not outlive the requests: what came after has tried nothing."
if grep -q 'a handler panicked' "$work/log"; then
	grep 'a handler panicked' "$work/log" >&2
	code=1
fi
exit "$code"
