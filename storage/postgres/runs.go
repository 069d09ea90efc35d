package postgres

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

const runColumns = `r.run_id, r.template_id, r.test_name, r.scenario_config, ` + stateColumns

// listColumns are runColumns with the scenario as lists show it.
const listColumns = `r.run_id, r.template_id, r.test_name, r.scenario_overview, ` + stateColumns

const stateColumns = `r.status, r.phase,
	r.start_time, r.warmup_start_time, r.warmup_end_time, r.measurement_end_time, r.end_time,
	r.total_workers_expected, r.workers_registered, r.workers_active, r.workers_completed,
	r.total_ops, r.error_count, r.current_qps, r.worker_targets, r.stop_reason, r.cancellation_reason,
	r.created_by, r.created_by_id, r.owner_epoch, r.owner, r.created_at, r.updated_at, coalesce(r.matrix_id, ''), r.matrix_index, r.matrix_label,
	r.executions_deleted_at, r.executions_deleted_by, r.rules_state`

// scanRun reads runColumns, and what follows them into more.
func scanRun(row pgx.CollectableRow, run *engine.Run, more ...any) error {
	var template, phase, stopReason *string
	var scenario, targets, rules []byte
	var start, warmupStart, warmupEnd, measured, end, deleted *time.Time
	var created, updated time.Time
	dest := append([]any{
		&run.RunID,
		&template,
		&run.RunName,
		&scenario,
		&run.Status,
		&phase,
		&start,
		&warmupStart,
		&warmupEnd,
		&measured,
		&end,
		&run.WorkersExpected,
		&run.WorkersRegistered,
		&run.WorkersActive,
		&run.WorkersCompleted,
		&run.TotalOps,
		&run.ErrorCount,
		&run.CurrentQPS,
		&targets,
		&stopReason,
		&run.CancellationReason,
		&run.CreatedBy,
		&run.CreatedByID,
		&run.OwnerEpoch,
		&run.Owner,
		&created,
		&updated,
		&run.MatrixID,
		&run.MatrixIndex,
		&run.MatrixLabel,
		&deleted,
		&run.ExecutionsDeletedBy,
		&rules,
	}, more...)
	if err := row.Scan(dest...); err != nil {
		return err
	}
	run.ResultID, run.TemplateID = run.RunID, orEmpty(template)
	run.Phase, run.StopReason = engine.Phase(orEmpty(phase)), engine.StopReason(orEmpty(stopReason))
	run.StartTime, run.WarmupStartTime, run.WarmupEndTime = instant(start), instant(warmupStart), instant(warmupEnd)
	run.MeasurementEndTime, run.EndTime, run.ExecutionsDeletedAt = instant(measured), instant(end), instant(deleted)
	run.CreatedAt, run.UpdatedAt = engine.At(created), engine.At(updated)
	if err := parse("scenario", scenario, &run.Scenario); err != nil {
		return err
	}
	if rules != nil {
		if err := parse("rules", rules, &run.Rules); err != nil {
			return err
		}
	}
	return parse("worker targets", targets, &run.WorkerTargets)
}

func toRun(row pgx.CollectableRow) (engine.Run, error) {
	var run engine.Run
	err := scanRun(row, &run)
	return run, err
}

