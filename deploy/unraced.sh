#!/usr/bin/env bash
# Lists what is tested without the race detector, where it sees nothing that it does not see elsewhere and makes tests
# several times as slow: packages whose code and tests start no goroutine and share nothing between any, which those who
# call them are tested with, and packages whose tests start the program in processes of its own, which are built without
# the detector in any case (docs/decisions/0035), and three whose tests call what others are watched in from one goroutine
# (docs/decisions/0036).
#   deploy/unraced.sh       the packages to test without the race detector
#   deploy/unraced.sh -v    all others
#   deploy/unraced.sh -own  of ./cli, whose tests start processes, those that have the program in their own process: a
#                           pattern for -run of tests that the detector watches besides
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = -own ]; then
	own=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) }
		/^}/ { name = "" }
		name != "" && /(^|[^.A-Za-z])(run\((t\.Context\(\)|ctx), |serve\(t, )/ { print name; name = "" }' cli/*_test.go | sort | paste -sd '|')
	[ -n "$own" ] || { echo "no test of ./cli has the program in its own process" >&2; exit 1; }
	echo "^($own)\$"
	exit
fi
processes='"github.com/loadstone-db/loadstone/cli/clitest"'
concurrent='(^|[[:space:]])go (func|[A-Za-z_.]+\()|"sync"|"sync/atomic"|"testing/synctest"|errgroup|\.Parallel\(\)|\.Go\(|"net"|"net/http|/storage/|/hosttest|/bundledtest|/pgtest'
# Files of a generator, written and compared; batches of modules in four languages, one after the other; projects that are
# built and judged in processes.
single=' plugins/host/hostiletest examples/plugins/orders/go plugins/author '
module=$(go list -m)
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}} {{.ImportPath}}{{end}}' ./... | while read -r dir path; do
	[ "$path" = "$module" ] && path=$module/.
	raced=
	if [[ $single != *" ${path#"$module"/} "* ]] && grep -qE "$concurrent" "$dir"/*.go && ! grep -qF "$processes" "$dir"/*_test.go; then raced=-v; fi
	[ "${1:-}" != "$raced" ] || echo "./${path#"$module"/}"
done
