package snowsim

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// whole makes the stand-in as a user has it: with the translator.
func whole(o *Options) { o.plain = nil }

// table reads all rows as text, with the names of the columns.
func table(t testing.TB, db interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, query string, args ...any) (names []string, out [][]string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, _ = rows.Columns()
	for rows.Next() {
		values, at := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			at[i] = &values[i]
		}
		if err := rows.Scan(at...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		row := make([]string, len(names))
		for i, v := range values {
			row[i] = v.String
		}
		out = append(out, row)
	}
	if rows.Err() != nil {
		t.Fatalf("%s: %v", query, rows.Err())
	}
	return names, out
}

// TestTableTypes takes the three types of tables through what a run does with them.
func TestTableTypes(t *testing.T) {
	t.Parallel()
	s := start(t, whole)
	db := open(t, config(t, s.DSN()))
	exec(t, db, "CREATE OR REPLACE TABLE std (id NUMBER(38,0) NOT NULL, note VARCHAR(100), amount NUMBER(12,2), at "+
		"TIMESTAMP_TZ, v VARIANT)")
	exec(t, db,
		"CREATE OR REPLACE HYBRID TABLE hyb (id NUMBER(38,0) PRIMARY KEY, note VARCHAR(100), INDEX by_note (note))")
	exec(
		t,
		db,
		"INSERT INTO std (id, note, amount) SELECT SEQ8(), 'row ' || SEQ8(), 1 + MOD(ABS(HASH(SEQ8())), 100) FROM "+
			"TABLE(GENERATOR(ROWCOUNT => 1000))",
	)
	exec(t, db, "CREATE OR REPLACE INTERACTIVE TABLE inter CLUSTER BY (id) AS SELECT id, note FROM std")
	if n := number(t, db, "SELECT COUNT(*) FROM std WHERE id BETWEEN ? AND ?", 10, 19); n != 10 {
		t.Errorf("%d rows", n)
	}
	for i := range 20 {
		exec(t, db, "INSERT INTO hyb VALUES (?, ?)", i, fmt.Sprint("note ", i))
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO hyb VALUES (?, ?)", 3, "again"); code(err) != 200001 {
		t.Errorf("a duplicate key of a hybrid table: %v", err)
	}
	r := exec(t, db, "UPDATE hyb SET note = ? WHERE id < ?", "changed", 5)
	if n, _ := r.RowsAffected(); n != 5 {
		t.Errorf("%d rows are updated", n)
	}
	names, rows := table(t, db, `SELECT id AS "Lower", note FROM hyb WHERE id = ?`, 3)
	if !slices.Equal(names, []string{"Lower", "NOTE"}) || len(rows) != 1 || rows[0][1] != "changed" {
		t.Errorf("%v %v", names, rows)
	}
	// An interactive table on an interactive warehouse, and what that one refuses.
	conn := single(t, db)
	exec(t, conn, "ALTER WAREHOUSE INTERACTIVE_WH ADD TABLES (inter)")
	exec(t, conn, "USE WAREHOUSE interactive_wh")
	if n := number(t, conn, "SELECT COUNT(*) FROM inter WHERE id = 7"); n != 1 {
		t.Errorf("%d rows", n)
	}
	if _, err := conn.ExecContext(t.Context(), "DELETE FROM inter WHERE id = 7"); err == nil {
		t.Error("an interactive warehouse deletes")
	}
	if _, err := conn.ExecContext(t.Context(), "SELECT COUNT(*) FROM std"); err == nil {
		t.Error("an interactive warehouse reads a standard table")
	}
}

func TestWarehouseStatements(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		whole(o)
		o.Denied = []translate.Denied{{Role: "PUBLIC", Privilege: "OPERATE"}}
	})
	conn := single(t, open(t, config(t, s.DSN())))
	exec(t, conn, "CREATE WAREHOUSE w WAREHOUSE_SIZE = MEDIUM MAX_CLUSTER_COUNT = 3 AUTO_SUSPEND = 60 AUTO_RESUME = "+
		"FALSE INITIALLY_SUSPENDED = TRUE")
	show := func() map[string]string {
		names, rows := table(t, conn, "SHOW WAREHOUSES LIKE 'W'")
		if len(rows) != 1 {
			t.Fatalf("%d warehouses", len(rows))
		}
		out := map[string]string{}
		for i, name := range names {
			out[name] = rows[0][i]
		}
		return out
	}
	if w := show(); w["name"] != "W" || w["state"] != "SUSPENDED" || w["size"] != "Medium" ||
		w["max_cluster_count"] != "3" || w["started_clusters"] != "0" {
		t.Errorf("%v", w)
	}
	exec(t, conn, "CREATE TABLE t (id NUMBER)")
	exec(t, conn, "USE WAREHOUSE w")
	if _, err := conn.ExecContext(t.Context(), "SELECT * FROM t"); code(err) != 606 {
		t.Errorf("a suspended warehouse: %v", err)
	}
	exec(t, conn, "ALTER WAREHOUSE w RESUME")
	exec(t, conn, "SELECT * FROM t")
	if w := show(); w["state"] != "STARTED" || w["started_clusters"] != "1" {
		t.Errorf("%v", w)
	}
	exec(t, conn, "ALTER WAREHOUSE w SET WAREHOUSE_SIZE = XLARGE")
	if w := show(); w["size"] != "X-Large" {
		t.Errorf("%v", w)
	}
	exec(t, conn, "USE ROLE PUBLIC")
	if _, err := conn.ExecContext(t.Context(), "ALTER WAREHOUSE w SUSPEND"); err == nil {
		t.Error("a role without OPERATE suspends it")
	}
}