// CreateRun implements run.ControlStore. A TemplateID that names no template, for
// instance one that was deleted a moment ago, is left out of the row.
func (s *Store) CreateRun(ctx context.Context, run engine.Run) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	scenario := run.Scenario.Clone()
	if err := template.SealRules(&scenario, nil, s.sealURL); err != nil {
		return err
	}
	err := s.resolveConnections(ctx, &scenario)
	if err != nil {
		return err
	}
	if scenario.Target.Connection, err = s.sealRef(ctx, scenario.Target.Connection, nil, "target.connection"); err != nil {
		return err
	}
	config, err := document("scenario", scenario)
	if err != nil {
		return err
	}
	targets, err := document("worker targets", orEmptyMap(run.WorkerTargets))
	if err != nil {
		return err
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := LockReplayedRun(ctx, tx, scenario); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO run_status (run_id, test_id, template_id, test_name, scenario_config,
				status, phase, total_workers_expected, worker_targets, created_by, owner_epoch, created_at, matrix_id, matrix_index, matrix_label,
				created_by_id)
			VALUES ($1, $1, (SELECT template_id FROM test_templates WHERE template_id = $2), $3, $4,
				'PREPARED', 'PREPARING', $5, $6, $7, $8, coalesce($9, now()), $10, $11, $12, $13)`,
			run.RunID, orNull(run.TemplateID), run.RunName, config, run.WorkersExpected, targets,
			run.CreatedBy, run.OwnerEpoch, stamp(run.CreatedAt.Time), orNull(run.MatrixID), run.MatrixIndex,
			store.CleanText(run.MatrixLabel), run.CreatedByID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO test_results (test_id, run_id, test_name, status) VALUES ($1, $1, $2, 'PREPARED')`,
			run.RunID, run.RunName)
		return err
	})
	return dberr.Failed("creating run", err)
}

func orEmptyMap(m map[string]engine.WorkerTarget) map[string]engine.WorkerTarget {
	if m == nil {
		return map[string]engine.WorkerTarget{}
	}
	return m
}

// Run implements writer.Store.
func (s *Store) Run(ctx context.Context, runID string) (engine.Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+runColumns+" FROM run_status r WHERE r.run_id = $1", runID)
	if err != nil {
		return engine.Run{}, dberr.Failed("reading run", err)
	}
	run, err := pgx.CollectExactlyOneRow(rows, toRun)
	return run, dberr.Reading("run", runID, err)
}

// LiveRuns implements recovery.Store.
func (s *Store) LiveRuns(ctx context.Context) ([]engine.Run, error) { return s.liveRuns(ctx, "true") }

// ExpiredRuns implements recovery.Store.
func (s *Store) ExpiredRuns(ctx context.Context) ([]engine.Run, error) {
	return s.liveRuns(ctx, leased+" < clock_timestamp()")
}

func (s *Store) liveRuns(ctx context.Context, where string) ([]engine.Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+runColumns+` FROM run_status r
		WHERE (r.status IN ('RUNNING', 'STOPPING', 'CANCELLING') OR r.phase = 'PROCESSING') AND `+where+`
		ORDER BY r.created_at, r.run_id`)
	if err != nil {
		return nil, dberr.Failed("listing live runs", err)
	}
	runs, err := pgx.CollectRows(rows, toRun)
	return runs, dberr.Failed("listing live runs", err)
}

// leased is the end of a row's lease.
const leased = "coalesce(lease_until, updated_at + make_interval(secs => 15))"

// Claim implements recovery.Store.
func (s *Store) Claim(ctx context.Context, c store.Claim) (int64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var epoch int64
	err := s.pool.QueryRow(
		ctx,
		`UPDATE run_status SET owner = $2, lease_until = clock_timestamp() + make_interval(secs => $4),
			owner_epoch = owner_epoch + 1, updated_at = now()
		WHERE run_id = $1 AND (`+leased+` < clock_timestamp() OR $3 AND owner = $2 OR EXISTS (SELECT FROM run_commands c
			WHERE c.seq = $5 AND c.run_id = $1 AND c.heard_by = $2 AND c.answered_by IS NULL)) RETURNING owner_epoch`,
		c.RunID,
		c.Owner,
		c.Reclaim,
		s.Lease().Seconds(),
		c.Command,
	).Scan(
		&epoch,
	)
	if !errors.Is(err, pgx.ErrNoRows) {
		return epoch, dberr.Failed("claiming the run", err)
	}
	if _, err := s.Run(ctx, c.RunID); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("claiming the run: %w", store.ErrLeaseHeld)
}

// RenewLeases implements recovery.Store.
func (s *Store) RenewLeases(ctx context.Context, owner string, runIDs []string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.pool.Exec(ctx, `UPDATE run_status SET lease_until = clock_timestamp() + make_interval(secs => $3)
		WHERE run_id = ANY($2::text[]) AND owner = $1`,
		owner, runIDs, s.Lease().Seconds())
	return dberr.Failed("renewing the leases", err)
}

