package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func matrices(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	must(t, s.CreateMatrix(ctx, engine.MatrixRun{MatrixID: "m1", Name: "tables", TemplateID: "gone",
		Labels: []string{"a", "b"}, StopOnFailure: true, CreatedBy: "anna"}))
	m, err := s.Matrix(ctx, "m1")
	must(t, err)
	if m.Name != "tables" || len(m.Labels) != 2 || m.Labels[1] != "b" || !m.StopOnFailure ||
		m.Status != engine.StatusPrepared || m.CreatedBy != "anna" || m.TemplateID != "" || !m.StartTime.IsZero() ||
		m.CreatedAt.IsZero() {
		t.Errorf("matrix %+v", m)
	}
	if _, err := s.Matrix(ctx, "m2"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a matrix that is not there: %v", err)
	}
	for i, id := range []string{"r2", "r1"} {
		run := newRun(id)
		run.MatrixMember = engine.MatrixMember{MatrixID: "m1", MatrixIndex: 1 - i, MatrixLabel: "label of " + id}
		must(t, s.CreateRun(ctx, run))
	}
	create(t, s, "other")
	rows, err := s.MatrixRuns(ctx, "m1")
	must(t, err)
	if len(rows) != 2 || rows[0].RunID != "r1" || rows[0].MatrixIndex != 0 || rows[1].MatrixLabel != "label of r2" ||
		rows[1].MatrixID != "m1" {
		t.Errorf("runs %+v", rows)
	}
	if run, err := s.Run(ctx, "other"); err != nil || run.MatrixID != "" {
		t.Errorf("a run of no matrix is in %q, %v", run.MatrixID, err)
	}
	prepared, running := []engine.Status{engine.StatusPrepared},
		[]engine.Status{engine.StatusRunning, engine.StatusCancelling}
	wantError(
		t,
		s.TransitionMatrix(ctx, store.MatrixTransition{MatrixID: "m1", From: running, To: engine.StatusCompleted, At: noon}),
		store.ErrConflict,
	)
	wantError(
		t,
		s.TransitionMatrix(ctx, store.MatrixTransition{MatrixID: "m2", From: running, To: engine.StatusCompleted, At: noon}),
		store.ErrNotFound,
	)
	begin := store.MatrixTransition{MatrixID: "m1", From: prepared, To: engine.StatusRunning, At: noon}
	must(t, s.TransitionMatrix(ctx, begin))
	wantError(t, s.TransitionMatrix(ctx, begin), store.ErrConflict)
	wantError(t, s.DeleteMatrix(ctx, "m1"), store.ErrConflict)
	live, err := s.LiveMatrices(ctx)
	must(t, err)
	if len(live) != 1 || !live[0].StartTime.Equal(noon) {
		t.Errorf("live %+v", live)
	}
	must(t, s.TransitionMatrix(ctx, store.MatrixTransition{MatrixID: "m1", From: running, To: engine.StatusCompleted,
		At: noon.Add(1)}))
	if live, err = s.LiveMatrices(ctx); err != nil || len(live) != 0 {
		t.Errorf("live %+v, %v", live, err)
	}
	must(t, s.CreateMatrix(ctx, engine.MatrixRun{MatrixID: "m0", Labels: []string{"x"}}))
	if list, err := s.ListMatrices(ctx, 1); err != nil || len(list) != 1 || list[0].MatrixID != "m0" {
		t.Errorf("newest %+v, %v", list, err)
	}
	must(t, s.DeleteMatrix(ctx, "m1"))
	if run, err := s.Run(ctx, "r1"); err != nil || run.MatrixID != "" {
		t.Errorf("a run outlives its matrix: %+v, %v", run.MatrixMember, err)
	}
	wantError(t, s.DeleteMatrix(ctx, "m1"), store.ErrNotFound)

	// Passwords in the targets of a template's matrix are sealed as that of a single target is.
	secret := "postgres://u:s3cret@db/x"
	config := newRun("t").Scenario
	config.Target = engine.Target{}
	config.Matrix = &engine.Matrix{Targets: []engine.MatrixTarget{
		{Label: "named", Target: engine.Target{Connection: engine.ConnectionRef{Name: "playground"}, Adapter: "postgres"}},
		{Label: "inline", Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: secret},
			Adapter: "postgres"}}}}
	made, err := s.CreateTemplate(ctx, store.Template{Name: "matrix", Config: config, Source: "dsn: " + secret})
	must(t, err)
	if config.Matrix.Targets[1].Connection.DSN != secret {
		t.Error("the caller's scenario was changed")
	}
	ref := made.Config.Matrix.Targets[1].Connection
	if strings.Contains(ref.DSN+made.Source, "s3cret") || ref.DSNSealed == "" ||
		made.Config.Matrix.Targets[0].Connection.Name != "playground" {
		t.Errorf("saved %+v, source %q", made.Config.Matrix, made.Source)
	}
	if _, dsn, err := s.OpenDSN(ctx, ref); err != nil || dsn.Reveal() != secret {
		t.Errorf("opened %q, %v", dsn, err)
	}
	// An edit that keeps the stars keeps the password.
	made.Config = made.Config.Clone()
	made.Config.Matrix.Targets[1].Connection.DSNSealed = ""
	changed, err := s.UpdateTemplate(ctx, made)
	must(t, err)
	if _, dsn, err := s.OpenDSN(ctx, changed.Config.Matrix.Targets[1].Connection); err != nil || dsn.Reveal() != secret {
		t.Errorf("opened after an edit %q, %v", dsn, err)
	}
}

