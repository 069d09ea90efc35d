#!/usr/bin/env bash
# Makes the images that the Dockerfile begins with, tagged like the real ones, from what this
# machine has: Debian by debootstrap, Go and Node.js as they are installed here. It is for
# machines that reach Debian's packages but no registry of images.
# usage: bases.sh FOLDER; BUILDAH is the command with its options
set -euo pipefail

folder=$1
read -ra buildah <<<"${BUILDAH:-buildah}"
release=bookworm

say() { printf 'bases: %s\n' "$*"; }

has() { "${buildah[@]}" inspect --type image "$1" >/dev/null 2>&1; }

# The certificates that this machine trusts, and where its package managers look: on a machine
# behind a mirror nothing would be found without them.
settings() { # FOLDER
	mkdir -p "$1/etc/ssl/certs" "$1/etc/apt/apt.conf.d" "$1/etc/apt/sources.list.d"
	cp /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
	rm -f "$1/etc/apt/sources.list"
	cp /etc/apt/sources.list.d/*.sources "$1/etc/apt/sources.list.d/" 2>/dev/null || cp /etc/apt/sources.list "$1/etc/apt/"
	local name
	for name in 99artifact-registry proxy 01proxy; do
		[ ! -e "/etc/apt/apt.conf.d/$name" ] || cp "/etc/apt/apt.conf.d/$name" "$1/etc/apt/apt.conf.d/"
	done
}

# commit NAME ROOT [VARIABLE=VALUE…] makes an image of a tree.
commit() {
	local name=$1 root=$2 c
	shift 2
	c=$("${buildah[@]}" from scratch)
	"${buildah[@]}" add --quiet "$c" "$root" / >/dev/null
	local v
	for v in "$@"; do "${buildah[@]}" config --env "$v" "$c"; done
	"${buildah[@]}" config --cmd bash "$c"
	"${buildah[@]}" commit --quiet --rm "$c" "$name" >/dev/null
	say "$name is made"
}

mkdir -p "$folder"
mirror=$(cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null |
	sed -n 's/^URIs: //p; s/^deb \(http[^ ]*\).*/\1/p' | sed -n 1p || true)

if ! has docker.io/library/debian:$release-slim; then
	root=$folder/debian
	if [ ! -d "$root" ]; then
		say "debootstrap makes Debian $release"
		debootstrap --variant=minbase --include=ca-certificates "$release" "$root.part" "$mirror" \
			>"$folder/debootstrap.log" 2>&1 || { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
		mv "$root.part" "$root"
	fi
	# What debian:*-slim leaves out too.
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}
	settings "$root"
	commit docker.io/library/debian:$release-slim "$root"
fi

if ! has docker.io/library/node:22-$release-slim; then
	root=$folder/node
	rm -rf "$root"
	cp -a "$folder/debian" "$root"
	mkdir -p "$root/usr/local/bin" "$root/usr/local/lib/node_modules"
	cp -L "$(command -v node)" "$root/usr/local/bin/node"
	cp -a "$(npm root --global 2>/dev/null)/npm" "$root/usr/local/lib/node_modules/"
	commit docker.io/library/node:22-$release-slim "$root"
	rm -rf "$root"
	say "it holds Node.js $(node --version), this machine's"
fi

if ! has docker.io/library/golang:1.26-$release; then
	root=$folder/golang
	rm -rf "$root"
	say "debootstrap makes Debian $release with git and make"
	debootstrap --variant=minbase --include=ca-certificates,git,make,libstdc++6 "$release" "$root" "$mirror" \
		>"$folder/debootstrap.log" 2>&1 || { tail -n 20 "$folder/debootstrap.log" >&2; exit 1; }
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/usr/share/{doc,man,locale}
	settings "$root"
	cp -a "$(go env GOROOT)" "$root/usr/local/go"
	mkdir -p "$root/go/bin"
	commit docker.io/library/golang:1.26-$release "$root" GOPATH=/go \
		PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"GOPROXY=$(go env GOPROXY)" GOTOOLCHAIN=local NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
		"npm_config_registry=$(npm config get registry 2>/dev/null)"
	rm -rf "$root"
	say "it holds $(go version | cut -d' ' -f3), this machine's"
fi
