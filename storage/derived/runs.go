package derived

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// Known is what is there of a run: its fingerprint, "" when it is not there, and its segment.
func (d *Database) Known(ctx context.Context, runID string) (fingerprint, segment string, err error) {
	err = d.owner.QueryRow(ctx, `SELECT r.fingerprint, coalesce(s.name, '') FROM rollup.runs r
		LEFT JOIN rollup.segments s USING (run_id) WHERE r.run_id = $1`, runID).Scan(&fingerprint, &segment)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", nil
	}
	return fingerprint, segment, wrapError("looking for a run in the results database", err)
}

// DropRun removes what is there of the run of a claim, the rows of derived tables with their next refresh.
func (d *Database) DropRun(ctx context.Context, c refresh.Claim) error {
	err := d.withFence(ctx, c, nothing, func(tx pgx.Tx) error {
		if err := closeLive(ctx, tx, c.Subtask); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM rollup.runs WHERE run_id = $1", c.Subtask); err != nil {
			return err
		}
		return dropPartitions(ctx, tx, c, "")
	})
	return wrapError("removing a run from the results database", err)
}

func nothing(context.Context) error { return nil }

// PutRun replaces what is there of the run of a claim, in one transaction.
func (d *Database) PutRun(ctx context.Context, c refresh.Claim, r rollup.Run, prove func(context.Context) error) (
	rows, bytes int64, err error) {
	err = d.withFence(ctx, c, prove, func(tx pgx.Tx) error {
		if err := closeLive(ctx, tx, r.Run.RunID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM rollup.runs WHERE run_id = $1", r.Run.RunID); err != nil {
			return err
		}
		if err := insertRun(ctx, tx, r, false); err != nil {
			return err
		}
		if err := insertSegment(ctx, tx, r); err != nil {
			return err
		}
		rows = 1
		for _, s := range secondRelations(r) {
			n, err := tx.CopyFrom(ctx, pgx.Identifier{"rollup", s.table}, s.columns, pgx.CopyFromRows(s.rows))
			if err != nil {
				return err
			}
			rows += n
			for _, row := range s.rows {
				if h, ok := row[len(row)-1].([]int64); ok {
					bytes += int64(8 * len(h))
				}
				bytes += int64(8 * len(row))
			}
		}
		rows += r.Executions.Rows
		// Last, because it holds others up who attach.
		if err := d.attach(ctx, tx, c, r.Executions); err != nil {
			return err
		}
		return d.reachStep(stepCommit)
	})
	if err == nil {
		err = d.reachStep(stepDone)
	}
	return rows, bytes, wrapError("writing a run into the results database", err)
}

// insertRun adds the row of a run. One that is going on has the version 0 and no fingerprint, and stays as it is when
// it is there already.
func insertRun(ctx context.Context, tx pgx.Tx, r rollup.Run, provisional bool) error {
	run, scenario := r.Run, r.Run.Scenario
	values := pgx.NamedArgs{"run_id": run.RunID, "run_name": run.RunName, "template": scenario.TemplateName,
		"adapter": r.Adapter, "connection": scenario.Target.Connection.Name, "table_name": scenario.Target.TableName,
		"status": string(run.Status), "verdict": "", "load_mode": string(scenario.Workload.LoadMode), "simulated": false,
		"started_at": stamp(run.StartTime), "ended_at": stamp(run.EndTime), "warehouse": "", "warehouse_size": "",
		"currency": "", "tags": tags(scenario.Tags), "created_by": run.CreatedBy, "parts": r.Parts,
		"part_problems": append([]string{}, r.Problems...), "executions": int64(0), "fingerprint": r.Fingerprint,
		"provisional": provisional}
	if r.Seconds != nil {
		values["executions"] = r.Seconds.Executions
	}
	for _, name := range []string{"passed", "duration_seconds", "operations", "reads", "writes", "errors", "error_rate",
		"qps", "p50_ms", "p95_ms", "p99_ms", "avg_ms", "max_ms", "credits", "price", "price_per_million"} {
		values[name] = nil
	}
	summarize(values, r.Summary)
	there := ""
	if provisional {
		there = " ON CONFLICT (run_id) DO NOTHING"
	}
	_, err := tx.Exec(ctx, `INSERT INTO rollup.runs (run_id, run_name, template, adapter, connection, table_name, status,
			verdict, passed, simulated, load_mode, started_at, ended_at, duration_seconds, operations, reads, writes, errors,
			error_rate, qps, p50_ms, p95_ms, p99_ms, avg_ms, max_ms, warehouse, warehouse_size, credits, price, currency,
			price_per_million, tags, created_by, parts, part_problems, executions, fingerprint, provisional, version)
		VALUES (@run_id, @run_name, @template, @adapter, @connection, @table_name, @status, @verdict, @passed, @simulated,
			@load_mode, @started_at, @ended_at, @duration_seconds, @operations, @reads, @writes, @errors, @error_rate, @qps,
			@p50_ms, @p95_ms, @p99_ms, @avg_ms, @max_ms, @warehouse, @warehouse_size, @credits, @price, @currency,
			@price_per_million, @tags, @created_by, @parts, @part_problems, @executions, @fingerprint,
			@provisional, CASE WHEN @provisional THEN 0 ELSE nextval('staging.run_versions') END)`+there, values)
	return err
}

