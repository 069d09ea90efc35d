package snowflakeexport

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/target"
)

// complete adds to a row of the control store what the account has besides.
func complete(table string, r Row, d *engine.RunDetail) {
	switch table {
	case Steps:
		r["target_workers"] = r["total_target_connections"]
	case Polls:
		if len(r["elapsed_seconds"]) == 0 || string(r["elapsed_seconds"]) == "null" {
			r.set("elapsed_seconds", 0)
		}
	case Results:
		completeResult(r)
		var id string
		if json.Unmarshal(r["test_id"], &id) == nil && id == d.RunID {
			completeParent(r, d)
		}
	}
}

// completeResult adds what the generator saw, under the names that tell it from what the account says.
func completeResult(r Row) {
	for _, p := range []string{"p50", "p95", "p99"} {
		r["app_"+p+"_ms"] = r[p+"_latency_ms"]
	}
	var e engine.Enrichment
	if len(r["enrichment"]) == 0 || json.Unmarshal(r["enrichment"], &e) != nil || e.Total == nil {
		return
	}
	// Of the same executions: percentiles of the differences are in QUERY_EXECUTIONS.
	r.set("app_overhead_p50_ms", e.Total.ClientMs.P50-e.Total.ServerMs.P50)
	r.set("app_overhead_p95_ms", e.Total.ClientMs.P95-e.Total.ServerMs.P95)
	r.set("app_overhead_p99_ms", e.Total.ClientMs.P99-e.Total.ServerMs.P99)
}

// completeParent adds to the row of a run what the views show of it.
func completeParent(r Row, d *engine.RunDetail) {
	scenario := &d.Scenario
	for name, value := range map[string]any{"run_name": d.RunName, "template_name": scenario.TemplateName,
		"adapter": scenario.Target.Adapter, "table_name": scenario.Target.TableName, "status": d.Status,
		"load_mode": scenario.Workload.LoadMode, "start_time": d.StartTime, "end_time": d.EndTime,
		"created_by": d.CreatedBy} {
		r.set(name, value)
	}
	r.set("enrichment_status", d.Enrichment.Status) // SKIPPED is not in the control store's own row
	s := d.Summary
	if s == nil {
		return
	}
	r.set("verdict", s.Verdict)
	r.set("simulated", s.Simulated)
	r.set("duration_seconds", s.DurationSeconds)
	r.set("qps", s.QPS)
	if c := s.Cost; c != nil {
		r.set("warehouse_name", c.Warehouse)
		r.set("warehouse_size", c.WarehouseSize)
		r.set("credits", c.Credits)
		r.set("price", c.Price)
		r.set("currency", c.Currency)
		r.set("price_per_million", c.PricePerMillion)
	}
}

// writeFacts writes the rows of the run into the account, table by table, unless it is there already. The row of
// the run gets its fingerprint at the end, so that views show whole runs. Where TEST_RESULTS is somebody else's,
// whether the rest is there is not known, and it is written each time.
func (e *Export) writeFacts(ctx context.Context, c refresh.Claim, d engine.RunDetail,
	prove func(context.Context) error) (changed bool, err error) {
	if err := e.readSegment(ctx, c.Subtask); err != nil {
		return false, fmt.Errorf("reading the segment of run %s: %w", c.Subtask, err)
	}
	print, err := e.digest(ctx, &d)
	if err != nil {
		return false, err
	}
	known, there, err := e.factsFingerprint(ctx, c.Subtask)
	if err != nil || there && known == print {
		return false, err
	}
	if there {
		if _, err := e.deleteFacts(ctx, c, d, prove); err != nil {
			return false, err
		}
	}
	written := sha256.New()
	for _, tables := range transactions {
		if err := e.together(ctx, c, prove, func(t target.Tx) error {
			return e.writeTables(ctx, t, &d, tables, written)
		}); err != nil {
			return false, fmt.Errorf("writing the rows of run %s: %w", d.RunID, err)
		}
	}
	return true, nil
}

// writeTables replaces the rows of a run in some tables. With the row of its results, which is the last, it gets the
// fingerprint of what was written of all.
func (e *Export) writeTables(ctx context.Context, t target.Tx, d *engine.RunDetail, tables []string,
	written hash.Hash) error {
	for _, name := range tables {
		if !e.schema.Has(name) {
			continue
		}
		written.Write([]byte(name))
		err := e.writeRows(ctx, t, d, theSchema().byName[name], written)
		if err == nil && name == Results {
			err = t.Exec(ctx, "UPDATE "+Results+" SET FINGERPRINT = ? WHERE TEST_ID = ?", fingerprint(written), d.RunID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteFacts takes the run out of the views: figures over some of its executions would look like those over all.
func (e *Export) deleteFacts(ctx context.Context, c refresh.Claim, _ engine.RunDetail,
	prove func(context.Context) error) (changed bool, err error) {
	_, there, err := e.factsFingerprint(ctx, c.Subtask)
	if err == nil && !there && prove != nil {
		err = prove(ctx) // that the parts could not be read is said of a run that has some
	}
	if err != nil || !there {
		return false, err
	}
	return true, e.together(ctx, c, prove, func(t target.Tx) error {
		return t.Exec(ctx, "DELETE FROM "+Results+" WHERE RUN_ID = ?", c.Subtask)
	})
}

// factsFingerprint is the fingerprint of what the account knows of a run, as far as it knows all of it.
func (e *Export) factsFingerprint(ctx context.Context, runID string) (print string, there bool, err error) {
	if !e.schema.Has(Results) {
		return "", false, nil
	}
	rs, err := e.Account.Query(
		ctx,
		"SELECT FINGERPRINT FROM TEST_RESULTS WHERE RUN_ID = ? AND FINGERPRINT IS NOT NULL",
		runID,
	)
	if err != nil {
		return "", false, fmt.Errorf("looking what is known of run %s: %w", runID, err)
	}
	if len(rs.Rows) != 1 {
		return "", false, nil
	}
	return fmt.Sprint(rs.Rows[0][0]), true, nil
}

// wipeFacts deletes the rows of a run, except those of its template.
func (e *Export) wipeFacts(ctx context.Context, t target.Tx, runID string) error {
	d := &engine.RunDetail{Run: engine.Run{RunID: runID}}
	for _, table := range RunTables {
		if !e.schema.Has(table) || table == Templates {
			continue
		}
		if err := wipeRows(ctx, t, table, d); err != nil {
			return err
		}
	}
	return nil
}
