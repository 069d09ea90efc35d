#!/usr/bin/env bash
# Prints the build arguments that name the Dockerfile's base images by digest, as a registry has them now:
#   docker build $(deploy/image/pins.sh) --build-arg VERSION=v1.2.3 .
# usage: deploy/image/pins.sh
# It asks the registry by skopeo, crane or docker, whichever is installed, and fails where none is reached.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { printf 'pins: %s\n' "$*" >&2; exit 1; }

# digest IMAGE prints "sha256:…" of the image for all platforms.
digest() {
	if command -v skopeo >/dev/null; then
		skopeo inspect --format '{{.Digest}}' "docker://$1"
	elif command -v crane >/dev/null; then
		crane digest "$1"
	elif command -v docker >/dev/null; then
		docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1"
	else
		fail "skopeo, crane or docker is needed to ask for digests"
	fi
}

found=0
while read -r name image; do
	pin=$(digest "$image") || fail "the registry does not tell the digest of $image"
	[[ $pin =~ ^sha256:[0-9a-f]{64}$ ]] || fail "this is no digest of $image: $pin"
	printf -- '--build-arg %s=%s@%s\n' "$name" "${image%%@*}" "$pin"
	found=$((found + 1))
done < <(sed -n 's/^ARG \([A-Z_]*_IMAGE\)=\(.*\)$/\1 \2/p' Dockerfile)
[ "$found" -gt 0 ] || fail "the Dockerfile names no base image by an argument"
