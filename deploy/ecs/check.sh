#!/usr/bin/env bash
# Holds the ECS task definition to the model of the API in AWS's own SDK for Python, to the rules of
# Fargate, and to what image and program know (check.py).
# usage: deploy/ecs/check.sh BINARY
# It needs python3 with venv, and a network the first time; no account and no call to AWS.
set -euo pipefail
cd "$(dirname "$0")/../.."
binary=$(realpath "$1")
version=1.44.5

cache="$PWD/.cache/botocore-$version"
if [ ! -e "$cache/installed" ]; then
	echo "Installing botocore $version."
	rm -rf "$cache"
	python3 -m venv "$cache"
	if ! "$cache/bin/pip" install --quiet --disable-pip-version-check "botocore==$version"; then
		echo "botocore $version cannot be installed from PyPI, so nobody has looked at the task definition." >&2
		exit 1
	fi
	touch "$cache/installed"
fi
exec "$cache/bin/python" deploy/ecs/check.py "$binary"