// TestQueueIsSeen: more statements than slots show as queued, as the poller reads it.
func TestQueueIsSeen(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		whole(o)
		o.TimeScale = 1
		o.Warehouses = []warehouse.Spec{{Name: "W", MaxConcurrency: 2}}
		slow := warehouse.Profile{Execution: 700 * time.Millisecond, Share: 1}
		o.Model.Profiles = map[warehouse.Work]warehouse.Profile{{Table: warehouse.Standard, Op: warehouse.Scan}: slow,
			{Table: warehouse.Standard, Op: warehouse.Lookup}: slow,
			{Table: warehouse.Standard, Op: warehouse.Write}:  {Share: 1},
			{Table: warehouse.Standard, Op: warehouse.Load}:   {Share: 1}}
	})
	db := open(t, config(t, s.DSN()))
	exec(t, db, "CREATE TABLE t (id NUMBER)")
	exec(t, db, "INSERT INTO t VALUES (1)")
	done := make(chan error, 5)
	for range 5 {
		go func() {
			var n int
			done <- db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n)
		}()
	}
	running, queued := 0, 0
	for deadline := time.Now().Add(20 * time.Second); queued != 3 &&
		time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		state, _ := s.account.Get("W")
		running, queued = max(running, state.Running), max(queued, state.Queued)
	}
	names, rows := table(t, db, "SHOW WAREHOUSES LIKE 'W'")
	if i := slices.Index(names, "queued"); i < 0 || len(rows) != 1 {
		t.Errorf("SHOW WAREHOUSES has %v", names)
	}
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if running != 2 || queued != 3 {
		t.Errorf("at most %d ran and %d waited", running, queued)
	}
}

// TestHistoryOfARun: what was executed is found by its query id and its tag.
func TestHistoryOfARun(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		whole(o)
		o.History.Interval = time.Second
		o.History.Short = time.Hour // of the model: a busy machine is no part of it
	})
	conn := single(t, open(t, config(t, s.DSN())))
	exec(t, conn, "CREATE TABLE std (id NUMBER)")
	exec(t, conn, "CREATE HYBRID TABLE hyb (id NUMBER PRIMARY KEY)")
	exec(t, conn, `ALTER SESSION SET QUERY_TAG = '{"run_id":"r1"}'`)
	ids := map[string]bool{}
	run := func(query string, args ...any) {
		t.Helper()
		got := make(chan string, 1)
		exec(t, conn, query, args...)
		if _, err := conn.ExecContext(gosnowflake.WithQueryIDChan(t.Context(), got), query, args...); err != nil {
			t.Fatal(err)
		}
		ids[<-got] = strings.Contains(query, "std")
	}
	for range 5 {
		run("SELECT id FROM std WHERE id = ?", 1)
		run("SELECT id FROM hyb WHERE id = ?", 1)
	}
	exec(t, conn, "ALTER SESSION UNSET QUERY_TAG")
	_,
		rows := table(
		t,
		conn,
		`SELECT query_id, total_elapsed_time, execution_status, warehouse_name, query_type FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY(RESULT_LIMIT => 10000))
		WHERE query_tag = '{"run_id":"r1"}' AND query_type = 'SELECT' ORDER BY end_time`,
	)
	found := 0
	for _, row := range rows {
		standard, known := ids[row[0]]
		if known && !standard {
			t.Errorf("a short statement on a hybrid table is in the history: %v", row)
		}
		if known {
			found++
		}
		if row[2] != "SUCCESS" || row[3] != DefaultWarehouse {
			t.Errorf("%v", row)
		}
	}
	if found != 5 || len(rows) != 10 {
		t.Errorf("%d of 5 executions are found by their ids, %d by their tag", found, len(rows))
	}
	// The aggregates have them all, once their interval is over.
	var calls int64
	for deadline := time.Now().Add(10 * time.Second); calls != 20 &&
		time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		calls = number(
			t,
			conn,
			`SELECT COALESCE(SUM(calls), 0) FROM SNOWFLAKE.ACCOUNT_USAGE.AGGREGATE_QUERY_HISTORY WHERE query_tag = '{"run_id":"r1"}' AND query_type = 'SELECT'`,
		)
	}
	if calls != 20 {
		t.Errorf("the aggregates have %d calls", calls)
	}
}
