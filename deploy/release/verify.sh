#!/usr/bin/env bash
# Verifies a release as a user does: the signature of SHA256SUMS, and the sum of each file.
# usage: deploy/release/verify.sh FOLDER [ALLOWED_SIGNERS]
#   ALLOWED_SIGNERS   who may sign, from a source that you trust; the folder's own file says only that nothing has
#                     changed since somebody signed it
set -euo pipefail
folder=$1
signers=${2:-$folder/allowed_signers}
(cd "$folder" && sha256sum --check --strict --quiet SHA256SUMS) ||
	{ echo "release: a file is not what SHA256SUMS says" >&2; exit 1; }
for file in "$folder"/*; do
	name=${file##*/}
	case $name in SHA256SUMS | SHA256SUMS.sig | allowed_signers) continue ;; esac
	grep -qF "  $name" "$folder/SHA256SUMS" || { echo "release: $name is not in SHA256SUMS" >&2; exit 1; }
done
if [ ! -e "$folder/SHA256SUMS.sig" ]; then
	[ $# -lt 2 ] || { echo "release: SHA256SUMS.sig is missing" >&2; exit 1; }
	echo "release: the sums hold; NOT SIGNED"
	exit 0
fi
ssh-keygen -Y verify -f "$signers" -I releases@loadstone -n loadstone-release -s "$folder/SHA256SUMS.sig" \
	<"$folder/SHA256SUMS" >/dev/null || { echo "release: the signature is not one of $signers" >&2; exit 1; }
echo "release: the sums hold, and $signers has signed them"
