package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// SaveResult implements writer.Store: one transaction and one round trip, however many rows. Empty strings and zero
// times are left as they are too.
func (s *Store) SaveResult(ctx context.Context, rows ...engine.RunResult) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	batch := &pgx.Batch{}
	for i, r := range rows {
		if i == 0 && r.Epoch != 0 {
			batch.Queue("SELECT fence_run($1, $2)", r.RunID, r.Epoch)
		}
		if err := s.queueResult(batch, r); err != nil {
			return err
		}
	}
	err := s.inTx(ctx, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	return dberr.Failed("saving result", err)
}

func (s *Store) queueResult(batch *pgx.Batch, r engine.RunResult) error {
	judged := &r.Thresholds
	if r.Thresholds == nil {
		judged = nil
	}
	var thresholds, figures, validity, plan, environment, search, enrichment []byte
	if err := cmp.Or(optional(&thresholds, "thresholds", judged), optional(&figures, "figures", r.Figures.OfWorker()),
		optional(&validity, "verdict", r.Validity), s.sealPlan(&plan, r.ResultID, r.Plan),
		optional(&environment, "environment", r.Environment), optional(&search, "answer of the search", r.FindMax),
		optional(&enrichment, "enrichment", r.Enrichment)); err != nil {
		return err
	}
	if r.Enrichment != nil {
		r.EnrichmentStatus = r.Enrichment.Status
	}
	batch.Queue(
		`INSERT INTO test_results AS old (test_id, run_id, worker_id, worker_group_id, test_name, status, start_time, end_time,
			figures, validity, thresholds, passed, plan, environment, enrichment_status, failure_reason, find_max_result, enrichment)
		VALUES ($1, $2, $3, $4, $5, coalesce($6, 'PREPARED'), $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
		ON CONFLICT (test_id) DO UPDATE SET
			worker_group_id = coalesce($4, old.worker_group_id),
			test_name = coalesce(nullif($5, ''), old.test_name),
			status = coalesce($6, old.status),
			start_time = coalesce($7, old.start_time),
			end_time = coalesce($8, old.end_time),
			figures = coalesce($9, old.figures),
			validity = coalesce($10, old.validity),
			thresholds = coalesce($11, old.thresholds),
			passed = coalesce($12, old.passed),
			plan = coalesce($13, old.plan),
			environment = coalesce($14, old.environment),
			find_max_result = coalesce($17, old.find_max_result),
			enrichment_status = coalesce(nullif($15, ''), old.enrichment_status),
			enrichment = coalesce($18, old.enrichment),
			failure_reason = coalesce(nullif($16, ''), old.failure_reason),
			updated_at = now()`,
		r.ResultID,
		r.RunID,
		orNull(r.WorkerID),
		r.WorkerGroupID,
		r.RunName,
		orNull(r.Status),
		stamp(r.StartTime.Time),
		stamp(r.EndTime.Time),
		figures,
		validity,
		thresholds,
		r.Passed,
		plan,
		environment,
		r.EnrichmentStatus,
		store.CleanText(r.FailureReason),
		search,
		enrichment,
	)
	return nil
}

// Results implements query.Store.
func (s *Store) Results(ctx context.Context, runID string) ([]engine.RunResult, error) {
	return s.results(ctx, runID, "figures", true)
}

// Overviews implements query.Store.
func (s *Store) Overviews(ctx context.Context, runID string) ([]engine.RunResult, error) {
	return s.results(ctx, runID, `CASE WHEN test_id = run_id THEN figures
		ELSE figures - '{histogram,slowest,by_statement,by_kind,latency_split,service_ms,schedule_lag_ms}'::text[] END`, false)
}

// results reads the results with the figures that the expression gives, and with sampled rows where pools is set.
func (s *Store) results(ctx context.Context, runID, figures string, pools bool) ([]engine.RunResult, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx,
		`SELECT test_id, run_id, coalesce(worker_id, ''), worker_group_id, test_name, status, start_time, end_time,
			`+figures+`, validity, thresholds, passed, plan, environment, enrichment_status, failure_reason, created_at, updated_at, find_max_result, enrichment
		FROM test_results WHERE run_id = $1 ORDER BY (test_id = run_id) DESC, worker_group_id, worker_id`, runID)
	if err != nil {
		return nil, dberr.Failed("reading results", err)
	}
	results, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r engine.RunResult, err error) {
		var figures, validity, thresholds, plan, environment, search, enrichment []byte
		var start, end *time.Time
		err = row.Scan(&r.ResultID, &r.RunID, &r.WorkerID, &r.WorkerGroupID, &r.RunName, &r.Status, &start, &end,
			&figures, &validity, &thresholds, &r.Passed, &plan, &environment, &r.EnrichmentStatus, &r.FailureReason,
			&r.CreatedAt.Time, &r.UpdatedAt.Time, &search, &enrichment)
		if err != nil {
			return r, err
		}
		r.StartTime, r.EndTime = instant(start), instant(end)
		r.CreatedAt, r.UpdatedAt = engine.At(r.CreatedAt.Time), engine.At(r.UpdatedAt.Time)
		for _, d := range []struct {
			what string
			text []byte
			into any
		}{
			{"figures", figures, &r.Figures}, {"verdict", validity, &r.Validity}, {"thresholds", thresholds, &r.Thresholds},
			{"environment", environment, &r.Environment}, {"answer of the search", search, &r.FindMax},
			{"enrichment", enrichment, &r.Enrichment},
		} {
			if err := parse(d.what, d.text, d.into); err != nil {
				return r, err
			}
		}
		if r.Plan, err = s.readPlan(r.ResultID, plan, pools); err != nil {
			return r, err
		}
		if f := r.Figures; f != nil && slices.Contains(f.Accounting.Problems, engine.ProblemCountsMissing) {
			f.CountsMissing = true // earlier versions stored the problem alone
		}
		if r.Figures != nil {
			r.Figures.Upgrade()
		}
		if r.FindMax != nil {
			r.FindMax.Upgrade()
		}
		return r, nil
	})
	return results, dberr.Failed("reading results", err)
}

