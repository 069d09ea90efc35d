package snowflakeexport_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
)

// going is a run that goes on: its rows by table, in the order of their keys.
type going map[string][]string

func (g going) RunRowsAfter(_ context.Context, _, table string, after map[string]json.RawMessage,
	each func(map[string]json.RawMessage) error) error {
	keys := map[string][]string{"worker_metrics_snapshots": {"worker_id", "tick"}, "test_logs": {"seq"},
		"run_control_events": {"sequence_id"}, "metrics_snapshots": {"timestamp"},
		"warehouse_poll_snapshots": {"timestamp", "snapshot_id"}}[table]
	key := func(r map[string]json.RawMessage) (k string) {
		for _, name := range keys {
			k += fmt.Sprintf("%30s", strings.TrimPrefix(string(r[name]), "-1"))
		}
		return k
	}
	for _, text := range g[table] {
		row := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			return err
		}
		if after != nil && key(row) <= key(after) {
			continue
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

func (g going) tick(worker string, tick int) {
	row := fmt.Sprintf(`{"run_id":"r","worker_id":%q,"tick":%d,"qps":1}`, worker, tick)
	g["worker_metrics_snapshots"] = append(g["worker_metrics_snapshots"], row)
	slices.Sort(g["worker_metrics_snapshots"])
}

// TestARunIsCopiedWhileItGoesOn: each copy adds what is new, of each run worker by itself, and replaces what changes;
// nothing is there twice, also after a copy that failed. A run that another server has taken over, or that was exported,
// is not copied any more, and the export has the last word.
func TestARunIsCopiedWhileItGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	g := going{
		"run_status":        {`{"run_id":"r","test_id":"r","status":"RUNNING","total_ops":1}`},
		"worker_heartbeats": {`{"run_id":"r","worker_id":"worker-0"}`, `{"run_id":"r","worker_id":"worker-1"}`},
		"test_logs": {
			`{"run_id":"r","log_id":"a","seq":1,"level":"INFO","message":"begun","timestamp":"2026-11-22T12:00:00Z"}`,
		},
		"run_control_events": {
			`{"run_id":"r","event_id":"e","sequence_id":1,"event_type":"START","event_data":{"a":1}}`},
		"metrics_snapshots": {`{"run_id":"r","timestamp":"2026-11-22T12:00:01Z"}`},
		"run_marks":         {`{"run_id":"r","mark_id":"m","at":"2026-11-22T12:00:01Z","mark_text":"index made"}`},
		"run_notes":         {`{"run_id":"r","note":"nightly","version":1}`},
	}
	g.tick("worker-1", 1)
	g.tick("worker-1", 2)
	copied := func(l *snowflakeexport.Live, account snowflakeexport.Account, want string) {
		t.Helper()
		if err := l.Copy(t.Context(), account, "apply"); err != nil {
			t.Fatal(err)
		}
		if got := w.one(t, `SELECT (SELECT STATUS || ' ' || TOTAL_OPS FROM RUN_STATUS) || ' ' ||
			(SELECT COUNT(*) FROM WORKER_HEARTBEATS) || ' ' || (SELECT COUNT(*) FROM TEST_LOGS) || ' ' ||
			(SELECT COUNT(*) || ' ' || COUNT(DISTINCT WORKER_ID || ' ' || TICK) FROM WORKER_METRICS_SNAPSHOTS) || ' ' ||
			(SELECT COUNT(*) FROM METRICS_SNAPSHOTS) || ' ' || (SELECT MIN(EVENT_DATA:a::VARCHAR) FROM RUN_CONTROL_EVENTS) ||
			' ' || (SELECT MARK_TEXT FROM RUN_MARKS) || ' ' || (SELECT NOTE FROM RUN_NOTES)`); got != want {
			t.Errorf("there is %s, not %s", got, want)
		}
	}
	l := &snowflakeexport.Live{Store: g, RunID: "r", Owner: 3}
	copied(l, w.Account, "RUNNING 1 2 1 2 2 1 1 index made nightly")
	// A run worker that sorts before the others, and one that was slow, come with the next copy.
	g.tick("worker-0", 1)
	g.tick("worker-1", 3)
	g["run_status"] = []string{`{"run_id":"r","test_id":"r","status":"RUNNING","total_ops":9}`}
	g["test_logs"] = append(
		g["test_logs"],
		`{"run_id":"r","log_id":"b","seq":2,"level":"INFO","message":"goes on","timestamp":"2026-11-22T12:00:02Z"}`,
	)
	copied(l, w.Account, "RUNNING 9 2 2 4 4 1 1 index made nightly")
	// The answer to a COMMIT is lost: whether the copy holds is not known, and the next one is right all the same.
	g.tick("worker-0", 2)
	for fails := 1; fails <= 12; fails += 3 {
		if err := l.Copy(t.Context(), &account{Account: w.Account, failAt: fails, after: true}, "apply"); err == nil {
			t.Errorf("step %d does not fail", fails)
		}
	}
	copied(l, w.Account, "RUNNING 9 2 2 5 5 1 1 index made nightly")
	// Another server has the run now. This one may not know yet.
	other := &snowflakeexport.Live{Store: g, RunID: "r", Owner: 4}
	copied(other, w.Account, "RUNNING 9 2 2 5 5 1 1 index made nightly")
	g.tick("worker-0", 3)
	if err := l.Copy(t.Context(), w.Account, "apply"); !errors.Is(err, snowflakeexport.ErrLiveOver) {
		t.Errorf("a server that has lost the run: %v", err)
	}
	copied(other, w.Account, "RUNNING 9 2 2 6 6 1 1 index made nightly")
	// The run has ended and is exported: that counts, and nothing is copied over it.
	if _, err := w.take(t, 1); err != nil {
		t.Fatal(err)
	}
	if got := w.one(
		t,
		"SELECT (SELECT COUNT(*) FROM WORKER_METRICS_SNAPSHOTS) || ' ' || (SELECT EPOCH FROM LOADSTONE_RUNS "+
			"WHERE RUN_ID = 'r') || ' ' || (SELECT COUNT(*) FROM LOADSTONE_RUNS WHERE RUN_ID = 'r')",
	); got != "0 1 1" {
		t.Errorf("after the export there is %s", got)
	}
	if err := other.Copy(t.Context(), w.Account, "apply"); !errors.Is(err, snowflakeexport.ErrLiveOver) {
		t.Errorf("after the export: %v", err)
	}
}

// TestWhatSomebodySetOnATableStays: the schema that is applied again adds columns, and unsets nothing.
func TestWhatSomebodySetOnATableStays(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	do := func(sql ...string) {
		t.Helper()
		if err := w.Account.Exec(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
	}
	// As version 2 had made it, and somebody has clustered it since.
	do("DROP TABLE RUN_NOTES", "CREATE TABLE RUN_NOTES (RUN_ID VARCHAR NOT NULL, NOTE VARCHAR) CLUSTER BY (RUN_ID) "+
		"COMMENT = 'Loadstone table 2: the notes of runs'")
	if refused := w.apply(t); refused != "" {
		t.Fatal(refused)
	}
	if got := w.one(t, "SELECT CLUSTERING_KEY || ' ' || COMMENT FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = "+
		"'RUN_NOTES'"); got != "LINEAR(RUN_ID) Loadstone table 3: the notes of runs" {
		t.Errorf("the table is %s", got)
	}
	if got := w.one(t, "SELECT COUNT(UPDATED_BY) FROM RUN_NOTES"); got != "0" {
		t.Errorf("the column is not there: %s", got)
	}
}

// TestExecutionsOfAnEarlierVersionGetTheirResults: what an earlier version has taken there without TEST_ID is given it,
// and not sent again.
func TestExecutionsOfAnEarlierVersionGetTheirResults(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	if _, err := w.take(t, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Account.Exec(t.Context(), "UPDATE QUERY_EXECUTIONS SET TEST_ID = NULL WHERE PART = 'a'"); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.as = func(sql string) string {
		if strings.HasPrefix(sql, "COPY") {
			t.Errorf("a part is sent again: %s", sql)
		}
		return sql
	}
	if r, err := w.take(t, 2); err != nil || r.Unchanged {
		t.Errorf("%+v, %v", r, err)
	}
	if got := w.one(t, "SELECT COUNT(*) || ' ' || COUNT_IF(TEST_ID = 'w0') FROM QUERY_EXECUTIONS"); got != "150 150" {
		t.Errorf("of the executions have results: %s", got)
	}
	if r, err := w.take(t, 3); err != nil || !r.Unchanged {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTheWarehouseOfTheResultsExecutesNothing: that is no fault of the run, which is tried again.
func TestTheWarehouseOfTheResultsExecutesNothing(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	if err := w.Account.Exec(t.Context(), "ALTER WAREHOUSE LOADSTONE_WH SET AUTO_RESUME = FALSE",
		"ALTER WAREHOUSE LOADSTONE_WH SUSPEND"); err != nil {
		t.Fatal(err)
	}
	_, err := w.take(t, 1)
	if !engine.HasCode(err, engine.CodeUnavailable) || !strings.Contains(w.book.Problem, "executes nothing now") {
		t.Errorf("%v, %+v", err, w.book)
	}
}
