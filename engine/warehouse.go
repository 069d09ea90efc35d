package engine

import (
	"encoding/json"
	"strings"
)

// Warehouse is what a run's queries execute on, as the database tells at one
// moment. The poller of the server is the only source of it.
type Warehouse struct {
	Name string `json:"name"`
	// State is STARTED, SUSPENDED, RESUMING …; Type STANDARD, SNOWPARK-OPTIMIZED, ADAPTIVE or INTERACTIVE; Size X-Small ….
	State string `json:"state"`
	Type  string `json:"type"`
	Size  string `json:"size"`
	// Generation of a standard warehouse, 1 or 2; empty when the database does not tell.
	Generation string `json:"generation"`
	// FallbackWarehouse executes again what takes too long on an interactive warehouse; empty without one, null where the
	// database does not tell.
	FallbackWarehouse *string `json:"fallback_warehouse"`
	// The clusters are null where the database's edition knows none.
	StartedClusters *int   `json:"started_clusters"`
	MinClusterCount *int   `json:"min_cluster_count"`
	MaxClusterCount *int   `json:"max_cluster_count"`
	ScalingPolicy   string `json:"scaling_policy"`
	// AutoSuspendSeconds without a query suspend it; 0 is never, or not known.
	AutoSuspendSeconds int `json:"-"`
	// Running and Queued queries, of everybody.
	Running int `json:"running"`
	Queued  int `json:"queued"`
	// Error is why the latest poll failed; the other fields are then older. It is not stored.
	Error string `json:"error,omitempty"`
	// PolledAt is when the figures are from.
	PolledAt Time `json:"polled_at"`
	// Raw is the database's own row, stored and not shown.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Clusters is how many clusters are started: as the database tells, else one while the warehouse is not suspended.
func (w *Warehouse) Clusters() int {
	switch {
	case w.StartedClusters != nil:
		return *w.StartedClusters
	case strings.HasPrefix(strings.ToUpper(w.State), "SUSPEND"):
		return 0
	}
	return 1
}

// LeastClusters is how many clusters the warehouse has while it is not suspended, at least: one where the database does
// not tell.
func (w *Warehouse) LeastClusters() int {
	if w.MinClusterCount == nil {
		return 1
	}
	return max(1, *w.MinClusterCount)
}

// WarehousePoint is one poll of a run's time series: one row of warehouse_poll_snapshots.
type WarehousePoint struct {
	Timestamp      Time    `json:"timestamp"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	Warehouse
}

// WarehouseSlot is five seconds of a run's warehouse: one row of v_warehouse_timeseries.
// Without a poll the pointers are null.
type WarehouseSlot struct {
	Start           Time    `json:"slot_start"`
	ElapsedSeconds  float64 `json:"elapsed_seconds"`
	StartedClusters *int    `json:"started_clusters"`
	Running         *int    `json:"running"`
	Queued          *int    `json:"queued"`
	// QPS is the run's own throughput, null without a second of it.
	QPS *float64 `json:"qps"`
}
