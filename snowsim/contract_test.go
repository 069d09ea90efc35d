package snowsim

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestDescribeOnlyNeedsNoValues: a statement with ? is described before anybody knows what they are.
func TestDescribeOnlyNeedsNoValues(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, whole).DSN()))
	exec(t, db, "CREATE TABLE t (id NUMBER(38,0), note VARCHAR(100), at TIMESTAMP_NTZ)")
	describe := gosnowflake.WithDescribeOnly(t.Context())
	for _, query := range []string{"SELECT id, note FROM t WHERE id = ?",
		"SELECT id, note FROM t WHERE id BETWEEN ? AND ? AND note LIKE ? LIMIT ?",
		"SELECT id, note FROM t WHERE at > ? ORDER BY id LIMIT ? OFFSET ?",
		"SELECT id + ? AS id, note FROM t"} {
		rows, err := db.QueryContext(describe, query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		names, _ := rows.Columns()
		if strings.Join(names, " ") != "ID NOTE" || rows.Next() || rows.Err() != nil {
			t.Errorf("%s has the columns %v, %v", query, names, rows.Err())
		}
		_ = rows.Close()
	}
	for _, sql := range []string{"INSERT INTO t VALUES (?, ?, ?)", "UPDATE t SET note = ? WHERE id = ?",
		"DELETE FROM t WHERE id = ?"} {
		rows, err := db.QueryContext(describe, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "SELECT id FROM t WHERE id = ?"); err == nil ||
		!strings.Contains(err.Error(), "not set") {
		t.Errorf("executing without a value: %v", err)
	}
}

func TestLockTimeoutEndsAWait(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, whole).DSN()))
	exec(t, db, "CREATE HYBRID TABLE h (id NUMBER(38,0) PRIMARY KEY, n NUMBER(38,0))")
	exec(t, db, "INSERT INTO h VALUES (1, 0)")
	holder, waiter := single(t, db), single(t, db)
	exec(t, holder, "BEGIN")
	exec(t, holder, "UPDATE h SET n = 1 WHERE id = 1")
	for _, c := range []struct {
		set   string
		least time.Duration
	}{{"LOCK_TIMEOUT = 0", 0}, {"LOCK_TIMEOUT = 2", 2 * time.Second}, {"HYBRID_TABLE_LOCK_TIMEOUT = 1", time.Second}} {
		exec(t, waiter, "ALTER SESSION SET "+c.set)
		begun := time.Now()
		_, err := waiter.ExecContext(t.Context(), "UPDATE h SET n = 2 WHERE id = 1")
		if took := time.Since(begun); code(err) != 625 || took < c.least || took > c.least+10*time.Second {
			t.Errorf("%s: after %v: %v", c.set, took, err)
		}
	}
	exec(t, holder, "COMMIT")
	exec(t, waiter, "UPDATE h SET n = 2 WHERE id = 1")
}

func TestHybridTablesRefuseWhatTheyCannotHave(t *testing.T) {
	t.Parallel()
	db := open(t, config(t, start(t, whole).DSN()))
	exec(t, db, "CREATE HYBRID TABLE h (id NUMBER(38,0) PRIMARY KEY, a NUMBER(38,0), v VARIANT, INDEX by_a (a))")
	for _, sql := range []string{
		"ALTER TABLE h CLUSTER BY (a)", "ALTER TABLE h DROP PRIMARY KEY", "ALTER TABLE h DROP COLUMN id",
		"CREATE HYBRID TABLE k (id NUMBER PRIMARY KEY, a NUMBER) CLUSTER BY (a)",
		"CREATE HYBRID TABLE k (id NUMBER PRIMARY KEY, v VARIANT, INDEX by_v (v))",
		"CREATE HYBRID TABLE k (id NUMBER PRIMARY KEY, a NUMBER, INDEX one (a), INDEX two (a))",
		"CREATE HYBRID TABLE k (id NUMBER PRIMARY KEY, a NUMBER, b NUMBER, INDEX one (a), INDEX one (b))",
	} {
		if _, err := db.ExecContext(t.Context(), sql); err == nil {
			t.Errorf("it takes %s", sql)
		}
	}
	exec(t, db, "ALTER TABLE h ADD COLUMN note VARCHAR(10)")
	exec(t, db, "INSERT INTO h (id, a, note) VALUES (1, 2, 'x')")
	if n := number(t, db, "SELECT COUNT(*) FROM h WHERE note = 'x'"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestTheHistoryOutlivesTheProcess, where it has a file.
func TestTheHistoryOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	postgres, file := pgtest.Start(t).NewDatabase(t), filepath.Join(t.TempDir(), "history.jsonl")
	life := func() (*Server, *sql.DB) {
		s := start(t, func(o *Options) {
			whole(o)
			o.Postgres, o.HistoryFile, o.History = postgres, file, history.Options{Short: -1}
		})
		return s, open(t, config(t, s.DSN()))
	}
	const found = "SELECT COUNT(*) FROM TABLE(INFORMATION_SCHEMA.QUERY_HISTORY()) WHERE QUERY_TEXT LIKE 'INSERT INTO t " +
		"VALUES%'"
	s, db := life()
	exec(t, db, "CREATE TABLE t (id NUMBER(38,0))")
	for i := range 20 {
		exec(t, db, "INSERT INTO t VALUES (?)", i)
	}
	_ = db.Close()
	s.Close()
	for range 2 { // the second life writes on, and the third reads both
		s, db = life()
		exec(t, db, "INSERT INTO t VALUES (?)", 99)
		_ = db.Close()
		s.Close()
	}
	_, db = life()
	if n := number(t, db, found); n != 22 {
		t.Errorf("%d executions are found, not 22", n)
	}
}

// TestTheTimeScaleShortensTheLag of the history.
func TestTheTimeScaleShortensTheLag(t *testing.T) {
	h := scaledHistory(Options{TimeScale: 10,
		History: history.Options{Lag: 20 * time.Second, AggregateLag: 30 * time.Second}})
	if h.Lag != 2*time.Second || h.AggregateLag != 3*time.Second {
		t.Errorf("%v and %v", h.Lag, h.AggregateLag)
	}
}
