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

// extras are the fields of a snapshot that custom_metrics keeps.
func extras(w *engine.WorkerSnapshot) any {
	return struct {
		ByKind      map[engine.Kind]engine.KindCounts `json:"by_kind,omitempty"`
		ByClass     map[engine.ErrorClass]int64       `json:"errors_by_class,omitempty"`
		Scheduled   int64                             `json:"scheduled"`
		Dropped     int64                             `json:"dropped"`
		Retries     int64                             `json:"retries,omitempty"`
		StalledMs   float64                           `json:"stalled_ms"`
		Resources   engine.Resources                  `json:"resources"`
		Waiting     int                               `json:"waiting"`
		TickSeconds float64                           `json:"tick_seconds"`
		TargetQPS   *float64                          `json:"target_qps,omitempty"`
	}{w.ByKind, w.ByClass, w.Scheduled, w.Dropped, w.Retries, w.StalledMs, w.Resources, w.Waiting, w.TickSeconds,
		w.TargetQPS}
}

// ReadReports calls fn with what the run workers of a run reported, each one's in the order in which it did: with those
// fields of their snapshots that roll-ups need.
func ReadReports(ctx context.Context, pool *pgxpool.Pool, runID string, fn func(*engine.WorkerSnapshot)) error {
	rows, err := pool.Query(ctx, `SELECT worker_id, node_id, coalesce(phase, ''), "timestamp", active_connections,
			target_connections, coalesce(custom_metrics - 'by_kind' - 'errors_by_class', '{}')
		FROM worker_metrics_snapshots WHERE run_id = $1 ORDER BY worker_id, tick`, runID)
	if err != nil {
		return dberr.Failed("reading what run workers reported", err)
	}
	var r engine.WorkerSnapshot
	var custom []byte
	into := []any{&r.WorkerID, &r.NodeID, &r.Phase, &r.Timestamp.Time, &r.ActiveConnections, &r.TargetConnections, &custom}
	_, err = pgx.ForEachRow(rows, into, func() error {
		w := r
		// Earlier versions have stored neither.
		w.Waiting, w.TickSeconds = rollup.Unknown, 1
		if err := json.Unmarshal(custom, &w); err != nil {
			return fmt.Errorf("custom_metrics of %s: %w", r.WorkerID, err)
		}
		fn(&w)
		return nil
	})
	return dberr.Failed("reading what run workers reported", err)
}
