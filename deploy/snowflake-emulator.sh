#!/usr/bin/env bash
# Runs the tests of the Snowflake driver, and whole runs of the program, against fakesnow, an independent emulator
# of Snowflake's protocol on DuckDB (https://github.com/tekumara/fakesnow).
# It needs python3 with venv, and a network the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

cache="$PWD/.cache/snowflake-emulator"
if [ ! -x "$cache/bin/fakesnow" ]; then
	echo "Installing fakesnow; this takes a minute, once."
	rm -rf "$cache"
	python3 -m venv "$cache"
	# Later connectors have dropped modules that this fakesnow imports.
	"$cache/bin/pip" install --quiet --disable-pip-version-check 'fakesnow[server]==0.12.1' 'snowflake-connector-python>=3.12,<4'
fi

log=$(mktemp)
port=$("$cache/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$cache/bin/fakesnow" --server --port "$port" >"$log" 2>&1 &
emulator=$!
trap 'kill "$emulator" 2>/dev/null || true; wait "$emulator" 2>/dev/null || true; rm -f "$log"' EXIT

for _ in $(seq 1 300); do
	if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
		ready=yes
		break
	fi
	if ! kill -0 "$emulator" 2>/dev/null; then
		break
	fi
	sleep 0.2
done
if [ -z "${ready:-}" ]; then
	cat "$log" >&2
	echo "fakesnow does not start." >&2
	exit 1
fi

LOADSTONE_SNOWFLAKE_EMULATOR="snowflake://loadstone:any@127.0.0.1:$port/LOADSTONE/PUBLIC?account=fakesnow&protocol=http&warehouse=NONE" \
	"${GO:-go}" test -count=1 -v -run '^TestEmulator(Runs)?$' ./engine/target/snowflake ./cli

# Snowflake's own connector for Python, of the newest kind, against the stand-in.
if [ ! -x "$cache-connector/bin/python" ]; then
	python3 -m venv "$cache-connector"
	"$cache-connector/bin/pip" install --quiet --disable-pip-version-check 'snowflake-connector-python==5.2.0'
fi
LOADSTONE_SNOWFLAKE_PYTHON="$cache-connector/bin/python" \
	"${GO:-go}" test -count=1 -run '^TestThePythonConnector$' ./snowsim
