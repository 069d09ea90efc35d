#!/usr/bin/env bash
# Lists the packages whose code and tests start no goroutine and share nothing between any: the race detector sees
# nothing in them that it does not see in the tests of those who call them, and makes them several times as slow.
#   deploy/unraced.sh       the packages to test without the race detector
#   deploy/unraced.sh -v    all others
set -euo pipefail
cd "$(dirname "$0")/.."

concurrent='(^|[[:space:]])go (func|[A-Za-z_.]+\()|"sync"|"sync/atomic"|"testing/synctest"|errgroup|\.Parallel\(\)|\.Go\(|"net"|"net/http|/storage/|/hosttest|/pgtest'
module=$(go list -m)
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.ImportPath}}{{end}}' ./... | while read -r dir path; do
	[ "$path" = "$module" ] && path=$module/.
	if grep -qE "$concurrent" "$dir"/*.go; then
		[ "${1:-}" != -v ] || echo "./${path#"$module"/}"
	else
		[ "${1:-}" = -v ] || echo "./${path#"$module"/}"
	fi
done
