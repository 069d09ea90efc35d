#!/usr/bin/env bash
# Builds the site of docs/ into dist/site. The generator comes from PyPI, once, into .cache; warnings, such as a dead link,
# are errors. usage: deploy/docs.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=9.8.2
venv=.cache/mkdocs-material-$version
if [ ! -x "$venv/bin/mkdocs" ]; then
	command -v python3 >/dev/null || { echo "make docs needs python3" >&2; exit 1; }
	echo "Installing mkdocs-material $version, once."
	python3 -m venv "$venv" || { echo "make docs needs python3's venv: on Debian, apt-get install python3-venv" >&2; exit 1; }
	"$venv/bin/pip" install --quiet --disable-pip-version-check "mkdocs-material==$version"
fi
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --strict
pages=$(find dist/site -name '*.html' | wc -l)
[ "$pages" -ge 60 ] && [ -s dist/site/search/search_index.json ] || { echo "dist/site has $pages pages, or no search" >&2; exit 1; }
echo "dist/site/index.html: $pages pages, with search."