// PendingEnrichments implements enrichment.Store.
func (s *Store) PendingEnrichments(ctx context.Context) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT t.run_id FROM test_results t JOIN run_status r USING (run_id)
		WHERE t.test_id = t.run_id AND t.enrichment_status IN ('PENDING', 'RUNNING') AND r.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
		ORDER BY t.run_id`)
	if err != nil {
		return nil, dberr.Failed("listing enrichments", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, dberr.Failed("listing enrichments", err)
}

// PendingAggregates implements enrichment.Store.
func (s *Store) PendingAggregates(ctx context.Context) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, `SELECT t.run_id FROM test_results t JOIN run_status r USING (run_id)
		WHERE t.test_id = t.run_id AND t.enrichment #>> '{aggregate,status}' = 'PENDING' AND t.enrichment_status NOT IN ('PENDING', 'RUNNING')
			AND r.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
		ORDER BY t.run_id`)
	if err != nil {
		return nil, dberr.Failed("listing aggregates that are awaited", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, dberr.Failed("listing aggregates that are awaited", err)
}

// SaveArtifact implements writer.Store. The same name with another checksum is store.ErrConflict.
func (s *Store) SaveArtifact(ctx context.Context, epoch int64, a engine.Artifact) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if a.ArtifactID == "" {
		a.ArtifactID = newID()
	}
	late := false
	err := s.inTx(ctx, func(tx pgx.Tx) (err error) {
		if epoch != 0 {
			if _, err := tx.Exec(ctx, "SELECT fence_run($1, $2)", a.RunID, epoch); err != nil {
				return err
			}
		}
		if late, err = IsDeletedPart(ctx, tx, a); err != nil || late {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO query_execution_artifacts (artifact_id, run_id, test_id, worker_id, kind, name,
				artifact_size_bytes, artifact_checksum, row_count, min_ts, max_ts, parquet_schema_version, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, coalesce($13, now()))
			ON CONFLICT DO NOTHING`,
			a.ArtifactID, a.RunID, a.ResultID, a.WorkerID, a.Kind, a.Name,
			a.SizeBytes, a.SHA256, a.RowCount, stamp(a.MinTime.Time), stamp(a.MaxTime.Time), a.SchemaVersion,
			stamp(a.CreatedAt.Time))
		if err != nil {
			return err
		}
		var checksum string
		err = tx.QueryRow(ctx, "SELECT artifact_checksum FROM query_execution_artifacts WHERE run_id = $1 AND name = $2",
			a.RunID, a.Name).Scan(&checksum)
		if err != nil {
			// The row was not inserted, and not because of its name.
			return fmt.Errorf("%w: artifact id %s is taken", store.ErrConflict, a.ArtifactID)
		}
		if checksum != a.SHA256 {
			return fmt.Errorf("%w: artifact %s is stored with another checksum", store.ErrConflict, a.Name)
		}
		return nil
	})
	if err == nil && late {
		return fmt.Errorf("saving artifact %s: %w", a.Name, store.ErrExecutionsDeleted)
	}
	return dberr.Failed("saving artifact", err)
}

const artifactColumns = `artifact_id, run_id, test_id, worker_id, kind, name, artifact_size_bytes, artifact_checksum,
			row_count, min_ts, max_ts, parquet_schema_version, created_at`

// Artifacts implements recovery.Store; they are ordered by name.
func (s *Store) Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx,
		"SELECT "+artifactColumns+" FROM query_execution_artifacts WHERE run_id = $1 ORDER BY name", runID)
	if err != nil {
		return nil, dberr.Failed("reading artifacts", err)
	}
	artifacts, err := pgx.CollectRows(rows, toArtifact)
	return artifacts, dberr.Failed("reading artifacts", err)
}

func toArtifact(row pgx.CollectableRow) (a engine.Artifact, err error) {
	var from, to *time.Time
	err = row.Scan(&a.ArtifactID, &a.RunID, &a.ResultID, &a.WorkerID, &a.Kind, &a.Name, &a.SizeBytes, &a.SHA256,
		&a.RowCount, &from, &to, &a.SchemaVersion, &a.CreatedAt.Time)
	a.MinTime, a.MaxTime, a.CreatedAt = instant(from), instant(to), engine.At(a.CreatedAt.Time)
	return a, err
}
