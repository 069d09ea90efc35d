#!/usr/bin/env bash
# Makes what a release consists of: the program for Linux on amd64 and arm64, the list of what it is made of
# (CycloneDX), checksums, and a signature of the checksums by an SSH key; then it verifies all of them as
# docs/start/install.md says that users do.
# usage: deploy/release/release.sh FOLDER
#   VERSION       what the program says of itself
#   RELEASE_KEY   file of the private SSH key; without it nothing is signed, and the last line says so
#   SBOM_TOOL     cyclonedx-gomod
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$1
namespace=loadstone-release
signer=releases@loadstone
say() { printf 'release: %s\n' "$*"; }
fail() { printf 'release: %s\n' "$*" >&2; exit 1; }

[ -n "${VERSION:-}" ] || fail "VERSION is not set"
case $VERSION in *-dirty) fail "there are changes that are not committed: what is released must be a commit" ;; esac
[ -z "${RELEASE_KEY:-}" ] || [ -r "$RELEASE_KEY" ] || fail "the key $RELEASE_KEY cannot be read"
rm -rf "$folder"
mkdir -p "$folder"

modfile=$(deploy/modfile.sh)
for arch in amd64 arm64; do
	say "building for linux/$arch"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -buildvcs=false -trimpath -modfile "$modfile" -tags grpcnotrace \
		-ldflags "-s -w -X github.com/loadstone-db/loadstone/cli.version=$VERSION" \
		-o "$folder/loadstone_${VERSION}_linux_$arch" .
done
cp LICENSE "$folder/"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "listing what it is made of"
CGO_ENABLED=0 GOOS=linux GOARCH=amd64 GOFLAGS=-tags=grpcnotrace "$SBOM_TOOL" app -json -licenses -std -main . -output "$work/modules.json" . 2>"$work/log" ||
	{ cat "$work/log" >&2; fail "the modules cannot be listed"; }
npm sbom --prefix ui --sbom-format cyclonedx --omit dev --package-lock-only >"$work/packages.json"
node deploy/release/sbom.mjs "$work/modules.json" "$work/packages.json" "$VERSION" >"$folder/loadstone_$VERSION.cdx.json"

# What the linker took must be in the list.
go version -m "$folder/loadstone_${VERSION}_linux_amd64" | awk '$1 == "dep" { print $2 "@" $3 }' | sort -u >"$work/linked"
[ -s "$work/linked" ] || fail "the program does not say what was linked into it"
node -e 'const b = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
	for (const c of b.components) console.log(c.name + "@" + c.version);' "$folder/loadstone_$VERSION.cdx.json" | sort -u >"$work/listed"
missing=$(comm -23 "$work/linked" "$work/listed")
[ -z "$missing" ] || fail "the list lacks what is in the program: $missing"
say "$(wc -l <"$work/listed") components, $(wc -l <"$work/linked") of them modules in the program"

(cd "$folder" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
if [ -n "${RELEASE_KEY:-}" ]; then
	ssh-keygen -q -Y sign -f "$RELEASE_KEY" -n "$namespace" "$folder/SHA256SUMS"
	printf '%s namespaces="%s" %s\n' "$signer" "$namespace" "$(ssh-keygen -y -f "$RELEASE_KEY")" >"$folder/allowed_signers"
fi
deploy/release/verify.sh "$folder"
