#!/usr/bin/env bash
# Checks and tests the alert rules with Prometheus's own promtool: that on the path, or else that
# of Debian's package, which is fetched once and unpacked, not installed.
# usage: deploy/observability.sh
set -euo pipefail
cd "$(dirname "$0")/.."
promtool=$(command -v promtool || true)
if [ -z "$promtool" ]; then
	cache=$PWD/.cache/prometheus
	promtool=$cache/usr/bin/promtool
	if [ ! -x "$promtool" ]; then
		mkdir -p "$cache"
		(cd "$cache" && apt-get download -qq prometheus >/dev/null 2>&1 && dpkg-deb -x prometheus_*.deb . && rm -f prometheus_*.deb usr/bin/prometheus) ||
			{ echo "promtool is neither here nor to be had from apt: nobody has checked the alert rules." >&2; exit 1; }
	fi
fi
cd deploy/observability
"$promtool" check rules alerts.yaml
"$promtool" test rules alerts_test.yaml
python3 -m json.tool dashboard.json >/dev/null
