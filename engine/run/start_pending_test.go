package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/store"
)

// SaveResult takes as long as the test says, or fails while it says that the store is away for rows.
func (m *memoryStore) SaveResult(ctx context.Context, rows ...engine.RunResult) error {
	m.mu.Lock()
	took, away := m.rowsTake, m.rowsAway
	m.mu.Unlock()
	if away {
		return fmt.Errorf("saving a row: %w", store.ErrUnavailable)
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	return m.Store.SaveResult(ctx, rows...)
}

func (m *memoryStore) rows(took time.Duration, away bool) {
	m.mu.Lock()
	m.rowsTake, m.rowsAway = took, away
	m.mu.Unlock()
}

// checkRowStored checks that the store has the row of a run worker that is given to the node. It needs mu.
func (v *virtualServer) checkRowStored(a protocol.AssignRun) {
	rows, err := v.store.Results(context.Background(), a.RunID)
	if err != nil || !slices.ContainsFunc(rows, func(r engine.RunResult) bool {
		return r.WorkerID == a.WorkerID && r.ResultID == a.ResultID
	}) {
		v.t.Errorf("%s is placed before the store knows of it: %v", a.WorkerID, err)
	}
}

// TestARunWorkerIsPlacedOnceTheStoreKnowsIt: in each of the ways in which one comes to a run, and the second of the
// run goes on meanwhile.
func TestARunWorkerIsPlacedOnceTheStoreKnowsIt(t *testing.T) {
	for name, d := range redistributions() {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, v *virtualServer) {
				v.served = func(connections int, _ float64) float64 { return 10 * float64(connections) }
				v.store.rows(1700*time.Millisecond, false)
				v.start(d.sc)
				v.wait(5 * time.Second)
				v.until("worker-1")
				if strings.Contains(v.store.text(), "could not") || v.live().Status != engine.StatusRunning {
					t.Error(v.store.text())
				}
				v.store.rows(0, false)
			})
		})
	}
	t.Run("in the place of a lost one", func(t *testing.T) {
		inVirtualTime(t, func(t *testing.T, v *virtualServer) {
			sc := elastic(engine.ScalingAuto, 0)
			sc.Workload.DurationSeconds = 3600
			v.start(sc)
			v.store.rows(1700*time.Millisecond, false)
			v.silence("worker-0", true)
			v.wait(DeadAfter)
			v.until("worker-4")
			v.store.rows(0, false)
		})
	})
}

// TestNobodyJoinsWhileTheStoreIsAway: who would is given up after a while, the others share the load, and when the
// store is back one joins.
func TestNobodyJoinsWhileTheStoreIsAway(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.served = func(connections int, _ float64) float64 { return 10 * float64(connections) }
		sc := redistributions()["a stage of connections"].sc
		v.start(sc)
		v.store.rows(0, true)
		v.wait(40 * time.Second)
		v.mu.Lock()
		placed := len(v.workers)
		v.mu.Unlock()
		if _, connections, _ := v.offered(); placed != 1 || connections != 4 {
			t.Errorf("%d run workers are placed, of %d connections\n%s", placed, connections, v.store.text())
		}
		v.store.rows(0, false)
		v.wait(40 * time.Second)
		if n, connections, _ := v.offered(); n != 2 || connections != 5 {
			t.Errorf("%d run workers with %d connections\n%s", n, connections, v.store.text())
		}
	})
}

// TestAStopEndsARunWhoseRunWorkersWaitForTheStore, at once.
func TestAStopEndsARunWhoseRunWorkersWaitForTheStore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		v.store.rows(0, true)
		v.start(elastic(engine.ScalingAuto, 0))
		v.wait(90 * time.Second) // longer than somebody may be silent who was placed
		if p := v.live(); p.Status != engine.StatusRunning || p.Phase == nil || *p.Phase != engine.PhasePreparing {
			t.Fatalf("%s, %v\n%s", p.Status, p.Phase, v.store.text())
		}
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		v.wait(time.Second)
		v.mu.Lock()
		placed := len(v.workers)
		v.mu.Unlock()
		if p := v.live(); !p.Status.Terminal() || placed != 0 {
			t.Errorf("%s, %d are placed\n%s", p.Status, placed, v.store.text())
		}
		v.store.rows(0, false)
		if sum := v.figures(); sum.Status != engine.StatusCancelled {
			t.Errorf("%s", sum.Status)
		}
	})
}
