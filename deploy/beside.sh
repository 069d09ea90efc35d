#!/usr/bin/env bash
# Makes several rows of targets beside each other, those of a row one after the other. What the first row says is told as
# it comes, what another says when a target of it has ended; how each ended, and how many tests it had, stands at the end
# again. A target that fails stops no other and fails the whole, as do more than three tests that were run again.
# usage: deploy/beside.sh "TARGET…" "TARGET…" …; MAKE is the make to call, UNSTABLE begins the names of the files of
# tests that were run again
set -euo pipefail
cd "$(dirname "$0")/.."
make=${MAKE:-make}
unstable=${UNSTABLE:-.cache/unstable-tests}
work=$(mktemp -d)
rows=()

# Each row is a group of processes of its own, which is ended as a whole.
set -m
stop() {
	trap - EXIT INT TERM HUP
	for row in "${rows[@]}"; do kill -TERM -- "-$row" 2>/dev/null || true; done
	wait || true
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM HUP

# row NUMBER TARGET… makes the targets, and keeps for each a line about it and what it said.
row() {
	local number=$1 target begun code
	shift
	for target; do
		begun=$SECONDS code=0
		if [ "$number" = 0 ]; then
			"$make" --no-print-directory "$target" 2>&1 | tee "$work/$target" || code=$?
		else
			"$make" --no-print-directory "$target" >"$work/$target" 2>&1 || code=$?
		fi
		printf '%s: %s in %d s\n' "$target" "$([ "$code" = 0 ] && echo passed || echo "FAILED (exit $code)")" \
			$((SECONDS - begun)) >"$work/$target.end"
		if [ "$number" != 0 ]; then
			{ printf -- '--- %s\n' "$target"; cat "$work/$target" "$work/$target.end"; } >"$work/$number.told"
			cat "$work/$number.told"
		fi
	done
}

rm -f "$unstable"*
targets=()
for list; do
	read -ra these <<<"$list"
	targets+=("${these[@]}")
	number=${#rows[@]}
	row "$number" "${these[@]}" &
	rows+=($!)
done
for pid in "${rows[@]}"; do wait "$pid" || true; done

failed=0
echo "--- in short"
for target in "${targets[@]}"; do
	grep -E '^DONE |^(# |ℹ )?(tests|pass|fail) [0-9]' "$work/$target" | sed "s/^/$target: /" || true
	cat "$work/$target.end" 2>/dev/null || echo "$target: was not made"
	grep -q ': passed' "$work/$target.end" 2>/dev/null || failed=1
done
again=$(cat "$unstable"* 2>/dev/null | grep -c . || true)
if [ "$again" -gt 0 ]; then
	echo "Passed only when run again, which is a fault to be found:"
	cat "$unstable"*
fi
if [ "$again" -gt 3 ]; then
	echo "That are $again tests; more than three fail the whole (docs/decisions/0018)."
	failed=1
fi
exit $failed
