package derived_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/loadstone-db/loadstone/engine/analytics/snowflakeexport"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestReadersSeeWhatIsInAnAccount: the last attempt counts, one that fails keeps what is known, one of an older claim
// writes nothing, and a run that is gone is forgotten.
func TestReadersSeeWhatIsInAnAccount(t *testing.T) {
	d, _, reader := open(t)
	shown := func() (text string) {
		t.Helper()
		if err := reader.QueryRow(t.Context(), `SELECT coalesce(string_agg(concat_ws(' ', run_id, connection, place, status,
			executions, views::text, problem), ';'), '') FROM rollup.exports`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, step := range []struct {
		epoch int64
		s     snowflakeexport.ExportStatus
		lost  bool
		want  string
	}{
		{2, snowflakeexport.ExportStatus{Failed: true, Problem: "away"}, false, "r sf  FAILED 0 {} away"},
		{3, snowflakeexport.ExportStatus{Place: "D.S", Executions: 7, Views: []string{"V"}}, false, "r sf D.S DONE 7 {V} "},
		{4, snowflakeexport.ExportStatus{Failed: true, Problem: "away"}, false, "r sf D.S FAILED 7 {V} away"},
		{3, snowflakeexport.ExportStatus{Place: "D.S", Executions: 9}, true, "r sf D.S FAILED 7 {V} away"},
		{5, snowflakeexport.ExportStatus{Gone: true}, false, ""},
		{4, snowflakeexport.ExportStatus{Place: "D.S"}, true, ""},
	} {
		err := d.NoteExport(t.Context(), claim(snowflakeexport.Table, "r", step.epoch), "sf", step.s)
		if errors.Is(err, store.ErrClaimLost) != step.lost || err != nil && !step.lost {
			t.Errorf("epoch %d: %v", step.epoch, err)
		}
		if got := shown(); got != step.want {
			t.Errorf("after epoch %d a reader sees %q, not %q", step.epoch, got, step.want)
		}
	}
}

// TestTheExportOfARunIsRead: what readers of rollup.exports see is what the API reads, and nothing of a run without it.
func TestTheExportOfARunIsRead(t *testing.T) {
	d, _, _ := open(t)
	read := func(run string) string {
		t.Helper()
		e, err := d.RunExport(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if a := e.Account; a != nil {
			if a.NotedAt.IsZero() {
				t.Error("the attempt has no time")
			}
			return fmt.Sprintln(e.Record == nil, a.Connection, a.Place, a.Status, a.Executions, a.Views, a.Problem)
		}
		return fmt.Sprintln(e.Record == nil, "nothing")
	}
	if got := read("r"); got != "true nothing\n" {
		t.Errorf("before the export: %s", got)
	}
	for i, s := range []snowflakeexport.ExportStatus{{Place: "D.S", Executions: 7, Views: []string{"V"}},
		{Failed: true, Problem: "away"}} {
		if err := d.NoteExport(t.Context(), claim(snowflakeexport.Table, "r", int64(i+2)), "sf", s); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := read("r"), "true sf D.S FAILED 7 [V] away\n"; got != want {
		t.Errorf("after the export %q, not %q", got, want)
	}
	if got := read("another"); got != "true nothing\n" {
		t.Errorf("another run: %s", got)
	}
}

// TestWhatIsOwedToAnAccount: a run counts as whole when its last attempt says so, and only for that connection.
func TestWhatIsOwedToAnAccount(t *testing.T) {
	d, _, _ := open(t)
	for i, step := range []struct {
		s    snowflakeexport.ExportStatus
		want bool
	}{
		{snowflakeexport.ExportStatus{Place: "D.S"}, false}, {snowflakeexport.ExportStatus{Place: "D.S", Whole: true}, true},
		{snowflakeexport.ExportStatus{Whole: true, Failed: true}, false}, {snowflakeexport.ExportStatus{Place: "D.S", Whole: true}, true},
		{snowflakeexport.ExportStatus{Gone: true}, false},
	} {
		if err := d.NoteExport(t.Context(), claim(snowflakeexport.Table, "r", int64(i+1)), "sf", step.s); err != nil {
			t.Fatal(err)
		}
		for connection, want := range map[string]bool{"sf": step.want, "other": false} {
			if whole, err := d.ExportedRuns(t.Context(), connection); err != nil || whole["r"] != want {
				t.Errorf("step %d, %s: %v, %v", i, connection, whole, err)
			}
		}
	}
}

// TestThePageOfARunIsAnswered: what the page of a run asks (ui/src/runs/taken.ts) is answered as it reads it.
func TestThePageOfARunIsAnswered(t *testing.T) {
	d, _, _ := open(t)
	run, _ := oneRun("r", 10)
	run.Parts, run.Problems = 3, []string{"a.parquet is damaged.", "b.parquet is not there."}
	c := claim("runs", "r", 1)
	if err := d.Begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.PutRun(t.Context(), c, run, held); err != nil {
		t.Fatal(err)
	}
	if err := d.NoteExport(
		t.Context(),
		claim(snowflakeexport.Table, "r", 2),
		"sf",
		snowflakeexport.ExportStatus{Place: "D.S", Executions: 7,
			Views: []string{"V"}, Problem: "no right"},
	); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		`SELECT to_json(x) AS record_problems FROM (SELECT part_problems AS problems, parts FROM rollup.runs
			WHERE run_id = 'r' AND NOT provisional) x`: `{"problems":["a.parquet is damaged.","b.parquet is not there."],"parts":3}`,
		`SELECT to_json(x) AS in_account FROM (SELECT connection, place, status, executions, views, problem
			FROM rollup.exports WHERE run_id = 'r') x`: `{"connection":"sf","place":"D.S","status":"DONE",` +
			`"executions":7,"views":["V"],"problem":"no right"}`,
	} {
		a, err := d.Query(t.Context(), sql, 1)
		if err != nil || len(a.Rows) != 1 {
			t.Fatalf("%s: %+v, %v", sql, a, err)
		}
		text, err := json.Marshal(a.Rows[0][0])
		if err != nil || string(text) != want {
			t.Errorf("%s\ngives %s, not %s (%v)", sql, text, want, err)
		}
	}
}
