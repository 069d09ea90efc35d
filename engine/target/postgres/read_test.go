package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestAReadCannotWrite: whatever its text is, for as long as it may take, and as the
// role that the connection names.
func TestAReadCannotWrite(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).NewDatabase(t)
	open := func(dsn string) target.Database {
		db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	db := open(dsn)
	if err := db.Exec(t.Context(), "CREATE TABLE t (n int)", "INSERT INTO t VALUES (1)",
		"CREATE FUNCTION sly() RETURNS int LANGUAGE sql AS 'DELETE FROM t RETURNING n'", "CREATE SEQUENCE s",
		"DROP ROLE IF EXISTS least_rights", "CREATE ROLE least_rights", "CREATE TABLE open_table AS SELECT 1 AS n",
		"GRANT SELECT ON open_table TO least_rights"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Exec(t.Context(), "DROP OWNED BY least_rights", "DROP ROLE least_rights") })
	for _, sql := range []string{"SELECT sly()", "WITH d AS (DELETE FROM t RETURNING 1) SELECT * FROM d",
		"SELECT nextval('s')", "INSERT INTO t VALUES (2)", "SELECT 1; DELETE FROM t", "COMMIT; DELETE FROM t",
		"CREATE TABLE u (n int)"} {
		if _, err := target.Read(t.Context(), db, sql, time.Second); err == nil {
			t.Errorf("%s was executed", sql)
		}
	}
	// Ending the transaction does not end the session's reading: it is not given back open.
	for _, sql := range []string{"COMMIT", "ROLLBACK"} {
		_, _ = target.Read(t.Context(), db, sql, time.Second)
	}
	rs, err := target.Read(t.Context(), db,
		"SELECT count(*), current_setting('transaction_read_only'), current_setting('default_transaction_read_only'), "+
			"current_setting('statement_timeout'), current_setting('lock_timeout') FROM t", 8*time.Second)
	if err != nil || rs.Rows[0][0] != int64(1) || rs.Rows[0][1] != "on" || rs.Rows[0][2] != "on" ||
		rs.Rows[0][3] != "8s" || rs.Rows[0][4] != "5s" {
		t.Errorf("%v, %v", rs, err)
	}
	begin := time.Now()
	if _, err := target.Read(t.Context(), db, "SELECT pg_sleep(20)", 200*time.Millisecond); err == nil ||
		time.Since(begin) > 5*time.Second {
		t.Errorf("a query without end took %v: %v", time.Since(begin), err)
	}
	if rs, err := db.Query(t.Context(),
		"SELECT current_setting('default_transaction_read_only'), current_setting('statement_timeout')"); err != nil ||
		rs.Rows[0][0] != "off" || rs.Rows[0][1] != "0" {
		t.Errorf("the session keeps what was set for reading: %v, %v", rs, err)
	}
	least := open(dsn + " inspect_role=least_rights")
	if rs, err := target.Read(t.Context(), least, "SELECT current_user::text, n FROM open_table",
		time.Second); err != nil || rs.Rows[0][0] != "least_rights" {
		t.Errorf("%v, %v", rs, err)
	}
	if _, err := target.Read(t.Context(), least, "SELECT n FROM t", time.Second); err == nil ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("beyond its rights: %v", err)
	}
	if rs, err := least.Query(t.Context(), "SELECT current_user::text"); err != nil || rs.Rows[0][0] == "least_rights" {
		t.Errorf("the load is %v, %v", rs, err)
	}
	if _, err := target.Read(t.Context(), open(dsn+" inspect_role=nobody_there"), "SELECT 1", time.Second); err == nil ||
		!strings.Contains(err.Error(), `"nobody_there"`) {
		t.Errorf("%v", err)
	}
}
