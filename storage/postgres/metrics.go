package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

func toPoint(row pgx.CollectableRow) (p engine.Point, err error) {
	var kinds, classes, hist, load []byte
	err = row.Scan(&p.Timestamp.Time, &p.ElapsedSeconds, &p.Phase, &p.QPS, &p.ReadsPerSec, &p.WritesPerSec,
		&p.P50LatencyMs, &p.P95LatencyMs, &p.P99LatencyMs, &p.AvgLatencyMs, &p.MaxLatencyMs, &p.ErrorsPerSec, &p.TotalQueries,
		&p.ErrorCount,
		&p.ActiveConnections, &p.TargetConnections, &kinds, &classes, &hist, &p.CPUPercent, &p.MemoryPercent,
		&p.HostCPUPercent, &p.HostMemoryPercent, &load)
	if err != nil {
		return p, err
	}
	p.Timestamp = engine.At(p.Timestamp.Time)
	if err := parse("point", kinds, &p.QPSByKind); err != nil {
		return p, err
	}
	if err := parse("point", classes, &p.ErrorsByClass); err != nil {
		return p, err
	}
	if err := parse("point", load, &p.LoadStats); err != nil {
		return p, err
	}
	return p, parse("point", hist, &p.Histogram)
}

func toWorkerPoint(row pgx.CollectableRow) (p store.WorkerPoint, err error) {
	err = row.Scan(&p.Timestamp.Time, &p.ElapsedSeconds, &p.WorkerID, &p.Phase, &p.QPS,
		&p.P50LatencyMs, &p.P95LatencyMs, &p.P99LatencyMs, &p.TotalQueries, &p.ErrorCount, &p.ActiveConnections,
		&p.TargetConnections)
	p.Timestamp = engine.At(p.Timestamp.Time)
	return p, err
}

// Reports calls fn with what the run workers of a run reported, as far as it is stored, each one's in the order in
// which it did.
func (s *Store) Reports(ctx context.Context, runID string, fn func(*engine.WorkerSnapshot)) error {
	return ReadReports(ctx, s.pool, runID, fn)
}

const (
	defaultLogs = 500
	maxLogs     = 10_000
)

// Logs implements recovery.Store. level "" means all levels, another one exactly
// that level and those above it; limit ≤ 0 means 500 and more than 10 000 is 10 000.
func (s *Store) Logs(ctx context.Context, runID string, afterSeq int64, level engine.LogLevel,
	limit int) ([]engine.LogEntry, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if limit <= 0 {
		limit = defaultLogs
	}
	rows, err := s.pool.Query(ctx,
		`SELECT seq, run_id, coalesce(test_id, ''), coalesce(worker_id, ''), level, message, details, "timestamp"
		FROM test_logs WHERE run_id = $1 AND seq > $2
			AND array_position(ARRAY['INFO', 'WARNING', 'ERROR', 'CRITICAL'], level)
				>= coalesce(array_position(ARRAY['INFO', 'WARNING', 'ERROR', 'CRITICAL'], $3::text), 0)
		ORDER BY seq LIMIT $4`, runID, afterSeq, string(level), min(limit, maxLogs))
	if err != nil {
		return nil, dberr.Failed("reading the run's log", err)
	}
	logs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l engine.LogEntry, err error) {
		var details []byte
		err = row.Scan(&l.Seq, &l.RunID, &l.ResultID, &l.WorkerID, &l.Level, &l.Message, &details, &l.Timestamp.Time)
		l.Details, l.Timestamp = details, engine.At(l.Timestamp.Time)
		return l, err
	})
	return logs, dberr.Failed("reading the run's log", err)
}

// Workers implements recovery.Store; rows are ordered by group.
func (s *Store) Workers(ctx context.Context, runID string) ([]store.WorkerRow, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx,
		`SELECT run_id, worker_id, worker_group_id, node_id, test_id, status, coalesce(phase, ''), last_heartbeat, error
		FROM worker_heartbeats WHERE run_id = $1 ORDER BY worker_group_id, worker_id`, runID)
	if err != nil {
		return nil, dberr.Failed("reading workers", err)
	}
	workers, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w store.WorkerRow, err error) {
		err = row.Scan(&w.RunID, &w.WorkerID, &w.WorkerGroupID, &w.NodeID, &w.ResultID, &w.Status, &w.Phase, &w.LastHeartbeat,
			&w.Error)
		w.LastHeartbeat = w.LastHeartbeat.UTC()
		return w, err
	})
	return workers, dberr.Failed("reading workers", err)
}
