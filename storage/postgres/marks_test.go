package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// Marks adds, changes and deletes marks, and has them go with their run.
func Marks(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	for _, id := range []string{"run-1", "run-2"} {
		run := engine.Run{RunID: id, ResultID: id, RunName: id, Status: engine.StatusPrepared, Phase: engine.PhasePreparing}
		if err := s.CreateRun(ctx, run); err != nil {
			t.Fatal(err)
		}
	}
	// The page knows a moment to the millisecond, a store to the microsecond.
	at := func(second int) engine.Time {
		return engine.At(time.Date(2026, 11, 1, 12, 0, second, 5e6+7e3, time.UTC))
	}
	later, err := s.AddMark(ctx, engine.Mark{RunID: "run-1", At: at(9), Text: " vacuum \x00<b>", MadeBy: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.AddMark(ctx, engine.Mark{RunID: "run-1", At: at(3), Text: "index created", MadeBy: "bob"})
	if err != nil || first.MarkID == later.MarkID || first.MarkID == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	list, err := s.ListMarks(ctx, "run-1")
	if err != nil || len(list) != 2 || list[0] != first || list[1] != later {
		t.Fatalf("%+v, %v", list, err)
	}
	if m := list[1]; m.Text != strings.TrimSpace(store.CleanText(" vacuum \x00<b>")) || m.MadeBy != "ada" ||
		!m.At.Equal(at(9).Time) || m.MadeAt.IsZero() || m.ChangedBy != "ada" {
		t.Errorf("%+v", m)
	}
	changed := first
	changed.At, changed.Text, changed.ChangedBy = at(12), "index created, concurrently", "eve"
	changed, before, err := s.ChangeMark(ctx, changed, nil)
	if err != nil || before != first || changed.MadeBy != "bob" || changed.ChangedBy != "eve" {
		t.Fatalf("%+v, %v", changed, err)
	}
	if list, err = s.ListMarks(ctx, "run-1"); err != nil || len(list) != 2 || list[1] != changed {
		t.Errorf("%+v, %v", list, err)
	}
	other := changed
	other.RunID = "run-2"
	if _, _, err = s.ChangeMark(ctx, other, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the mark of another run is changed: %v", err)
	}
	if _, err = s.DeleteMark(ctx, "run-2", changed.MarkID, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the mark of another run is deleted: %v", err)
	}
	// Of those who change a mark that they all saw alike one does.
	seen := &store.ExpectedMark{Text: changed.Text, At: engine.At(changed.At.Truncate(time.Millisecond))}
	next := changed
	next.ChangedBy = "ada"
	for _, text := range []string{"index dropped", "vacuum", "analyze", "index built", "index dropped"} {
		next.Text = text
		oneWins(t, func() error {
			_, _, err := s.ChangeMark(ctx, next, seen)
			return err
		})
		seen.Text = text
	}
	for name, was := range map[string]store.ExpectedMark{"another text": {Text: "x", At: next.At},
		"another moment": {Text: next.Text, At: engine.At(next.At.Add(time.Millisecond))}} {
		if _, _, err = s.ChangeMark(ctx, changed, &was); !errors.Is(err, store.ErrConflict) ||
			!strings.Contains(err.Error(), "ada") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err = s.DeleteMark(ctx, "run-1", changed.MarkID, &was); !errors.Is(err, store.ErrConflict) ||
			!strings.Contains(err.Error(), "ada") {
			t.Errorf("%s is deleted: %v", name, err)
		}
	}
	if list, err = s.ListMarks(ctx, "run-1"); err != nil || len(list) != 2 || list[1].Text != "index dropped" ||
		list[1].ChangedBy != "ada" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, bad := range []engine.Mark{{RunID: "run-1", At: at(1)}, {RunID: "run-1", Text: "x"},
		{RunID: "run-1", At: at(1), Text: strings.Repeat("ä", store.MaxMarkText+1)}} {
		if _, err = s.AddMark(ctx, bad); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err = s.AddMark(ctx, engine.Mark{RunID: "nobody", At: at(1), Text: "x"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a mark of no run: %v", err)
	}
	markLimit(t, s, at(1))
	if gone, err := s.DeleteMark(ctx, "run-1", changed.MarkID, seen); err != nil || gone.Text != "index dropped" {
		t.Fatalf("%+v, %v", gone, err)
	}
	if list, err = s.ListMarks(ctx, "run-1"); err != nil || len(list) != store.MaxMarks-1 {
		t.Errorf("%d left, %v", len(list), err)
	}
	if err = s.DeleteRun(ctx, "run-1"); err != nil {
		t.Fatal(err)
	}
	if list, err = s.ListMarks(ctx, "run-1"); err != nil || len(list) != 0 {
		t.Errorf("%d after the run, %v", len(list), err)
	}
}

// markLimit marks a run that has two marks until it takes no more.
func markLimit(t *testing.T, s *postgres.Store, at engine.Time) {
	t.Helper()
	for range store.MaxMarks - 2 {
		if _, err := s.AddMark(t.Context(), engine.Mark{RunID: "run-1", At: at, Text: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.AddMark(t.Context(), engine.Mark{RunID: "run-1", At: at, Text: "x"})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("one too many: %v", err)
	}
}
