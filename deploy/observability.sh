#!/usr/bin/env bash
# Checks and tests the alert rules with Prometheus's own promtool.
# usage: deploy/observability.sh PROMTOOL
set -euo pipefail
promtool=$(realpath "$1")
cd "$(dirname "$0")/.."
cd deploy/observability
"$promtool" check rules alerts.yaml
"$promtool" test rules alerts_test.yaml
python3 -m json.tool dashboard.json >/dev/null
