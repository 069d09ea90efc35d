package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore is a store of matrices and an orchestrator whose runs take ten seconds
// each, or end as their table's name says.
type fakeStore struct {
	mu            sync.Mutex
	matrices      map[string]engine.MatrixRun
	leases        map[string]time.Time
	runs          []*fakeRun
	maxConcurrent int // runs that were live at once
	startAttempts int // how often a run was asked for that waits for the nodes
	down          error
}

type fakeRun struct {
	engine.Run
	startedAt time.Time
	stop      bool
}

const (
	runDuration   = 10 * time.Second
	drainDuration = time.Second
)

func (w *fakeStore) CreateMatrix(_ context.Context, m engine.MatrixRun) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.Status = engine.StatusPrepared
	w.matrices[m.MatrixID] = m
	return nil
}

func (w *fakeStore) Matrix(_ context.Context, id string) (engine.MatrixRun, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.matrices[id]
	if !ok {
		return m, store.ErrNotFound
	}
	return m, nil
}

func (w *fakeStore) ListMatrices(context.Context, int) ([]engine.MatrixRun, error) { return nil, nil }

func (w *fakeStore) LiveMatrices(context.Context) (list []engine.MatrixRun, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.matrices {
		if m.Status == engine.StatusRunning || m.Status == engine.StatusCancelling {
			list = append(list, m)
		}
	}
	return list, nil
}

func (w *fakeStore) MatrixRuns(_ context.Context, id string) (list []store.RunRow, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		if r.MatrixID == id {
			row := store.RunRow{Run: r.now()}
			row.Waiting = nil // which a list of runs does not say
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b store.RunRow) int { return a.MatrixIndex - b.MatrixIndex })
	return list, nil
}

func (w *fakeStore) TransitionMatrix(_ context.Context, move store.MatrixTransition) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		return w.down
	}
	m, ok := w.matrices[move.MatrixID]
	switch {
	case !ok:
		return store.ErrNotFound
	case move.Holder != "" && m.Owner != move.Holder:
		return store.ErrLeaseHeld
	case !slices.Contains(move.From, m.Status):
		return store.ErrConflict
	}
	m.Status, m.EndTime = move.To, engine.At(move.At)
	if move.Owner != "" {
		m.Owner, w.leases[m.MatrixID] = move.Owner, time.Now().Add(store.LeaseDuration)
	}
	w.matrices[move.MatrixID] = m
	return nil
}

func (w *fakeStore) ClaimMatrix(_ context.Context, id, owner string, reclaim bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.matrices[id]
	switch {
	case w.down != nil:
		return w.down
	case !ok:
		return store.ErrNotFound
	case m.Status.Terminal():
		return store.ErrConflict
	case time.Now().Before(w.leases[id]) && (!reclaim || m.Owner != owner):
		return store.ErrLeaseHeld
	}
	m.Owner, w.leases[id] = owner, time.Now().Add(store.LeaseDuration)
	w.matrices[id] = m
	return nil
}

func (w *fakeStore) RenewMatrices(_ context.Context, owner string, ids []string) (list []engine.MatrixRun, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		return nil, w.down
	}
	for _, id := range ids {
		if m := w.matrices[id]; m.Owner == owner {
			w.leases[id] = time.Now().Add(store.LeaseDuration)
			list = append(list, m)
		}
	}
	return list, nil
}

func (w *fakeStore) ExpiredMatrices(ctx context.Context) (list []engine.MatrixRun, err error) {
	live, err := w.LiveMatrices(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down != nil {
		return nil, w.down
	}
	for _, m := range live {
		if time.Now().After(w.leases[m.MatrixID]) {
			list = append(list, m)
		}
	}
	return list, err
}

func (w *fakeStore) DeleteMatrix(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.matrices, id)
	return nil
}

