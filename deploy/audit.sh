#!/usr/bin/env bash
# Looks for known weaknesses in what Loadstone is made of: Go modules with govulncheck, the
# page's packages with npm audit. Both ask a service on the network. Where that cannot be
# reached nothing was looked at, and the exit code is not 0 either: 1 something was found,
# 2 something could not be looked at. usage: deploy/audit.sh
set -uo pipefail
cd "$(dirname "$0")/.."
found=0 blind=0

unseen() {
	echo "NOT LOOKED AT: $1" >&2
	blind=1
}

echo "== Go modules: govulncheck"
if ! tool=$(command -v govulncheck); then
	tool=$PWD/.cache/bin/govulncheck
	[ -x "$tool" ] || GOBIN=$PWD/.cache/bin GOFLAGS= go install golang.org/x/vuln/cmd/govulncheck@latest || tool=
fi
if [ -z "$tool" ]; then
	unseen "the Go modules: govulncheck is not installed and cannot be fetched"
else
	"$tool" ./...
	case $? in
	0) ;;
	3) found=1 ;;
	*) unseen "the Go modules: govulncheck could not do its work; is https://vuln.go.dev reachable?" ;;
	esac
fi

for folder in ui sdk/assemblyscript deploy/oidcsuite; do
	echo "== $folder: npm audit"
	report=$(npm audit --prefix "$folder" --package-lock-only --json 2>/dev/null)
	verdict=$(node -e '
		let r; try { r = JSON.parse(require("fs").readFileSync(0, "utf8")); } catch { r = {}; }
		const v = r.metadata && r.metadata.vulnerabilities;
		// An answer without counts is no answer, whatever the exit code was.
		if (r.error || r.message || !v || typeof v.total !== "number") console.log("unseen");
		else { for (const [name, x] of Object.entries(r.vulnerabilities || {})) console.error("  " + x.severity + "  " + name); console.log(v.total > 0 ? "found" : "none"); }
	' <<<"$report")
	case $verdict in
	none) ;;
	found) found=1 ;;
	*) unseen "the packages of $folder: the registry did not answer npm audit" ;;
	esac
done

if [ $blind -ne 0 ]; then
	echo "The audit is incomplete: what is named above could not be looked at." >&2
	exit 2
fi
if [ $found -ne 0 ]; then
	echo "Weaknesses are known in what is named above." >&2
	exit 1
fi
echo "No weakness is known in the Go modules and the npm packages."
