package snowflakeexport_test

import (
	"strings"
	"testing"
)

// The tables of version 1, which marked not all of them.
var firstVersion = []string{
	`CREATE TABLE TEST_RESULTS (RUN_ID VARCHAR NOT NULL, RUN_NAME VARCHAR, TEMPLATE_NAME VARCHAR,
	ADAPTER VARCHAR, TABLE_NAME VARCHAR, STATUS VARCHAR, VERDICT VARCHAR, SIMULATED BOOLEAN, LOAD_MODE VARCHAR,
	START_TIME TIMESTAMP_NTZ, END_TIME TIMESTAMP_NTZ, DURATION_SECONDS FLOAT, QPS FLOAT, WAREHOUSE_NAME VARCHAR,
	WAREHOUSE_SIZE VARCHAR, CREDITS FLOAT, PRICE FLOAT, CURRENCY VARCHAR, PRICE_PER_MILLION FLOAT, CREATED_BY VARCHAR,
	FINGERPRINT VARCHAR) COMMENT = 'the team''s results'`,
	"INSERT INTO TEST_RESULTS (RUN_ID, RUN_NAME, FINGERPRINT) VALUES ('old', 'older', 'f')",
	`CREATE TABLE LOADSTONE_PARTS (RUN_ID VARCHAR NOT NULL, PART VARCHAR NOT NULL, SHA256 VARCHAR NOT NULL,
	ROW_COUNT NUMBER(18,0) NOT NULL)`,
	`CREATE TABLE WAREHOUSE_POLL_SNAPSHOTS (RUN_ID VARCHAR NOT NULL, TIMESTAMP TIMESTAMP_NTZ NOT NULL,
	ELAPSED_SECONDS FLOAT NOT NULL, WAREHOUSE_NAME VARCHAR NOT NULL, STATE VARCHAR, WAREHOUSE_TYPE VARCHAR,
	WAREHOUSE_SIZE VARCHAR, STARTED_CLUSTERS NUMBER(9,0), RUNNING NUMBER(9,0), QUEUED NUMBER(9,0),
	MIN_CLUSTER_COUNT NUMBER(9,0), MAX_CLUSTER_COUNT NUMBER(9,0), SCALING_POLICY VARCHAR)
	COMMENT = 'Loadstone table 1: what the warehouses of runs said'`,
	"ALTER TABLE WAREHOUSE_POLL_SNAPSHOTS ADD COLUMN NOTE VARCHAR",
	`INSERT INTO WAREHOUSE_POLL_SNAPSHOTS (RUN_ID, TIMESTAMP, ELAPSED_SECONDS, WAREHOUSE_NAME, NOTE)
	VALUES ('old', '2026-11-22 12:00:00', 1, 'WH', 'mine')`,
}

// TestTablesOfEarlierVersionsAreBroughtUpToDate: until then a run says that they are older. They keep their rows, what
// somebody has written about them, and columns that somebody has added; a marked one of which somebody has dropped a
// column is not written to until the schema is applied again.
func TestTablesOfEarlierVersionsAreBroughtUpToDate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	do := func(sql ...string) {
		t.Helper()
		if err := w.Account.Exec(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
	}
	do(firstVersion...)
	if _, err := w.take(t, 1); err == nil || !strings.Contains(w.book.Problem,
		"Older than version 2 of the schema: WAREHOUSE_POLL_SNAPSHOTS, TEST_RESULTS, LOADSTONE_PARTS") {
		t.Errorf("an older schema: %+v, %v", w.book, err)
	}
	if refused := w.apply(t); refused != "" {
		t.Fatal(refused)
	}
	if got := w.one(
		t,
		`SELECT (SELECT RUN_NAME FROM TEST_RESULTS) || ' ' || (SELECT NOTE FROM WAREHOUSE_POLL_SNAPSHOTS)`,
	); got !=
		"older mine" {
		t.Errorf("what was there is %s", got)
	}
	comments := `SELECT LISTAGG(COALESCE(COMMENT, ''), '|') WITHIN GROUP (ORDER BY TABLE_NAME)
		FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE'`
	if got := w.one(t, comments); strings.Count(got, "Loadstone table 2: ") != 15 ||
		!strings.Contains(got, "Loadstone table 2: the team's results") {
		t.Errorf("comments are %s", got)
	}
	w.whole()
	take := func(epoch int64) {
		t.Helper()
		w.restart()
		if _, err := w.take(t, epoch); err != nil {
			t.Error(err)
		}
	}
	if take(2); w.book.Problem != "" || !w.book.Whole {
		t.Errorf("with a column of somebody's: %+v", w.book)
	}
	do("ALTER TABLE TEST_RESULTS DROP COLUMN QPS")
	if take(3); !strings.Contains(w.book.Problem, "it has no column QPS") || w.book.Whole {
		t.Errorf("without a column: %+v", w.book)
	}
	w.apply(t)
	if take(4); w.book.Problem != "" || !w.book.Whole {
		t.Errorf("with the column again: %+v", w.book)
	}
}