// now is the run as it stands at this moment.
func (r *fakeRun) now() engine.Run {
	out := r.Run
	if out.Status != engine.StatusRunning {
		return out
	}
	switch since := time.Since(r.startedAt); {
	case r.stop && since >= drainDuration:
		out.Status = engine.StatusCancelled
	case r.stop:
		out.Status = engine.StatusCancelling
	case strings.HasPrefix(out.Scenario.Target.TableName, "fails"):
		out.Status, out.StopReason = engine.StatusFailed, engine.StopSetupFailure
	case since >= runDuration:
		out.Status = engine.StatusCompleted
		if out.Scenario.Target.TableName == "enriched" {
			out.Phase = engine.PhaseProcessing
		}
	}
	return out
}

func (w *fakeStore) CreateMember(
	_ context.Context,
	s engine.Scenario,
	_ engine.Actor,
	place engine.MatrixMember,
) (engine.Run,
	error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Target.TableName == "refused" {
		return engine.Run{}, engine.InvalidField("target.table_name", "is refused", "")
	}
	r := &fakeRun{Run: engine.Run{RunID: fmt.Sprintf("run-%d", len(w.runs)), RunName: s.Name, Scenario: s,
		Status: engine.StatusPrepared, MatrixMember: place}}
	w.runs = append(w.runs, r)
	return r.Run, nil
}

func (w *fakeStore) find(id string) *fakeRun {
	for _, r := range w.runs {
		if r.RunID == id {
			return r
		}
	}
	return nil
}

func (w *fakeStore) Start(_ context.Context, id, _ string) (engine.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.find(id)
	if r.Scenario.Target.TableName == "cannot start" {
		return engine.Run{}, &engine.Error{Code: engine.CodeUnavailable, Message: "There is no node."}
	}
	if r.Scenario.Target.TableName == "waits" {
		w.startAttempts++
		r.Waiting = &engine.Waiting{Reason: "waits for room"}
		time.AfterFunc(runDuration, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			r.Waiting, r.Status, r.startedAt = nil, engine.StatusRunning, time.Now()
		})
		return r.Run, nil
	}
	r.Status, r.startedAt = engine.StatusRunning, time.Now()
	live := 0
	for _, x := range w.runs {
		if x.now().Status.Live() {
			live++
		}
	}
	w.maxConcurrent = max(w.maxConcurrent, live)
	return r.Run, nil
}

func (w *fakeStore) Stop(_ context.Context, id, _ string) (engine.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.find(id)
	if r.Status == engine.StatusPrepared {
		r.Status = engine.StatusCancelled
	} else if !r.stop {
		r.stop, r.startedAt = true, time.Now()
	}
	return r.Run, nil
}

func (w *fakeStore) Cancel(_ context.Context, id string, _ engine.StopReason, sentence string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.find(id)
	r.Status, r.CancellationReason = engine.StatusCancelled, &sentence
	return nil
}

func (w *fakeStore) Delete(_ context.Context, id, _ string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = slices.DeleteFunc(w.runs, func(r *fakeRun) bool { return r.RunID == id })
	return nil
}

func (w *fakeStore) Detail(_ context.Context, id string) (engine.RunDetail, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.find(id)
	if r == nil {
		return engine.RunDetail{}, &engine.Error{Code: engine.CodeNotFound, Message: "There is no such run."}
	}
	d := engine.RunDetail{Run: r.now()}
	if d.Status == engine.StatusCompleted {
		d.Simulated = r.Scenario.Target.TableName == "simulated"
		d.Summary = &engine.Summary{RunID: id, Passed: true, Figures: engine.Figures{Operations: 10}}
	}
	return d, nil
}

func (w *fakeStore) Compare(_ context.Context, a, b []string, _ compare.Options) (compare.Comparison, error) {
	return compare.Comparison{Verdict: compare.Better, Notes: []string{a[0] + " " + b[0]}}, nil
}

func newWorld() (*fakeStore, *Service) {
	w := &fakeStore{matrices: map[string]engine.MatrixRun{}, leases: map[string]time.Time{}}
	return w, w.server("a")
}

