package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
)

// aSearch looks for the most connections, 2 to a run worker.
func aSearch() engine.Scenario {
	sc := redistributions()["a step of a search"].sc
	sc.Scaling.PerWorkerCapacity, sc.Workload.WarmupSeconds = 2, 0
	return sc
}

// begins begins a step of a search as the loop does.
func begins(s *searcher, scale *scaler, number, level int) {
	workers := s.run.ActiveWorkers()
	a := lifecycle.BeginStep{Number: number, Level: float64(level), Settle: time.Second, Length: 10 * time.Second}
	scale.distribute(loadBegan, workers, s.begin(a, workers, scale.pool))
	s.loadShared(loadBegan, scale.increasesPending)
}

// over is the last snapshot of a step.
func over(w *Worker, number int) *engine.WorkerSnapshot {
	return &engine.WorkerSnapshot{WorkerID: w.ID, Step: number, StepOver: true}
}

func TestSearcherMeasuresAStepOfAll(t *testing.T) {
	f := factsOf(aSearch(), 2, 2)
	s, scale := newSearcher(f), newScaler(f)
	begins(&s, &scale, 1, 4)
	step := protocol.Step{Number: 1, Settle: time.Second, Length: 10 * time.Second}
	if s.step != step || s.sentLoad() != 4 || s.fullLoadAt.IsZero() {
		t.Errorf("%+v, %v of 4 are given", s.step, s.sentLoad())
	}
	if s.add(over(f.Workers[0], 1)) {
		t.Error("one of two has measured it")
	}
	if s.add(over(f.Workers[1], 0)) {
		t.Error("a snapshot of no step ends none")
	}
	if !s.add(over(f.Workers[1], 1)) {
		t.Error("both have measured it")
	}
	if why := s.mustRepeat(&findmax.Observation{}, scale.increasesPending); why != "" {
		t.Errorf("it lacks: %s", why)
	}
}

func TestSearcherMeasuresAgainUntilItIsInVain(t *testing.T) {
	f := factsOf(aSearch(), 2, 2)
	s, scale := newSearcher(f), newScaler(f)
	begins(&s, &scale, 1, 4)
	s.add(over(f.Workers[0], 1))
	var o findmax.Observation
	for i := range maxFailedAttempts {
		if why := s.mustRepeat(&o, false); why != "nothing was heard of worker-1 to its end" || o.Missing != 0 {
			t.Fatalf("attempt %d: %q, %d missing", i, why, o.Missing)
		}
	}
	if why := s.mustRepeat(&o, false); why != "" || o.Missing != 2 {
		t.Errorf("%q, %d missing: what nobody bears is missing for good", why, o.Missing)
	}
	begins(&s, &scale, 2, 4)
	s.add(over(f.Workers[0], 2))
	s.add(over(f.Workers[1], 2))
	s.fullLoadAt, s.reachedLate = time.Time{}, true
	if why := s.mustRepeat(&o, false); !strings.Contains(why, "too late") {
		t.Errorf("a part of the load was given to nobody, it says %q", why)
	}
}

func TestSearcherHasRunWorkersJoinForALevel(t *testing.T) {
	f := factsOf(aSearch(), 2, 2)
	s := newSearcher(f)
	for _, c := range []struct {
		level   int
		elastic bool
		slots   int
		want    []int
	}{{4, true, 8, nil}, {6, true, 8, []int{2}}, {7, true, 8, []int{2, 1}}, {6, false, 8, nil}, {6, true, 2, nil}} {
		f.plan.Plan.KeySlots = c.slots
		if got := s.sharesToJoin(lifecycle.BeginStep{Level: float64(c.level)}, c.elastic); !slices.Equal(got, c.want) {
			t.Errorf("%+v: they join with %v", c, got)
		}
	}
}

func TestSearcherHoldsAStepUntilAllHaveJoined(t *testing.T) {
	f := factsOf(aSearch(), 2, 2)
	s := newSearcher(f)
	if s.takePendingStep() != nil {
		t.Error("no step is held")
	}
	s.pendingStep = &lifecycle.BeginStep{Number: 3}
	if a := s.takePendingStep(); a == nil || a.Number != 3 || s.takePendingStep() != nil {
		t.Error("it begins once")
	}
	s.pendingStep = &lifecycle.BeginStep{Number: 4}
	f.life.Apply(loadBegan, lifecycle.StopRequested{Reason: engine.StopUserRequested})
	if s.takePendingStep() != nil {
		t.Error("a run that ends begins no step")
	}
}

func TestNoSearchHasNoState(t *testing.T) {
	s := newSearcher(factsOf(inStages(2), 2))
	if s.state(loadBegan) != nil || s.add(&engine.WorkerSnapshot{Step: 1, StepOver: true}) {
		t.Error("a run without a search shows one")
	}
}
