package snowflakeexport_test

import (
	"strings"
	"testing"
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
