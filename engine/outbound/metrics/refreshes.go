package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

var (
	pendingRefreshDesc = prometheus.NewDesc("loadstone_pending_refresh_count",
		"Refreshes and ingestions that are due or active, of all servers.", nil, nil)
	refreshBacklogDesc = prometheus.NewDesc("loadstone_refresh_backlog_seconds",
		"Time since the oldest unclaimed refresh was due.", nil, nil)
	refreshOverdueDesc = prometheus.NewDesc("loadstone_refresh_overdue_seconds",
		"Time since the oldest unfinished refresh was due, including postponed, retried and active ones.", nil, nil)
	refreshP95Desc = prometheus.NewDesc("loadstone_refresh_duration_p95_seconds",
		"P95 duration of the latest 500 successful refreshes.", nil, nil)
	failedTablesDesc = prometheus.NewDesc("loadstone_failed_tables",
		"Derived tables in state FAILED, until they are resumed.", nil, nil)
	ingestLagDesc = prometheus.NewDesc("loadstone_ingest_lag_seconds",
		"Age of the oldest finished, changed or deleted run that has not been ingested.", nil, nil)
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
