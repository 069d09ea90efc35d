#!/usr/bin/env bash
# Tries what verify.sh must see: each line is what was done to a release, and that it was refused.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for key in ours theirs; do ssh-keygen -q -t ed25519 -N '' -C '' -f "$work/$key"; done
signers() { printf 'releases@loadstone namespaces="loadstone-release" %s\n' "$(cat "$work/$1.pub")"; }
signers ours >"$work/trusted"

# made makes a small release that our key has signed.
made() {
	rm -rf "$work/r"
	mkdir "$work/r"
	echo program >"$work/r/loadstone"
	echo '{}' >"$work/r/loadstone.cdx.json"
	(cd "$work/r" && sha256sum -- loadstone loadstone.cdx.json >SHA256SUMS)
	signers ours >"$work/r/allowed_signers"
	signed ours
}
signed() { rm -f "$work/r/SHA256SUMS.sig" && ssh-keygen -q -Y sign -f "$work/$1" -n "${2:-loadstone-release}" "$work/r/SHA256SUMS"; }
verify() { deploy/release/verify.sh "$work/r" "$work/trusted" >"$work/log" 2>&1; }
refused() {
	if verify; then echo "FAIL $1: it was taken" && exit 1; fi
	echo "PASS $1: $(tail -n 1 "$work/log")"
}

made
verify || { cat "$work/log"; echo "FAIL a good release is refused"; exit 1; }
echo "PASS a good release"
made && echo x >>"$work/r/loadstone" && refused "another program"
made && echo x >"$work/r/more" && refused "a file more"
made && rm "$work/r/loadstone.cdx.json" && refused "a file less"
made && echo x >>"$work/r/loadstone" && (cd "$work/r" && sha256sum -- loadstone loadstone.cdx.json >SHA256SUMS) && refused "other sums"
made && echo x >>"$work/r/loadstone" && (cd "$work/r" && sha256sum -- loadstone loadstone.cdx.json >SHA256SUMS) &&
	signers theirs >"$work/r/allowed_signers" && signed theirs && refused "another's key"
made && signed ours something-else && refused "a signature of ours for something else"
made && rm "$work/r/SHA256SUMS.sig" && refused "no signature"
