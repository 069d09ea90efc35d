// This part keeps what there is no column for of what run workers report each second, and reads it again.

package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// SnapshotExtras is what custom_metrics keeps of a snapshot.
type SnapshotExtras struct {
	ByKind    map[engine.Kind]engine.KindCounts `json:"by_kind,omitempty"`
	ByClass   map[engine.ErrorClass]int64       `json:"errors_by_class,omitempty"`
	Scheduled int64                             `json:"scheduled"`
	Dropped   int64                             `json:"dropped"`
	Retries   int64                             `json:"retries,omitempty"`
	StalledMs float64                           `json:"stalled_ms"`
	Resources engine.Resources                  `json:"resources"`
	load
}

// load is null in what earlier versions have stored.
type load struct {
	Waiting     *int     `json:"waiting"`
	TickSeconds *float64 `json:"tick_seconds"`
	TargetQPS   *float64 `json:"target_qps,omitempty"`
}

// NewSnapshotExtras are those of a snapshot.
func NewSnapshotExtras(w *engine.WorkerSnapshot) SnapshotExtras {
	return SnapshotExtras{w.ByKind, w.ByClass, w.Scheduled, w.Dropped, w.Retries, w.StalledMs, w.Resources,
		load{&w.Waiting, &w.TickSeconds, w.TargetQPS}}
}

// ReadReports calls fn with what the run workers of a run reported, each one's in the order in which it did.
func ReadReports(ctx context.Context, pool *pgxpool.Pool, runID string, fn func(*rollup.Report)) error {
	rows, err := pool.Query(ctx, `SELECT worker_id, node_id, coalesce(phase, ''), "timestamp", active_connections,
			target_connections, coalesce(custom_metrics - 'by_kind' - 'errors_by_class', '{}')
		FROM worker_metrics_snapshots WHERE run_id = $1 ORDER BY worker_id, tick`, runID)
	if err != nil {
		return dberr.Failed("reading what run workers reported", err)
	}
	var r rollup.Report
	var custom []byte
	into := []any{&r.Worker, &r.Node, &r.Phase, &r.At, &r.Connections, &r.TargetConnections, &custom}
	_, err = pgx.ForEachRow(rows, into, func() error {
		var e SnapshotExtras
		if err := json.Unmarshal(custom, &e); err != nil {
			return fmt.Errorf("custom_metrics of %s: %w", r.Worker, err)
		}
		r.Counts = rollup.Counts{Scheduled: e.Scheduled, Dropped: e.Dropped, Retries: e.Retries}
		r.Waiting, r.TickSeconds, r.TargetRate = rollup.Unknown, 1, rollup.Unknown
		if e.Waiting != nil {
			r.Waiting = *e.Waiting
		}
		if e.TickSeconds != nil {
			r.TickSeconds = *e.TickSeconds
		}
		if e.TargetQPS != nil {
			r.TargetRate = *e.TargetQPS
		}
		r.SetResources(e.Resources)
		fn(&r)
		return nil
	})
	return dberr.Failed("reading what run workers reported", err)
}
