package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
)

// lineup is a service of matrices in memory.
type lineup struct {
	mu  sync.Mutex
	all []matrix.State
	// made counts them, deleted ones too.
	made int
	// kept has them too, where it is not nil.
	kept matrix.Store
}

const matrixDSN = "postgres://me:hunter2@db.example/x"

func (l *lineup) Create(ctx context.Context, s engine.Scenario, by engine.Actor) (matrix.State, error) {
	if s.Matrix == nil {
		return matrix.State{}, engine.InvalidField("matrix", "is missing", "name the targets")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	state := matrix.State{MatrixRun: engine.MatrixRun{MatrixID: fmt.Sprintf("m-%d", l.made), Name: s.Name,
		Status: engine.StatusPrepared, CreatedBy: by.Name}}
	for i, target := range s.Matrix.Targets {
		run := engine.Run{
			RunID:       fmt.Sprintf("r-%d", i+1),
			Status:      engine.StatusPrepared,
			CreatedBy:   by.Name,
			CreatedByID: by.ID,
			CreatedAt:   engine.Time{Time: time.Now()},
		}
		run.Scenario.Target.Connection, run.Scenario.Target.ConnectionID = target.Connection, target.ConnectionID
		run.Scenario.Target.Connection.DSN = matrixDSN
		state.Labels = append(state.Labels, target.Label)
		state.Runs = append(state.Runs, store.RunRow{Run: run})
	}
	if l.kept != nil {
		if err := l.kept.CreateMatrix(ctx, state.MatrixRun); err != nil {
			return state, err
		}
	}
	l.all = append([]matrix.State{state}, l.all...)
	return state, nil
}

func (l *lineup) move(id string, to engine.Status) (matrix.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.all {
		if l.all[i].MatrixID == id {
			if l.all[i].Status.Terminal() {
				return matrix.State{}, &engine.Error{Code: engine.CodeConflict, Message: "The matrix is over."}
			}
			l.all[i].Status = to
			return l.all[i], nil
		}
	}
	return matrix.State{}, &engine.Error{Code: engine.CodeNotFound, Message: "There is no matrix " + id + "."}
}

func (l *lineup) Start(_ context.Context, id, _ string) (matrix.State, error) {
	return l.move(id, engine.StatusRunning)
}

func (l *lineup) Stop(_ context.Context, id, _ string) (matrix.State, error) {
	return l.move(id, engine.StatusCancelled)
}

func (l *lineup) Get(_ context.Context, id string) (matrix.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.all {
		if m.MatrixID == id {
			return m, nil
		}
	}
	return matrix.State{}, &engine.Error{Code: engine.CodeNotFound, Message: "There is no matrix " + id + "."}
}

func (l *lineup) Delete(ctx context.Context, id, _ string) error {
	if _, err := l.Get(ctx, id); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
	return nil
}

func (l *lineup) List(_ context.Context, limit int) (out []engine.MatrixRun, err error) {
	for _, m := range l.all[:min(limit, len(l.all))] {
		out = append(out, m.MatrixRun)
	}
	return out, nil
}

func (l *lineup) Report(ctx context.Context, id string, o compare.Options) (matrix.Report, error) {
	m, err := l.Get(ctx, id)
	return matrix.Report{MatrixRun: m.MatrixRun, TolerancePct: o.TolerancePct}, err
}

// TestMatrices walks a matrix through the API, from its template to its end.
func TestMatrices(t *testing.T) {
	t.Parallel()
	all := &lineup{}
	b := start(t, func(o *server.Options) { o.Matrices, all.kept = all, o.Store.(matrix.Store) })
	if got := decode[struct{ Matrices []engine.MatrixRun }](t,
		b.do("GET", "/api/matrices", nil).want(t, 200)); got.Matrices == nil || len(got.Matrices) != 0 {
		t.Errorf("an empty list is %v", got.Matrices)
	}
	source := "name: both\nmatrix:\n  targets:\n    - {label: a, connection: playground, table_name: x}\n    - {label: " +
		"b, connection: playground, table_name: y}\nworkload: {plugin: mix, duration_seconds: 5}\n"
	made := b.do("POST", "/api/matrices", map[string]any{"source": source, "start": true}).want(t, 201)
	m := decode[matrix.State](t, made)
	if m.Name != "both" || m.Status != engine.StatusRunning || len(m.Runs) != 2 || strings.Join(m.Labels, ",") != "a,b" {
		t.Fatalf("%+v", m)
	}
	path := "/api/matrices/" + m.MatrixID
	for _, a := range []answer{made, b.do("GET", path, nil).want(t, 200), b.do("POST", path+"/start", nil).want(t, 200)} {
		if strings.Contains(string(a.body), "hunter2") {
			t.Errorf("a password leaves the server: %s", a.body)
		}
	}
	if r := decode[matrix.Report](t,
		b.do("GET", path+"/report?tolerance_pct=2.5", nil).want(t, 200)); r.TolerancePct != 2.5 || len(r.Labels) != 2 {
		t.Errorf("%+v", r)
	}
	if got := decode[struct{ Matrices []engine.MatrixRun }](t,
		b.do("GET", "/api/matrices?limit=1", nil).want(t, 200)); len(got.Matrices) != 1 ||
		got.Matrices[0].MatrixID != m.MatrixID {
		t.Errorf("%+v", got)
	}
	if stopped := decode[matrix.State](t,
		b.do("POST", path+"/stop", nil).want(t, 200)); stopped.Status != engine.StatusCancelled {
		t.Errorf("%s", stopped.Status)
	}
	b.do("POST", path+"/stop", nil).problem(t, 409, engine.CodeConflict)
	b.do("GET", "/api/matrices/nothing", nil).problem(t, 404, engine.CodeNotFound)
	b.do("GET", "/api/matrices/%00", nil).problem(t, 404, engine.CodeNotFound)
	b.do("POST", "/api/matrices/nothing/start", nil).problem(t, 404, engine.CodeNotFound)
	b.do("GET", "/api/matrices?limit=0", nil).problem(t, 422, engine.CodeInvalid)
	b.do("GET", path+"/report?tolerance_pct=-1", nil).problem(t, 422, engine.CodeInvalid)
	b.do("POST", "/api/matrices", map[string]any{"scenario": scenario("single")}).problem(t, 422, engine.CodeInvalid)
	b.do("GET", "/api/matrices", nil, "Authorization", "Bearer nobody").problem(t, 401, engine.CodeUnauthorized)
	b.do("DELETE", path, nil).want(t, 204)
	b.do("DELETE", path, nil).problem(t, 404, engine.CodeNotFound)
	var audited []string
	for _, action := range b.store.actions() {
		if strings.HasPrefix(action, "matrix.") {
			audited = append(audited, action)
		}
	}
	if got := strings.Join(audited, " "); got != "matrix.create matrix.start matrix.start matrix.stop matrix.delete" {
		t.Errorf("audited: %s", got)
	}
}

func (*lineup) Halt() []string { return nil }