// server is another process on the world's store.
func (w *fakeStore) server(owner string) *Service {
	s := New(Options{Store: w, Runs: w, Log: zerolog.Nop(), Owner: owner, TakesOver: true})
	if err := s.Open(context.Background()); err != nil {
		panic(err)
	}
	return s
}

func tables(stop bool, names ...string) engine.Scenario {
	m := &engine.Matrix{StopOnFailure: stop}
	for i, n := range names {
		m.Targets = append(m.Targets,
			engine.MatrixTarget{Label: fmt.Sprintf("%c", 'a'+i), Target: engine.Target{TableName: n}})
	}
	return engine.Scenario{Name: "tables", Workload: engine.Workload{Seed: 7}, Matrix: m}
}

func (w *fakeStore) statuses() (list []engine.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		list = append(list, r.now().Status)
	}
	return list
}

// TestARunThatWaitsIsAskedForOnce: it is in the queue for the nodes then, and the matrix says what it waits for.
func TestARunThatWaitsIsAskedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld()
		defer func() { _ = s.Close(t.Context()) }()
		m, err := s.Create(t.Context(), tables(false, "x", "waits"), engine.Actor{Name: "anna"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Start(t.Context(), m.MatrixID, "anna"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(runDuration + runDuration/2)
		if m, err = s.Get(t.Context(), m.MatrixID); err != nil || m.Runs[0].Waiting != nil || m.Runs[1].Waiting == nil ||
			m.Runs[1].Waiting.Reason != "waits for room" {
			t.Errorf("%+v, %v", m.Runs, err)
		}
		if m, err = s.Wait(
			t.Context(),
			m.MatrixID,
		); err != nil || m.Status != engine.StatusCompleted ||
			w.startAttempts != 1 {
			t.Errorf("%s, asked %d times: %v", m.Status, w.startAttempts, err)
		}
	})
}

// TestTheNextRunIsJudgedWhenItBegins: what may not begin any more is cancelled with the reason; while that is not
// known, it waits.
func TestTheNextRunIsJudgedWhenItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld()
		defer func() { _ = s.Close(t.Context()) }()
		var second string
		begun := time.Now()
		s.opts.Authorizer = authorizer(func(runID string) error {
			switch {
			case runID != second:
				return nil
			case time.Since(begun) < 2*runDuration:
				return &engine.Error{Code: engine.CodeUnavailable, Message: "The control store does not answer."}
			}
			return &engine.Error{Code: engine.CodeForbidden, Message: "It was not begun: anna is locked out."}
		})
		m, err := s.Create(t.Context(), tables(false, "x", "y", "z"), engine.Actor{Name: "anna"})
		if err != nil {
			t.Fatal(err)
		}
		second = m.Runs[1].RunID
		if _, err := s.Start(t.Context(), m.MatrixID, "anna"); err != nil {
			t.Fatal(err)
		}
		m, err = s.Wait(t.Context(), m.MatrixID)
		want := []engine.Status{engine.StatusCompleted, engine.StatusCancelled, engine.StatusCompleted}
		if err != nil || m.Status != engine.StatusFailed || !slices.Equal(w.statuses(), want) ||
			*m.Runs[1].CancellationReason != "It was not begun: anna is locked out." {
			t.Errorf("%s, %v, %v", m.Status, w.statuses(), err)
		}
		if took := time.Since(begun); took < 3*runDuration {
			t.Errorf("it did not wait for an answer: %v", took)
		}
	})
}