// insertSegment names the file that holds the seconds of the run, from now on.
func insertSegment(ctx context.Context, tx pgx.Tx, r rollup.Run) error {
	if r.Segment.Name == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO rollup.segments (run_id, name, sha256, size_bytes, row_count, version)
		VALUES ($1, $2, $3, $4, $5, $6)`, r.Run.RunID, r.Segment.Name, r.Segment.SHA256, r.Segment.SizeBytes, r.Segment.Rows,
		segment.Version)
	return err
}

func summarize(values pgx.NamedArgs, s *engine.Summary) {
	if s == nil {
		return
	}
	values["verdict"], values["passed"], values["simulated"] = s.Verdict, s.Passed, s.Simulated
	values["duration_seconds"], values["operations"] = s.DurationSeconds, s.Operations
	values["reads"], values["writes"] = s.Reads, s.Writes
	values["errors"], values["error_rate"], values["qps"] = s.Errors.Count, s.Errors.Rate, s.QPS
	if l := s.LatencyMs; l != nil {
		values["p50_ms"], values["p95_ms"], values["p99_ms"] = l.P50, l.P95, l.P99
		values["avg_ms"], values["max_ms"] = l.Avg, l.Max
	}
	if c := s.Cost; c != nil {
		values["warehouse"], values["warehouse_size"], values["currency"] = c.Warehouse, c.WarehouseSize, c.Currency
		values["credits"], values["price"], values["price_per_million"] = c.Credits, c.Price, c.PricePerMillion
	}
}

func tags(t map[string]string) string {
	if t == nil {
		t = map[string]string{}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func stamp(t engine.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := t.UTC()
	return &at
}

// relation is what goes into one relation of a run.
type relation struct {
	table   string
	columns []string
	rows    [][]any
}

// secondRelations are the seconds of a run as rows.
func secondRelations(r rollup.Run) []relation {
	id, s := r.Run.RunID, r.Seconds
	moment := []string{"run_id", "second", "warmup", "at"}
	counts := []string{"operations", "errors", "row_count", "rated", "latency"}
	with := func(keys ...string) []string {
		return append(append(append([]string{}, moment...), keys...), counts...)
	}
	row := func(m rollup.Moment, c *rollup.Cell, keys ...any) []any {
		all := append([]any{id, m.Second, m.Warmup, s.At(m.Second)}, keys...)
		var rated *int64
		if s.HasRated() {
			rated = &c.Rated
		}
		return append(all, c.Operations, c.Errors, c.Rows, rated, packHistogram(&c.Latency))
	}
	run := relation{table: "run_seconds", columns: with()}
	for key, c := range s.Run {
		run.rows = append(run.rows, row(key, c))
	}
	kind := relation{table: "kind_seconds", columns: with("kind")}
	for key, c := range s.Kinds {
		kind.rows = append(kind.rows, row(key.Moment, c, key.Kind))
	}
	statement := relation{table: "statement_seconds", columns: with("statement_id", "kind", "in_transaction")}
	for key, c := range s.Statements {
		statement.rows = append(statement.rows, row(key.Moment, c, key.Statement, key.Kind, key.InTransaction))
	}
	worker := relation{table: "worker_seconds", columns: with("worker_id")}
	for key, c := range s.Workers {
		worker.rows = append(worker.rows, row(key.Moment, c, key.Worker))
	}
	failures := relation{table: "error_seconds",
		columns: append(append([]string{}, moment...), "error_class", "error_code", "kind", "errors")}
	for key, n := range s.Errors {
		failures.rows = append(failures.rows, []any{id, key.Second, key.Warmup, s.At(key.Second), key.Class, key.Code,
			key.Kind, n})
	}
	return []relation{run, kind, statement, worker, failures, workerLoads(r), warehouse(r)}
}

// workerLoads are what run workers reported.
func workerLoads(r rollup.Run) relation {
	rel := relation{table: "load_seconds", columns: []string{"run_id", "second", "warmup", "at", "worker_id", "node_id",
		"scheduled", "dropped", "retries", "connections", "target_connections", "waiting", "target_operations_per_second",
		"cpu_ratio", "memory_ratio", "memory_bytes", "host_cpu_ratio", "host_memory_ratio"}}
	for key, l := range r.Seconds.Loads {
		rel.rows = append(rel.rows, []any{r.Run.RunID, key.Second, key.Warmup, r.Seconds.At(key.Second), key.Worker, l.Node,
			l.Scheduled, l.Dropped, l.Retries, l.Connections, l.TargetConnections, nullable(l.Waiting),
			nullable(l.TargetRate), l.CPU, l.Memory, l.MemoryBytes, l.HostCPU, l.HostMemory})
	}
	return rel
}

// nullable is nil for a value that nobody knows.
func nullable[T int | float64](v T) *T {
	if v == rollup.Unknown {
		return nil
	}
	return &v
}

// warehouse are the polls of a run's warehouse.
func warehouse(r rollup.Run) relation {
	rel := relation{table: "warehouse_seconds", columns: []string{"run_id", "second", "at", "warehouse", "state",
		"warehouse_type", "warehouse_size", "generation", "started_clusters", "min_cluster_count", "max_cluster_count",
		"running", "queued", "credits_per_hour"}}
	for _, p := range r.WarehouseSeconds() {
		rel.rows = append(rel.rows, []any{r.Run.RunID, p.Second, p.Timestamp.UTC(), p.Name, p.State, p.Type, p.Size,
			p.Generation, p.StartedClusters, p.MinClusterCount, p.MaxClusterCount, p.Running, p.Queued,
			nullable(p.CreditsPerHour)})
	}
	return rel
}

// packHistogram is a histogram as the functions of the schema read it.
func packHistogram(n *histogram.Compact) []int64 {
	h := n.Data()
	return append([]int64{int64(h.Schema), int64(h.Offset), h.Sum, h.Min, h.Max}, h.Counts...)
}
