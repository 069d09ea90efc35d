package derived_test

import (
	"errors"
	"testing"

	"github.com/loadstone-db/loadstone/engine/export"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestReadersSeeWhatIsInAnAccount: the last attempt counts, one that fails keeps what is known, one of an older claim
// writes nothing, and a run that is gone is forgotten.
func TestReadersSeeWhatIsInAnAccount(t *testing.T) {
	t.Parallel()
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
		s     export.Standing
		lost  bool
		want  string
	}{
		{2, export.Standing{Failed: true, Problem: "away"}, false, "r sf  FAILED 0 {} away"},
		{3, export.Standing{Place: "D.S", Executions: 7, Views: []string{"V"}}, false, "r sf D.S DONE 7 {V} "},
		{4, export.Standing{Failed: true, Problem: "away"}, false, "r sf D.S FAILED 7 {V} away"},
		{3, export.Standing{Place: "D.S", Executions: 9}, true, "r sf D.S FAILED 7 {V} away"},
		{5, export.Standing{Gone: true}, false, ""},
		{4, export.Standing{Place: "D.S"}, true, ""},
	} {
		err := d.NoteExport(t.Context(), claim(export.Table, "r", step.epoch), "sf", step.s)
		if errors.Is(err, store.ErrClaimLost) != step.lost || err != nil && !step.lost {
			t.Errorf("epoch %d: %v", step.epoch, err)
		}
		if got := shown(); got != step.want {
			t.Errorf("after epoch %d a reader sees %q, not %q", step.epoch, got, step.want)
		}
	}
}
