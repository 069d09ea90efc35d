package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// SaveFindMax implements run.ControlStore.
func (s *Store) SaveFindMax(ctx context.Context, p store.FindMaxProgress) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	text, err := document("state of the search", store.KeepSearch(p.State))
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue("SELECT fence_run($1, $2)", p.RunID, p.Epoch)
	batch.Queue("UPDATE run_status SET find_max_state = $2, updated_at = now() WHERE run_id = $1", p.RunID, text)
	for _, step := range p.Steps {
		batch.Queue(
			`INSERT INTO find_max_step_history (run_id, step_number, stage, total_target_connections, target_qps, step_start_time, step_end_time,
				step_duration_seconds, total_queries, qps, p50_latency_ms, p95_latency_ms, p99_latency_ms, error_count, dropped_count, error_rate,
				qps_vs_prior_pct, p95_vs_baseline_pct, queue_detected, outcome, stop_reason, repetition, step_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, coalesce($23, gen_random_uuid()::text))
			ON CONFLICT (run_id, step_number) DO NOTHING`,
			p.RunID,
			step.StepNumber,
			string(step.Stage),
			step.TotalTargetConnections,
			step.TargetQPS,
			step.StepStartTime.UTC(),
			stamp(step.StepEndTime.Time),
			step.StepDurationSeconds,
			step.TotalQueries,
			step.QPS,
			step.P50LatencyMs,
			step.P95LatencyMs,
			step.P99LatencyMs,
			step.ErrorCount,
			step.DroppedCount,
			step.ErrorRate,
			step.QPSVsPriorPct,
			step.P95VsBaselinePct,
			step.QueueDetected,
			string(step.Outcome),
			orNull(store.CleanText(step.StopReason)),
			max(step.Repetition, 1),
			orNull(step.StepID),
		)
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	return dberr.Failed("saving the search", err)
}

// FindMax implements recovery.Store.
func (s *Store) FindMax(ctx context.Context, runID string) (*engine.FindMaxState, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var text []byte
	if err := s.pool.QueryRow(ctx, "SELECT find_max_state FROM run_status WHERE run_id = $1", runID).
		Scan(&text); err != nil {
		return nil, dberr.Reading("run", runID, err)
	}
	if text == nil {
		return nil, nil
	}
	var state store.KeptSearch
	if err := parse("state of the search", text, &state); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(
		ctx,
		`SELECT step_number, stage, total_target_connections, target_qps, step_start_time, step_end_time, step_duration_seconds,
			total_queries, qps, p50_latency_ms, p95_latency_ms, p99_latency_ms, error_count, dropped_count, error_rate,
			qps_vs_prior_pct, p95_vs_baseline_pct, queue_detected, outcome, coalesce(stop_reason, ''), repetition, step_id
		FROM find_max_step_history WHERE run_id = $1 ORDER BY step_number`,
		runID,
	)
	if err != nil {
		return nil, dberr.Failed("reading the search", err)
	}
	state.Steps, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (step engine.FindMaxStep, err error) {
		var begun time.Time
		var ended *time.Time
		err = row.Scan(&step.StepNumber, &step.Stage, &step.TotalTargetConnections, &step.TargetQPS, &begun, &ended,
			&step.StepDurationSeconds,
			&step.TotalQueries, &step.QPS, &step.P50LatencyMs, &step.P95LatencyMs, &step.P99LatencyMs, &step.ErrorCount,
			&step.DroppedCount, &step.ErrorRate,
			&step.QPSVsPriorPct, &step.P95VsBaselinePct, &step.QueueDetected, &step.Outcome, &step.StopReason, &step.Repetition,
			&step.StepID)
		step.StepStartTime, step.StepEndTime = engine.At(begun), instant(ended)
		state.Complete(&step)
		return step, err
	})
	return &state.FindMaxState, dberr.Failed("reading the search", err)
}
