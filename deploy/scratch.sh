#!/usr/bin/env bash
# Runs a command of the tests with its temporary files in memory, where the machine has room for them, and removes them
# when it ends. What tests make are throw-away clusters of Postgres, a thousand small files each, and hundreds of databases
# in them: on a disk the kernel spends several times on those files what Postgres does (docs/decisions/0032). Go's own
# temporary files, which are large, stay on the disk, and with them what a test makes by T.TempDir: those are of GOTMPDIR.
#   deploy/scratch.sh COMMAND [ARGUMENT …]
set -euo pipefail

# Tests need well below a gigabyte; a container's 64 MB are no place, nor is one where nothing may be run.
memory=/dev/shm
need_kb=$((4 * 1024 * 1024))
roomy() {
	[ "$(stat -f -c %T "$memory" 2>/dev/null)" = tmpfs ] && [ -w "$memory" ] || return 1
	[ "$(df -k --output=avail "$memory" | tail -n 1)" -ge $need_kb ] || return 1
	[ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)" -ge $((2 * need_kb)) ] || return 1
	case ",$(findmnt -n -o OPTIONS --target "$memory" 2>/dev/null || echo noexec)," in *,noexec,*) return 1 ;; esac
}

roomy || exec "$@"
export GOTMPDIR="${GOTMPDIR:-${TMPDIR:-/tmp}}"
# What was killed could not remove its own.
for old in "$memory"/loadstone-tests-*; do
	owner=${old#"$memory"/loadstone-tests-}
	[ -e "/proc/${owner%.*}" ] || rm -rf "$old" 2>/dev/null || true
done
TMPDIR=$(mktemp -d "$memory/loadstone-tests-$$.XXXXXX")
export TMPDIR
# As root, Postgres runs as a user who has to get in; nobody else may put anything there.
chmod 755 "$TMPDIR"
# Clusters that are copied in place of being made anew (storage/embedded/pgtest).
export LOADSTONE_TEST_MODELS="$TMPDIR/models"
mkdir -m 755 "$LOADSTONE_TEST_MODELS"
# An interrupt reaches the command as well, and bash waits for it: it wants its files until it has ended.
trap 'rm -rf "$TMPDIR"' EXIT
"$@"
