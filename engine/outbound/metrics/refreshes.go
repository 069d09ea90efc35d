package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

var (
	pendingRefreshDesc = prometheus.NewDesc("loadstone_pending_refresh_count",
		"Refreshes of derived tables, and finished runs to be taken in, that are due or under way, of all servers.", nil, nil)
	refreshBacklogDesc = prometheus.NewDesc("loadstone_refresh_backlog_seconds",
		"How long the oldest of them that no worker has has been due.", nil, nil)
	refreshOverdueDesc = prometheus.NewDesc("loadstone_refresh_overdue_seconds",
		"How long the oldest of them has been due that is not done: put off, tried again or under way as well.", nil, nil)
	refreshP95Desc = prometheus.NewDesc("loadstone_refresh_duration_p95_seconds",
		"How long the newest 500 refreshes took that succeeded, the 95th percentile.", nil, nil)
	failedTablesDesc = prometheus.NewDesc("loadstone_failed_tables",
		"Derived tables that have failed too often and are left alone until somebody resumes them.", nil, nil)
	ingestLagDesc = prometheus.NewDesc("loadstone_ingest_lag_seconds",
		"How long the oldest run has been over, changed or deleted that was not taken in since.", nil, nil)
)

// refreshTimeout is how long a scrape waits for the control store.
const refreshTimeout = 2 * time.Second

// Refreshes asks the control store, when it is scraped, how much there is to refresh.
type Refreshes struct {
	load func(ctx context.Context) (refresh.Load, error)
}

// NewRefreshes returns the metrics of a queue.
func NewRefreshes(load func(ctx context.Context) (refresh.Load, error)) *Refreshes {
	return &Refreshes{load}
}

// Describe implements prometheus.Collector.
func (r *Refreshes) Describe(ch chan<- *prometheus.Desc) {
	ch <- pendingRefreshDesc
	ch <- refreshBacklogDesc
	ch <- refreshOverdueDesc
	ch <- refreshP95Desc
	ch <- failedTablesDesc
	ch <- ingestLagDesc
}

// Collect implements prometheus.Collector. While the store is away there are no figures, rather than old ones.
func (r *Refreshes) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	l, err := r.load(ctx)
	if err != nil {
		return
	}
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(pendingRefreshDesc, float64(l.Due))
	gauge(refreshBacklogDesc, l.OldestSeconds)
	gauge(refreshOverdueDesc, l.OverdueSeconds)
	gauge(refreshP95Desc, l.P95Seconds)
	gauge(failedTablesDesc, float64(l.Failed))
	gauge(ingestLagDesc, l.IngestLagSeconds)
}