func TestTargetsRunOneAfterAnother(t *testing.T) {
	for _, c := range []struct {
		name     string
		stop     bool
		tables   []string
		outcome  engine.Status
		statuses []engine.Status
		takes    time.Duration
	}{
		{"all complete", false, []string{"x", "y", "z"}, engine.StatusCompleted,
			[]engine.Status{engine.StatusCompleted, engine.StatusCompleted, engine.StatusCompleted}, 3 * runDuration},
		{"one fails", false, []string{"x", "fails", "z"}, engine.StatusFailed,
			[]engine.Status{engine.StatusCompleted, engine.StatusFailed, engine.StatusCompleted}, 2 * runDuration},
		{"one fails and stops the rest", true, []string{"fails", "y", "z"}, engine.StatusFailed,
			[]engine.Status{engine.StatusFailed, engine.StatusCancelled, engine.StatusCancelled}, 0},
		{"one cannot start", false, []string{"cannot start", "y"}, engine.StatusFailed,
			[]engine.Status{engine.StatusCancelled, engine.StatusCompleted}, runDuration},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld()
				defer func() { _ = s.Close(t.Context()) }()
				m, err := s.Create(t.Context(), tables(c.stop, c.tables...), engine.Actor{Name: "anna"})
				if err != nil || len(m.Runs) != len(c.tables) || m.Status != engine.StatusPrepared ||
					m.Runs[1].Scenario.Name != "tables · b" || m.Runs[1].Scenario.Workload.Seed != 7 ||
					m.Runs[1].Scenario.Matrix != nil {
					t.Fatalf("%+v, %v", m, err)
				}
				begun := time.Now()
				if _, err := s.Start(t.Context(), m.MatrixID, "anna"); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Start(t.Context(), m.MatrixID, "anna"); !engine.HasCode(err, engine.CodeConflict) {
					t.Errorf("started twice: %v", err)
				}
				if err := s.Delete(t.Context(), m.MatrixID, "anna"); !engine.HasCode(err, engine.CodeConflict) {
					t.Errorf("deleted under way: %v", err)
				}
				got, err := s.Wait(t.Context(), m.MatrixID)
				if err != nil || got.Status != c.outcome || !slices.Equal(w.statuses(), c.statuses) {
					t.Errorf("%s, runs %v, %v", got.Status, w.statuses(), err)
				}
				if took := time.Since(begun); took < c.takes || took > c.takes+2*time.Second {
					t.Errorf("took %v, and %v are for the runs", took, c.takes)
				}
				if w.maxConcurrent > 1 {
					t.Errorf("%d ran at once", w.maxConcurrent)
				}
			})
		})
	}
}

// TestEnrichmentHoldsNothingUp: the figures of a run are there long before its enrichment ends.
func TestEnrichmentHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld()
		defer func() { _ = s.Close(t.Context()) }()
		m, err := s.Create(t.Context(), tables(false, "enriched", "x", "enriched"), engine.Actor{Name: "anna"})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := s.Start(t.Context(), m.MatrixID, "anna"); err != nil {
			t.Fatal(err)
		}
		got, err := s.Wait(t.Context(), m.MatrixID)
		if took := time.Since(
			begun,
		); err != nil || got.Status != engine.StatusCompleted ||
			took > 3*runDuration+3*time.Second ||
			w.maxConcurrent > 1 {
			t.Errorf("%s after %v, %d at once, %v", got.Status, took, w.maxConcurrent, err)
		}
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld()
		defer func() { _ = s.Close(t.Context()) }()
		m, _ := s.Create(t.Context(), tables(false, "x", "y", "z"), engine.Actor{Name: "anna"})
		_, _ = s.Start(t.Context(), m.MatrixID, "anna")
		time.Sleep(runDuration + runDuration/2)
		begun := time.Now()
		if state, err := s.Stop(t.Context(), m.MatrixID, "bert"); err != nil || state.Status != engine.StatusCancelling {
			t.Fatalf("%+v, %v", state, err)
		}
		got, err := s.Wait(t.Context(), m.MatrixID)
		want := []engine.Status{engine.StatusCompleted, engine.StatusCancelled, engine.StatusCancelled}
		if err != nil || got.Status != engine.StatusCancelled || !slices.Equal(w.statuses(), want) {
			t.Errorf("%s, runs %v, %v", got.Status, w.statuses(), err)
		}
		if took := time.Since(begun); took > drainDuration+time.Second {
			t.Errorf("stopping took %v", took)
		}
		if _, err := s.Stop(t.Context(), m.MatrixID, "bert"); !engine.HasCode(err, engine.CodeConflict) {
			t.Errorf("stopped twice: %v", err)
		}
		// One that has not been started is cancelled too.
		m, _ = s.Create(t.Context(), tables(false, "x"), engine.Actor{Name: "anna"})
		if _, err := s.Stop(t.Context(), m.MatrixID, "bert"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Wait(t.Context(), m.MatrixID); err != nil || got.Status != engine.StatusCancelled ||
			got.Runs[0].Status != engine.StatusCancelled {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestAnotherProcessGoesOn: the runs that were not started are, and those that ended stay.
func TestAnotherProcessGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld()
		m, _ := s.Create(t.Context(), tables(false, "x", "y", "z"), engine.Actor{Name: "anna"})
		_, _ = s.Start(t.Context(), m.MatrixID, "anna")
		time.Sleep(runDuration + time.Second)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.runs[1].Status = engine.StatusFailed // as the orchestrator recovers it
		w.mu.Unlock()
		next := New(s.opts)
		defer func() { _ = next.Close(t.Context()) }()
		if err := next.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := next.Wait(t.Context(), m.MatrixID)
		want := []engine.Status{engine.StatusCompleted, engine.StatusFailed, engine.StatusCompleted}
		if err != nil || got.Status != engine.StatusFailed || !slices.Equal(w.statuses(), want) {
			t.Errorf("%s, runs %v, %v", got.Status, w.statuses(), err)
		}
	})
}