// TakeOver implements storetest.Store.
func (s *Store) TakeOver(ctx context.Context, runID string) (int64, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var epoch int64
	err := s.pool.QueryRow(ctx, `UPDATE run_status SET owner_epoch = owner_epoch + 1, updated_at = now()
		WHERE run_id = $1 RETURNING owner_epoch`, runID).Scan(&epoch)
	return epoch, dberr.Reading("run", runID, err)
}

// DeleteRun implements run.ControlStore.
func (s *Store) DeleteRun(ctx context.Context, runID string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT queue_file_deletion($1, true)", runID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM run_status WHERE run_id = $1
			AND status IN ('PREPARED', 'COMPLETED', 'FAILED', 'CANCELLED')`, runID)
		if err == nil && tag.RowsAffected() == 0 {
			err = pgx.ErrNoRows // nor is anything left over
		}
		return err
	})
	if !errors.Is(err, pgx.ErrNoRows) {
		return dberr.Failed("deleting run", err)
	}
	run, err := s.Run(ctx, runID)
	if err != nil {
		return err
	}
	return dberr.Conflict(fmt.Sprintf("The run is %s and cannot be deleted.", run.Status), "Stop it first.")
}

// cursor is a position in the list of runs, newest first.
type cursor struct {
	At time.Time `json:"t"`
	ID string    `json:"i"`
}

func (c cursor) String() string {
	// Neither a time nor a string fails to marshal.
	text, _ := json.Marshal(c)
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(text string) (c cursor, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, engine.InvalidField("cursor", "this is not a cursor of an earlier page", "leave it out for the first page")
	}
	return c, nil
}

const (
	defaultPage = 50
	maxPage     = 500
)

// listedQPS is the throughput of a run that was measured and covers any time, as Figures.Upgrade has it.
const listedQPS = `CASE WHEN (t.figures ->> 'covered_seconds')::double precision = 0
	OR (t.figures ->> 'duration_seconds')::double precision <= 0 THEN NULL ELSE t.qps END`

// listedErrors is the share of operations that failed, of a run that has recorded any.
const listedErrors = `CASE WHEN (t.figures ->> 'operations')::bigint = 0 THEN NULL ELSE t.error_rate END`

// selectRows reads runs as lists show them; toRow takes its rows.
const selectRows = `SELECT ` + listColumns + `, ` + listedQPS + `, t.p50_latency_ms, t.p95_latency_ms, t.p99_latency_ms,
		` + listedErrors + `, (t.figures ->> 'duration_seconds')::double precision, t.verdict, t.passed,
		jsonb_array_length(jsonb_path_query_array(coalesce(t.thresholds, '[]'), '$[*] ? (@.passed == false)')),
		coalesce(t.environment @> '{"simulated": true}', false), coalesce(t.environment @> '{"emulated": true}', false)
	FROM run_status r LEFT JOIN test_results t ON t.test_id = r.run_id`

func toRow(row pgx.CollectableRow) (store.RunRow, error) {
	var r store.RunRow
	err := scanRun(row, &r.Run, &r.QPS, &r.P50Ms, &r.P95Ms, &r.P99Ms, &r.ErrorRate, &r.MeasuredSeconds, &r.Verdict,
		&r.Passed, &r.FailedThresholds, &r.Simulated, &r.Emulated)
	return r, err
}

// ListRuns implements api.Store. A page has at most 500 runs.
func (s *Store) ListRuns(ctx context.Context, f store.RunFilter) (store.RunList, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var where []string
	var args []any
	add := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, condition)
	}
	if len(f.Statuses) > 0 {
		add("r.status = ANY(?::text[])", texts(f.Statuses))
	}
	if f.TemplateID != "" {
		add("r.template_id = ?", f.TemplateID)
	}
	if f.ConnectionID != "" {
		add("r.scenario_overview #>> '{target,connection_id}' = ?", f.ConnectionID)
	}
	if f.Search != "" {
		add(`r.test_name ILIKE ? ESCAPE '\'`, "%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(f.Search)+"%")
	}
	if !f.Since.IsZero() {
		add("r.created_at >= ?", f.Since.UTC())
	}
	if !f.Until.IsZero() {
		add("r.created_at < ?", f.Until.UTC())
	}
	if len(f.Tag) > 0 {
		tags, err := document("tags", f.Tag)
		if err != nil {
			return store.RunList{}, err
		}
		// The operator ? of jsonb is not used here, because add replaces it.
		add("r.scenario_overview -> 'tags' @> ?::jsonb", tags)
	}
	if f.LatestOfTemplate {
		add(`r.run_id IN (SELECT DISTINCT ON (n.template_id) n.run_id FROM run_status n WHERE n.template_id IS NOT NULL
			ORDER BY n.template_id, n.created_at DESC, n.run_id DESC)`)
	}
	switch {
	case f.Passed == nil:
	case *f.Passed:
		add("EXISTS (SELECT FROM test_results p WHERE p.test_id = r.run_id AND p.passed)")
	default:
		add(`EXISTS (SELECT FROM test_results p WHERE p.test_id = r.run_id AND p.thresholds @> '[{"passed": false}]')`)
	}
	clause := func() string {
		if len(where) == 0 {
			return ""
		}
		return " WHERE " + strings.Join(where, " AND ")
	}
	count, countArgs := "SELECT count(*) FROM run_status r"+clause(), args
	from := 0
	switch {
	case f.Sorted():
		var err error
		if from, err = store.Offset(f.Cursor); err != nil {
			return store.RunList{}, err
		}
	case f.Cursor != "":
		c, err := parseCursor(f.Cursor)
		if err != nil {
			return store.RunList{}, err
		}
		add("(r.created_at, r.run_id) < (?, ?)", c.At, c.ID)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	page := fmt.Sprintf(`%s%s ORDER BY %s LIMIT %d OFFSET %d`, selectRows, clause(), orderOf(f), limit+1, from)

	list := store.RunList{Runs: []store.RunRow{}}
	batch := &pgx.Batch{}
	batch.Queue(count, countArgs...).QueryRow(func(row pgx.Row) error { return row.Scan(&list.Total) })
	batch.Queue(page, args...).Query(func(rows pgx.Rows) (err error) {
		list.Runs, err = pgx.AppendRows(list.Runs, rows, toRow)
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return store.RunList{}, dberr.Failed("listing runs", err)
	}
	if len(list.Runs) > limit {
		list.Runs = list.Runs[:limit]
		last := list.Runs[limit-1]
		list.NextCursor = cursor{At: last.CreatedAt.Time, ID: last.RunID}.String()
		if f.Sorted() {
			list.NextCursor = store.OffsetCursor(from + limit)
		}
	}
	return list, nil
}

// sortKeys are what lists are in the order of, of the tables of selectRows.
var sortKeys = map[store.RunSort]string{
	store.SortCreated:    "r.created_at",
	store.SortName:       `lower(r.test_name COLLATE "C")`,
	store.SortThroughput: listedQPS,
	store.SortP50:        "t.p50_latency_ms",
	store.SortP95:        "t.p95_latency_ms",
	store.SortP99:        "t.p99_latency_ms",
	store.SortErrorRate:  listedErrors,
	store.SortOperations: "r.total_ops",
	store.SortLength:     "r.end_time - r.start_time",
	store.SortEnded:      "r.end_time",
	store.SortStatus:     `r.status COLLATE "C"`,
	store.SortValidity:   `t.verdict COLLATE "C"`,
	store.SortStartedBy:  `nullif(lower(r.created_by COLLATE "C"), '')`,
	store.SortConnected:  "(r.scenario_overview -> 'workload' ->> 'concurrent_connections')::bigint",
}

func orderOf(f store.RunFilter) string {
	key, way := sortKeys[f.Sort], "DESC"
	if key == "" {
		key = sortKeys[store.SortCreated]
	}
	if f.Ascending {
		way = "ASC"
	}
	return key + " " + way + " NULLS LAST, r.created_at DESC, r.run_id DESC"
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
