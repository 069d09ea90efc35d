package postgres_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestRunRowsComeInPages: all of them, once, in their order, also behind a row and where rows are long; no query is open
// while they are taken, so that whoever takes them may use the store's only connection.
func TestRunRowsComeInPages(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx, conn := t.Context(), connect(t, dsn)
	must(t, s.CreateRun(ctx, engine.Run{RunID: "r"}))
	exec(t, conn, `INSERT INTO worker_metrics_snapshots (run_id, worker_id, tick, "timestamp", status, custom_metrics)
		SELECT 'r', 'worker-' || w, n, now(), 'RUNNING', jsonb_build_object('text', repeat('x', CASE WHEN n % 300 = 0 THEN 800000 ELSE 1 END))
		FROM generate_series(1, 2) w, generate_series(1, 700) n`)
	read := func(after map[string]json.RawMessage) (rows []string) {
		t.Helper()
		must(t, s.RunRowsAfter(ctx, "r", "worker_metrics_snapshots", after, func(r map[string]json.RawMessage) error {
			rows = append(rows, string(r["worker_id"])+" "+string(r["tick"]))
			if len(rows) == 1 { // another query of the same store
				_, err := s.Run(ctx, "r")
				return err
			}
			return nil
		}))
		return rows
	}
	rows := read(nil)
	if len(rows) != 1400 || rows[0] != `"worker-1" 1` || rows[699] != `"worker-1" 700` || rows[1399] != `"worker-2" 700` {
		t.Fatalf("%d rows, from %s to %s", len(rows), rows[0], rows[len(rows)-1])
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row] {
			t.Fatalf("%s comes twice", row)
		}
		seen[row] = true
	}
	rest := read(map[string]json.RawMessage{"worker_id": json.RawMessage(`"worker-1"`), "tick": json.RawMessage("699")})
	if len(rest) != 701 || rest[0] != `"worker-1" 700` {
		t.Errorf("behind a row there are %d, from %s", len(rest), rest[0])
	}
}

// TestWhatUsersNoteOfARunIsExported: a mark or a note that comes after the export has the run taken there once more, and
// so does one that comes while the export is under way.
func TestWhatUsersNoteOfARunIsExported(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx, conn := t.Context(), connect(t, dsn)
	_, err := s.CreateDynamicTable(ctx, refresh.Table{Name: snowflakeexport.Table, Kind: refresh.Ingest,
		TargetLagSeconds: 60, Mode: refresh.Incremental})
	must(t, err)
	must(t, s.CreateRun(ctx, engine.Run{RunID: "r"}))
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r", RunID: "r"}))
	exec(t, conn, "UPDATE run_status SET status = 'RUNNING', start_time = now() WHERE run_id = 'r'")
	for _, to := range []string{"STOPPING", "COMPLETED"} {
		exec(t, conn, "UPDATE run_status SET status = $1, phase = NULL WHERE run_id = 'r'", to)
	}
	pending := func(want bool, when string) {
		t.Helper()
		if is, err := s.IngestPending(ctx, snowflakeexport.Table, "r"); err != nil || is != want {
			t.Fatalf("%s the run is to be exported: %v, %v", when, is, err)
		}
	}
	export := func(during func()) {
		t.Helper()
		state, err := s.RefreshState(ctx, 9)
		must(t, err)
		must(t, s.ScheduleRefreshes(ctx, refresh.Plan(state)))
		claims, err := s.ClaimRefreshes(ctx, "w", refresh.ClaimTTL, 9)
		must(t, err)
		if len(claims) != 1 {
			t.Fatalf("%d claims", len(claims))
		}
		during()
		must(t, s.ReleaseRefresh(ctx, claims[0], refresh.Result{Mode: refresh.Incremental}))
	}
	pending(true, "before")
	export(func() {})
	pending(false, "after")
	var made engine.Mark
	for i, change := range []func() error{
		func() (err error) {
			made, err = s.AddMark(ctx, engine.Mark{RunID: "r", At: engine.At(time.Now()), Text: "index made"})
			return err
		},
		func() (err error) {
			made.Text = "index dropped"
			made, _, err = s.ChangeMark(ctx, made, nil)
			return err
		},
		func() error { _, err := s.DeleteMark(ctx, "r", made.MarkID, nil); return err },
		func() error { _, err := s.SaveRunNote(ctx, store.RunNote{RunID: "r", Text: "nightly"}); return err },
		func() error {
			_, err := s.SaveRunNote(ctx, store.RunNote{RunID: "r", Text: "weekly", Version: 1})
			return err
		},
	} {
		must(t, change())
		pending(true, fmt.Sprintf("after change %d", i))
		export(func() {})
		pending(false, fmt.Sprintf("after the export of change %d", i))
	}
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "r", RunID: "r", Status: engine.StatusCompleted}))
	export(func() {
		_, err := s.AddMark(ctx, engine.Mark{RunID: "r", At: engine.At(time.Now()), Text: "while it is exported"})
		must(t, err)
	})
	pending(true, "after a mark that came meanwhile")
}
