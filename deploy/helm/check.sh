#!/usr/bin/env bash
# Renders the Helm chart with the real helm, with the values that people would set, and holds it to
# the schemas of Kubernetes and KEDA and to what the program knows (check.py).
# usage: deploy/helm/check.sh HELM BINARY
# It needs python3 with venv, and a network the first time.
set -euo pipefail
cd "$(dirname "$0")/../.."
helm=$(realpath "$1")
binary=$(realpath "$2")
version=1.37.0

cache="$PWD/.cache/kubernetes-validate-$version"
if [ ! -e "$cache/installed" ]; then
	echo "Installing kubernetes-validate $version."
	rm -rf "$cache"
	python3 -m venv "$cache"
	if ! "$cache/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$version"; then
		echo "kubernetes-validate $version cannot be installed from PyPI, so nobody has looked at the chart." >&2
		exit 1
	fi
	touch "$cache/installed"
fi
exec "$cache/bin/python" deploy/helm/check.py "$helm" "$binary"
