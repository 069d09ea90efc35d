package snowflakeexport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/target"
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
		"Older than version 3 of the schema: WAREHOUSE_POLL_SNAPSHOTS, TEST_RESULTS, LOADSTONE_PARTS") {
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
	if got := w.one(t, comments); strings.Count(got, "Loadstone table 3: ") != 17 ||
		!strings.Contains(got, "Loadstone table 3: the team's results") {
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

// TestADeadServerDoesNotBlock: it has left its transaction open, with the run held, and files on the stage. Who takes
// the run over ends the one and removes the others at once, and leaves those of other runs and of later epochs.
func TestADeadServerDoesNotBlock(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	if _, err := w.take(t, 1); err != nil {
		t.Fatal(err)
	}
	name := w.transaction(t, 3)
	died, go_ := make(chan struct{}), make(chan struct{})
	var theirs error
	done := make(chan struct{})
	go func() {
		defer close(done)
		theirs = w.Account.InTransaction(context.WithoutCancel(t.Context()), name, func(tx target.Tx) error {
			err := tx.Exec(t.Context(), "UPDATE LOADSTONE_RUNS SET EPOCH = 3 WHERE RUN_ID = 'r'")
			close(died)
			<-go_
			// It was not dead, and goes on: what it writes now is kept by nobody.
			return errors.Join(err, tx.Exec(t.Context(), "INSERT INTO LOADSTONE_PARTS (RUN_ID, PART, SHA256, ROW_COUNT) "+
				"VALUES ('r', 'late', '', 0)"))
		})
	}()
	<-died
	folder := "loadstone/" + strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "LOADSTONE_EXPORT_"), "_3"))
	for _, path := range []string{folder + "/3/left", folder + "/40/later", "loadstone/other/3/left"} {
		if err := w.Put(t.Context(), path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	w.parts["a"] = 120
	begun := time.Now()
	if r, err := w.take(t, 4); err != nil || r.Rows != 120 {
		t.Errorf("%+v, %v", r, err)
	}
	if took := time.Since(begun); took > target.LockPatience {
		t.Errorf("it took %v", took)
	}
	close(go_)
	<-done
	if theirs == nil {
		t.Error("the transaction of the server that was thought to be dead has held")
	}
	if got := w.one(t, copies) + " " + w.one(t, "SELECT COUNT(*) FROM LOADSTONE_PARTS") + " " +
		w.one(t, "SELECT MAX(EPOCH) FROM LOADSTONE_RUNS"); got != "170 of 170 2 4" {
		t.Errorf("there are %s", got)
	}
	rs, err := w.Query(t.Context(), "LIST @~")
	if err != nil || len(rs.Rows) != 2 || rs.Rows[0][0] != folder+"/40/later" ||
		rs.Rows[1][0] != "loadstone/other/3/left" {
		t.Errorf("on the stage: %v, %v", rs, err)
	}
}

// transaction is the name of the transactions of a claim, which holds its epoch.
func (w *world) transaction(t *testing.T, epoch int64) (name string) {
	t.Helper()
	w.named = func(told string) { name = told }
	defer func() { w.named = nil }()
	if _, err := w.take(t, epoch-1); err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(name, "0123456789") + "3"
}

// TestTwoServersTakeTheSameRun at once, with epochs as the control store gives them: there is one copy, that of the
// newer one's.
func TestTwoServersTakeTheSameRun(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	for round := range int64(3) {
		w.parts = map[string]int{"a": 100 + int(round), "b": 50}
		older, newer := make(chan error, 1), make(chan error, 1)
		for i, out := range []chan error{older, newer} {
			other := *w
			other.account = &account{Account: w.Account}
			other.restart()
			go func() {
				_, err := other.take(t, 2*round+1+int64(i))
				out <- err
			}()
		}
		// The older one is disturbed at whatever it does, or was done before; what it says is kept by nobody.
		<-older
		second := <-newer
		// Whoever is disturbed is tried again, and comes through.
		for try := 0; second != nil && try < 3; try++ {
			_, second = w.take(t, 2*round+2)
		}
		if second != nil {
			t.Errorf("the newer one: %v", second)
		}
		want := []string{"150 of 150", "151 of 151", "152 of 152"}[round]
		if got := w.one(t, copies); got != want {
			t.Errorf("round %d: there are %s", round, got)
		}
	}
}

// TestTokensThatEndInAnExport: those of sessions and of the stage are renewed; a session that an administrator ends at
// any step ends the export, and the next one comes through.
func TestTokensThatEndInAnExport(t *testing.T) {
	t.Parallel()
	w := newWorldWithSchema(t)
	resp, err := http.Post("http://"+w.sim.Addr()+"/snowsim/faults", "application/json", strings.NewReader(
		`[{"kind":"expired","every":3},{"kind":"expired","on":"stage","every":2,"times":4}]`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if r, err := w.take(t, 1); err != nil || r.Rows != 150 || w.sim.Stats().Renewals == 0 {
		t.Errorf("%+v, %v, %+v", r, err, w.sim.Stats())
	}
	resp, err = http.Post("http://"+w.sim.Addr()+"/snowsim/faults", "application/json", strings.NewReader("[]"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	epoch := int64(1)
	for at := 1; at < 22; at += 4 {
		w.parts["a"]++
		w.steps = 0
		w.before = func(step int) {
			if step == at {
				w.sim.EndSessions()
			}
		}
		epoch++
		_, _ = w.take(t, epoch) // it fails, or what has ended was not needed any more
		w.before = nil
		epoch++
		if _, err := w.take(t, epoch); err != nil {
			t.Errorf("after an end at step %d: %v", at, err)
		}
		if got, want := w.one(t, copies), fmt.Sprintf("%[1]d of %[1]d", w.parts["a"]+50); got != want {
			t.Errorf("after an end at step %d there are %s, not %s", at, got, want)
		}
	}
}
