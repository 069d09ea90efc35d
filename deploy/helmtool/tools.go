//go:build tools

// Package helmtool names Helm, with which the chart is checked, so that go.mod has its version.
package helmtool

import _ "helm.sh/helm/v3/cmd/helm"