// matrixLeases holds that a matrix is one owner's at a time, and that its owner learns what became of it.
func matrixLeases(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	prepared, live := []engine.Status{engine.StatusPrepared},
		[]engine.Status{engine.StatusRunning, engine.StatusCancelling}
	must(t, s.CreateMatrix(ctx, engine.MatrixRun{MatrixID: "m1", Labels: []string{"x"}}))
	wantError(t, s.ClaimMatrix(ctx, "none", "a", false), store.ErrNotFound)
	must(
		t,
		s.TransitionMatrix(ctx, store.MatrixTransition{MatrixID: "m1", From: prepared, To: engine.StatusRunning, At: noon,
			Owner: "a"}),
	)
	wantError(t, s.ClaimMatrix(ctx, "m1", "b", true), store.ErrLeaseHeld)
	wantError(t, s.ClaimMatrix(ctx, "m1", "a", false), store.ErrLeaseHeld)
	must(t, s.ClaimMatrix(ctx, "m1", "a", true))
	if m, err := s.Matrix(ctx, "m1"); err != nil || m.Owner != "a" || m.Status != engine.StatusRunning {
		t.Errorf("a claim leaves %+v, %v", m, err)
	}
	if expired, err := s.ExpiredMatrices(ctx); err != nil || len(expired) != 0 {
		t.Errorf("expired %+v, %v", expired, err)
	}
	// Its owner hears of what others decided; others renew nothing.
	must(t, s.TransitionMatrix(ctx, store.MatrixTransition{MatrixID: "m1", From: live, To: engine.StatusCancelling}))
	held, err := s.RenewMatrices(ctx, "a", []string{"m1", "none"})
	if err != nil || len(held) != 1 || held[0].MatrixID != "m1" || held[0].Status != engine.StatusCancelling {
		t.Errorf("held %+v, %v", held, err)
	}
	if held, err = s.RenewMatrices(ctx, "b", []string{"m1"}); err != nil || len(held) != 0 {
		t.Errorf("held by another %+v, %v", held, err)
	}
	end := store.MatrixTransition{MatrixID: "m1", From: live, To: engine.StatusCancelled, At: noon, Holder: "b"}
	wantError(t, s.TransitionMatrix(ctx, end), store.ErrLeaseHeld)
	end.Holder = "a"
	must(t, s.TransitionMatrix(ctx, end))
	wantError(t, s.TransitionMatrix(ctx, end), store.ErrConflict)
	wantError(t, s.ClaimMatrix(ctx, "m1", "a", true), store.ErrConflict)
	// What nobody holds is there for whoever asks first.
	must(t, s.CreateMatrix(ctx, engine.MatrixRun{MatrixID: "m2", Labels: []string{"x"}}))
	must(t, s.ClaimMatrix(ctx, "m2", "b", false))
	wantError(t, s.ClaimMatrix(ctx, "m2", "a", false), store.ErrLeaseHeld)
}
