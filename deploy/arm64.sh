#!/usr/bin/env bash
# The program for arm64, built here and run by qemu: it says what it is, and what it does without a database works.
# Usage: deploy/arm64.sh FILE (where the program is put)
set -euo pipefail
program=$1
version=${VERSION:-unknown}
if ! command -v qemu-aarch64-static >/dev/null; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "qemu-aarch64-static is not there; on Debian: apt-get install -y qemu-user-static" >&2
		exit 1
	fi
	apt-get install -y -qq --no-install-recommends qemu-user-static >/dev/null
fi
modfile=$(deploy/modfile.sh)
CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -buildvcs=false -trimpath -modfile "$modfile" -tags grpcnotrace \
	-ldflags "-s -w -X github.com/loadstone-db/loadstone/cli.version=$version" -o "$program" .

# The machine of an ELF file is the 19th byte: 183 is AArch64.
machine=$(od -An -tu2 -j18 -N2 "$program" | tr -d ' ')
[ "$machine" = 183 ] || { echo "$program is for the machine $machine, not for arm64" >&2; exit 1; }
said=$(qemu-aarch64-static "$program" --version)
case $said in
"loadstone $version (go"*" linux/arm64)") ;;
*) echo "$program says: $said" >&2; exit 1 ;;
esac
qemu-aarch64-static "$program" schema print | grep -q 'CREATE TABLE IF NOT EXISTS run_status' ||
	{ echo "$program does not print the schema" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if qemu-aarch64-static "$program" worker --data-dir "$work" --join nothing >"$work/said" 2>&1; then
	echo "a token that is none was taken" >&2
	exit 1
fi
grep -q 'it is no token\|begins with lsn_' "$work/said" || { cat "$work/said" >&2; exit 1; }
echo "$said: $(stat -c %s "$program") bytes, runs under qemu."