// TestATargetThatIsRefused: no run is left, and the field is that of the matrix.
func TestATargetThatIsRefused(t *testing.T) {
	w, s := newWorld()
	defer func() { _ = s.Close(context.Background()) }()
	_, err := s.Create(t.Context(), tables(false, "x", "refused"), engine.Actor{Name: "anna"})
	var e *engine.Error
	if !errors.As(err, &e) || e.Fields[0].Field != "matrix.targets[1].table_name" || !strings.Contains(e.Message, `"b"`) {
		t.Errorf("%v", err)
	}
	if len(w.runs) != 0 || len(w.matrices) != 0 {
		t.Errorf("%d runs and %d matrices are left", len(w.runs), len(w.matrices))
	}
	if _, err := s.Create(
		t.Context(),
		engine.Scenario{},
		engine.Actor{Name: "anna"},
	); !engine.HasCode(
		err,
		engine.CodeInvalid,
	) {
		t.Errorf("no matrix: %v", err)
	}
	if _, err := s.Get(t.Context(), "nobody"); !engine.HasCode(err, engine.CodeNotFound) {
		t.Errorf("no such matrix: %v", err)
	}
}

func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newWorld()
		defer func() { _ = s.Close(t.Context()) }()
		m, _ := s.Create(t.Context(), tables(false, "x", "fails", "simulated"), engine.Actor{Name: "anna"})
		_, _ = s.Start(t.Context(), m.MatrixID, "anna")
		_, _ = s.Wait(t.Context(), m.MatrixID)
		r, err := s.Report(t.Context(), m.MatrixID, compare.Defaults())
		if err != nil || r.Passed || !r.Simulated || len(r.Targets) != 3 || r.TolerancePct != 5 {
			t.Fatalf("%+v, %v", r, err)
		}
		first, failed, last := r.Targets[0], r.Targets[1], r.Targets[2]
		if first.Comparison != nil || first.Summary == nil || first.Simulated {
			t.Errorf("first %+v", first)
		}
		if failed.Comparison != nil || failed.Problem == "" || !failed.SetupFailed || failed.Status != engine.StatusFailed {
			t.Errorf("failed %+v", failed)
		}
		if last.Comparison == nil || last.Comparison.Notes[0] != "run-0 run-2" || !last.Simulated || last.Label != "c" {
			t.Errorf("last %+v", last)
		}
	})
}

func (w *fakeStore) Lease() time.Duration { return store.LeaseDuration }

// authorizer is a function as an Authorizer.
type authorizer func(runID string) error

func (a authorizer) Authorize(_ context.Context, runID string) error { return a(runID) }
