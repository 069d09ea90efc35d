package snowflakeexport_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/target"
)

// TestTablesOfEarlierVersionsAreTakenOver: they have the columns and no mark, get it, keep what somebody has written
// about them, and their rows; a marked one that somebody has changed is not written to.
func TestTablesOfEarlierVersionsAreTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.whole()
	if _, err := w.take(t, 1); err != nil {
		t.Fatal(err)
	}
	comments := `SELECT LISTAGG(COALESCE(COMMENT, ''), '|') WITHIN GROUP (ORDER BY TABLE_NAME)
		FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE'`
	marked := w.one(t, comments)
	if n := strings.Count(marked, "Loadstone table 1: "); n != 5 {
		t.Fatalf("%d tables have a mark: %s", n, marked)
	}
	do := func(sql ...string) {
		t.Helper()
		if err := w.Account.Exec(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"QUERY_EXECUTIONS", "LOADSTONE_PARTS", "LOADSTONE_RUNS", "WAREHOUSE_POLL_SNAPSHOTS"} {
		do("COMMENT ON TABLE " + name + " IS ''")
	}
	do("COMMENT ON TABLE TEST_RESULTS IS 'the team''s results'")
	w.restart()
	if r, err := w.take(t, 2); err != nil || !r.Unchanged || !w.book.Whole || w.book.Problem != "" {
		t.Errorf("%+v, %+v, %v", r, w.book, err)
	}
	if got := w.one(t, comments); strings.Count(got, "Loadstone table 1: ") != 5 ||
		!strings.Contains(got, "Loadstone table 1: the team's results") {
		t.Errorf("comments are %s", got)
	}
	do("ALTER TABLE TEST_RESULTS ADD COLUMN NOTE VARCHAR")
	w.restart()
	if _, err := w.take(t, 3); err != nil || w.book.Problem != "" {
		t.Errorf("with a column of somebody's: %+v, %v", w.book, err)
	}
	do("ALTER TABLE TEST_RESULTS DROP COLUMN QPS")
	w.restart()
	if _, err := w.take(t, 4); err != nil || !strings.Contains(w.book.Problem, "it has no column QPS") || w.book.Whole {
		t.Errorf("without a column: %+v, %v", w.book, err)
	}
}

// TestADeadServerDoesNotBlock: it has left its transaction open, with the run held, and files on the stage. Who takes
// the run over ends the one and removes the others at once, and leaves those of other runs and of later epochs.
func TestADeadServerDoesNotBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
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

// transaction is the name under which a claim of that epoch works, as the account is told.
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
	w := newWorld(t)
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
