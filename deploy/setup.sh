#!/usr/bin/env bash
# Installs what a target of the Makefile needs and the machine does not have.
# As root on Debian or Ubuntu it installs; otherwise it says, in one sentence, what to install.
# usage: deploy/setup.sh toolchain|postgres|race|browser|clang|rust|pooler|sysbench|signing|image …
set -euo pipefail

fail() { printf 'loadstone: %s\n' "$*" >&2; exit 1; }

# at_least HAVE WANT compares dotted versions.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# What is missing, for people, and the Debian packages that hold it.
missing=()
packages=()
lacks() {
	missing+=("$1")
	shift
	packages+=("$@")
}

# install installs what is missing, or says what to install.
install() {
	[ ${#missing[@]} -gt 0 ] || return 0
	local what log
	what=$(printf ', %s' "${missing[@]}") && what=${what:2}
	may_install || fail "this is missing: $what; install it, on Debian with: sudo apt-get install -y --no-install-recommends ${packages[*]}"
	echo "Installing $what (${packages[*]})."
	export DEBIAN_FRONTEND=noninteractive
	# A machine that was just started may be updating itself: wait for its lock.
	local get=(apt-get -o DPkg::Lock::Timeout=300 -y --no-install-recommends)
	log=$(mktemp)
	if ! { "${get[@]}" install "${packages[@]}" || { "${get[@]}" update && "${get[@]}" install "${packages[@]}"; }; } >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		fail "apt-get could not install ${packages[*]}; the end of its output is above"
	fi
	rm -f "$log"
}

toolchain() {
	command -v git >/dev/null || fail "git is missing: install it, on Debian with: apt-get install -y git"
	command -v go >/dev/null || fail "Go is missing: Loadstone is built with Go 1.26 or later, from https://go.dev/dl"
	local go_version node_version
	go_version=$(go env GOVERSION) && go_version=${go_version#go}
	at_least "${go_version%%[-a-z ]*}" 1.26 || fail "Go $go_version is too old: Loadstone is built with Go 1.26 or later, from https://go.dev/dl"
	command -v node >/dev/null || fail "Node.js is missing: the page is built with Node.js 20.19 or later, from https://nodejs.org"
	node_version=$(node --version) && node_version=${node_version#v}
	at_least "$node_version" 20.19 || fail "Node.js $node_version is too old: the page is built with Node.js 20.19 or later, from https://nodejs.org"
	# Vite's range: 21 and the first releases of 22 lack what the last ones of 20 have.
	case $node_version in
	21.* | 22.?.* | 22.1[01].*) fail "Node.js $node_version cannot build the page: take 20.19 or later of 20, or 22.12 or later, from https://nodejs.org" ;;
	esac
	command -v npm >/dev/null || fail "npm is missing: it comes with Node.js 20.19 or later, from https://nodejs.org"
}

# found_postgres looks where the server looks: LOADSTONE_PG_BIN, PATH, Debian's and Homebrew's folders.
found_postgres() {
	local dir version
	for dir in "${LOADSTONE_PG_BIN:-}" $(dirname "$(command -v initdb 2>/dev/null || echo /none/x)") /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
		[ -n "$dir" ] && [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] || continue
		version=$("$dir/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
		[ "$version" -ge 15 ] && return 0
	done
	return 1
}

postgres() {
	found_postgres && return
	if may_install; then
		# Only the binaries are wanted: keep Debian from starting a cluster of its own.
		mkdir -p /etc/postgresql-common/createcluster.d
		echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/loadstone.conf
	fi
	lacks "PostgreSQL 15 or later" postgresql
}

# race: the race detector needs a C compiler.
race() {
	command -v "${CC:-gcc}" >/dev/null && echo 'int main(void){return 0;}' | "${CC:-gcc}" -x c -o /dev/null - 2>/dev/null && return
	lacks "a C compiler for Go's race detector" gcc libc6-dev
}

browser() {
	command -v chromium >/dev/null || [ -x "${LOADSTONE_CHROMIUM:-/none}" ] && return
	lacks "Chromium for the browser tests" chromium
}

# clang builds plugins written in C; wasm-ld comes with lld.
clang() {
	# type -P, because this function has the program's name.
	type -P clang >/dev/null && type -P wasm-ld >/dev/null && return
	lacks "clang and lld for plugins in C" clang lld
}

# rust builds plugins written in Rust; its target for WebAssembly is a package of its own.
rust() {
	local rustc
	for rustc in "$(type -P rustc)" /usr/bin/rustc; do
		[ -x "$rustc" ] && [ -x "$(dirname "$rustc")/cargo" ] && [ -d "$("$rustc" --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ] && return
	done
	lacks "Rust for plugins in Rust" cargo rustc libstd-rust-dev-wasm32
}

# pooler: the tests of connections through PgBouncer; they are skipped without it.
pooler() {
	type -P pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] && return
	lacks "PgBouncer for the tests of poolers" pgbouncer
}

sysbench() {
	type -P sysbench >/dev/null && return
	lacks "sysbench for the comparison" sysbench
}

# signing: releases are signed and verified by keys of SSH.
signing() {
	type -P ssh-keygen >/dev/null && return
	lacks "ssh-keygen for the signatures of releases" openssh-client
}

# image: what builds and runs the container image without a registry.
image() {
	type -P buildah >/dev/null && type -P podman >/dev/null && type -P runc >/dev/null && type -P debootstrap >/dev/null &&
		type -P curl >/dev/null && return
	lacks "buildah, podman, runc and debootstrap for the image" buildah podman runc debootstrap curl
}

[ $# -gt 0 ] || fail "usage: deploy/setup.sh toolchain|postgres|race|browser|clang|rust|pooler|sysbench|signing|image …"
for need; do
	case $need in
	toolchain | postgres | race | browser | clang | rust | pooler | sysbench | signing | image) "$need" ;;
	*) fail "unknown: $need" ;;
	esac
done
install
case " $* " in
*" postgres "*) found_postgres || fail "the installed PostgreSQL is older than 15: install postgresql-15 or later, or set LOADSTONE_PG_BIN to the folder with initdb and postgres" ;;
esac
