// Package grafana tries the HTTP API of PromQL with the backend of Grafana's data source for Prometheus, as it is.
package grafana
