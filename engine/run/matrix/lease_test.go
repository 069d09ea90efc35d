package matrix

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// renewInterval is how far renewals of leases of the usual length are apart.
const renewInterval = store.LeaseDuration * 2 / 15

// TestAMatrixIsItsOwnersUntilItsLeaseExpires: servers that come and go on one store leave
// the matrix of a live one alone, and one of them goes on with that of a dead one.
func TestAMatrixIsItsOwnersUntilItsLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, first := newWorld()
		m, _ := first.Create(t.Context(), tables(false, "x", "y", "z"), engine.Actor{Name: "anna"})
		_, _ = first.Start(t.Context(), m.MatrixID, "anna")
		time.Sleep(time.Second)
		second := w.server("b")
		defer func() { _ = second.Close(t.Context()) }()
		visitor := New(Options{Store: w, Runs: w, Owner: "c"}) // a run of a terminal
		if err := visitor.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = visitor.Close(t.Context()) }()
		holder := func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.matrices[m.MatrixID].Owner
		}
		time.Sleep(runDuration)
		if got := holder(); got != "a" || len(second.active) != 0 {
			t.Fatalf("the matrix is %s's while its owner lives", got)
		}
		// The owner ends without a word in the second run.
		_ = first.Close(t.Context())
		died := time.Now()
		time.Sleep(store.LeaseDuration - 2*renewInterval)
		if got := holder(); got != "a" {
			t.Fatalf("%v after its owner's end the matrix is %s's", time.Since(died), got)
		}
		time.Sleep(5 * renewInterval)
		if got := holder(); got != "b" {
			t.Fatalf("%v after its owner's end the matrix is %s's", time.Since(died), got)
		}
		got, err := second.Wait(t.Context(), m.MatrixID)
		want := []engine.Status{engine.StatusCompleted, engine.StatusCompleted, engine.StatusCompleted}
		if err != nil || got.Status != engine.StatusCompleted || !slices.Equal(w.statuses(), want) || w.maxConcurrent > 1 {
			t.Errorf("%s, runs %v, %d at once, %v", got.Status, w.statuses(), w.maxConcurrent, err)
		}
	})
}

// TestAMatrixIsStoppedThroughAnyServer: its owner reads the decision, and ends it.
func TestAMatrixIsStoppedThroughAnyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, first := newWorld()
		defer func() { _ = first.Close(t.Context()) }()
		second := w.server("b")
		defer func() { _ = second.Close(t.Context()) }()
		m, _ := first.Create(t.Context(), tables(false, "x", "y"), engine.Actor{Name: "anna"})
		_, _ = first.Start(t.Context(), m.MatrixID, "anna")
		time.Sleep(time.Second)
		if state, err := second.Stop(t.Context(), m.MatrixID, "bert"); err != nil ||
			state.Status != engine.StatusCancelling || len(second.active) != 0 {
			t.Fatalf("%s, %v", state.Status, err)
		}
		begun := time.Now()
		got, err := first.Wait(t.Context(), m.MatrixID)
		if took := time.Since(begun); err != nil || got.Status != engine.StatusCancelled ||
			took > renewInterval+drainDuration+time.Second {
			t.Errorf("%s after %v, %v", got.Status, took, err)
		}
		if want := []engine.Status{engine.StatusCancelled, engine.StatusCancelled}; !slices.Equal(w.statuses(), want) {
			t.Errorf("runs %v", w.statuses())
		}
	})
}

// TestAnOwnerThatWasAwayLeavesItsMatrix: while it cannot renew it begins nothing, and
// when another has taken over meanwhile it goes on with nothing.
func TestAnOwnerThatWasAwayLeavesItsMatrix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld()
		defer func() { _ = s.Close(t.Context()) }()
		m, _ := s.Create(t.Context(), tables(false, "x", "y", "z"), engine.Actor{Name: "anna"})
		_, _ = s.Start(t.Context(), m.MatrixID, "anna")
		time.Sleep(time.Second)
		w.mu.Lock()
		w.down = errors.New("no answer")
		w.mu.Unlock()
		time.Sleep(3 * store.LeaseDuration)
		if got := w.statuses(); got[1] != engine.StatusRunning && got[1] != engine.StatusCompleted ||
			got[2] != engine.StatusPrepared {
			t.Errorf("with a lease that may be over the runs are %v", got)
		}
		w.mu.Lock()
		w.down = nil
		taken := w.matrices[m.MatrixID]
		taken.Owner, w.leases[m.MatrixID] = "b", time.Now().Add(time.Hour)
		w.matrices[m.MatrixID] = taken
		w.mu.Unlock()
		time.Sleep(2 * runDuration)
		if got := w.statuses(); got[2] != engine.StatusPrepared || len(s.active) != 0 {
			t.Errorf("the runs of another's matrix are %v", got)
		}
		if got, err := s.Get(t.Context(), m.MatrixID); err != nil || got.Status != engine.StatusRunning {
			t.Errorf("another's matrix is %s, %v", got.Status, err)
		}
	})
}
