#!/bin/bash
# Fails when a function is reached by nothing: of the program, when only tests reach
# it; of what guests are made of, when not even a test does. Support of tests
# (packages named …test, the store in memory) is left out. The linter's "unused" does
# not see what is exported; this does.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

mkdir -p .cache
"$go" build -o .cache/deadcode golang.org/x/tools/cmd/deadcode

# reached by nothing, as "file: function"
dead() { .cache/deadcode "$@" | sed -E 's/^([^:]+):[0-9]+:[0-9]+: unreachable func: /\1: /' | sort; }

native=$(dead ./...)
parts='^(sdk|plugins/(adapters|workloads)|examples)/'
program=$(echo "$native" | grep -vE "^[^:]*(test|store/fake)/|$parts" || true)
# A guest is called by its exports, which the tool does not follow; the tests call what they call.
guests=$(dead -test ./sdk/... ./plugins/workloads/... ./plugins/adapters/... ./examples/...)
guests=$(comm -12 <(echo "$guests") <(echo "$native") | grep -E "$parts" || true)
found=$(printf '%s\n%s\n' "$program" "$guests" | sed '/^$/d')
if [ -n "$found" ]; then
	echo "Nothing reaches these functions; remove them, or move what only tests use to the tests:" >&2
	echo "$found" >&2
	exit 1
fi
