package lifecycle

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// storedMachine is a machine with what a store would keep of it.
type storedMachine struct {
	m   *Machine
	now time.Time
	StoredRun
}

func (k *storedMachine) apply(h Event) []Action {
	if w, ok := h.(WorkerChanged); ok && !k.Workers[w.ID].Ended() {
		k.Workers[w.ID] = w.Status
	}
	if w, ok := h.(WorkersLost); ok {
		for _, id := range w.IDs {
			k.Workers[id] = engine.WorkerDead
		}
	}
	out := k.m.Apply(k.now, h)
	k.store(out)
	for range 3 {
		k.store(k.m.Apply(k.now, Tick{})) // the loop has a timer for whatever is due
	}
	return out
}

// store stores what a machine asks for, and tells the run workers.
func (k *storedMachine) store(out []Action) {
	set := func(into *engine.Time, at time.Time) {
		if !at.IsZero() {
			*into = engine.At(at)
		}
	}
	r := &k.Run
	for _, a := range out {
		switch a := a.(type) {
		case MarkLost:
			for _, id := range a.IDs {
				k.Workers[id] = engine.WorkerDead
			}
		case Change:
			if a.To != "" {
				r.Status = a.To
			}
			if a.Phase != nil {
				r.Phase = *a.Phase
			}
			set(&r.WarmupStartTime, a.WarmupStartTime)
			set(&r.WarmupEndTime, a.WarmupEndTime)
			set(&r.MeasurementEndTime, a.MeasurementEndTime)
			if a.StopReason != "" {
				r.StopReason, r.CancellationReason = a.StopReason, &a.CancellationReason
			}
			for _, e := range a.Events {
				e.CreatedAt = engine.At(k.now)
				k.Events = append(k.Events, e)
				if e.Type == engine.EventSetPhase {
					k.m.PhaseSent(k.now, e.Data.Phase)
				}
			}
		}
	}
	k.LastSeen = k.now
}

// TestWhatIsStoredOfALifeIsThatLife: a run that another process goes on with decides as the
// one before would have, whenever it was killed after the load began.
func TestWhatIsStoredOfALifeIsThatLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		ids := []string{"worker-0", "worker-1", "worker-2"}[:rapid.IntRange(1, 3).Draw(t, "workers")]
		w := engine.Workload{WarmupSeconds: float64(rapid.IntRange(0, 3).Draw(t, "warmup")),
			DurationSeconds: float64(rapid.IntRange(3, 12).Draw(t, "duration"))}
		for range rapid.IntRange(0, 3).Draw(t, "stages") {
			w.Stages = append(w.Stages, engine.Stage{DurationSeconds: 2})
		}
		plan := Plan{Workers: ids, Warmup: w.Warmup(), Duration: w.Duration(), Stages: w.Stages,
			Elastic: rapid.Bool().Draw(t, "elastic"), StartLimit: protocol.StartTimeout,
			Drain: func(r engine.StopReason) time.Duration { return protocol.DrainTimeoutOf(w, r) }}
		k := &storedMachine{m: New(plan), now: begin, StoredRun: StoredRun{Workers: map[string]engine.WorkerStatus{},
			Run: engine.Run{Status: engine.StatusRunning, Phase: engine.PhasePreparing, StartTime: engine.At(begin)}}}
		k.apply(RunStarted{})
		if _, why := Rehydrate(plan, k.StoredRun); why == "" {
			t.Fatal("a run was gone on with whose preparation was in a memory that is lost")
		}
		k.apply(Prepared{})
		for _, id := range ids {
			k.apply(WorkerChanged{ID: id, Status: engine.WorkerReady})
		}
		for _, id := range ids {
			k.apply(WorkerChanged{ID: id, Status: engine.WorkerRunning})
		}
		next := func() Event {
			k.now = k.now.Add(time.Duration(rapid.IntRange(0, 2500).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 12).Draw(t, "what") {
			case 0:
				return StopRequested{Reason: rapid.SampledFrom([]engine.StopReason{engine.StopUserRequested,
					engine.StopGuardrail}).Draw(t, "reason"), Message: "because"}
			case 1:
				return WorkersLost{IDs: []string{rapid.SampledFrom(ids).Draw(t, "lost")}}
			case 2:
				return WorkerChanged{ID: rapid.SampledFrom(ids).Draw(t, "worker"), Message: "m",
					Status: rapid.SampledFrom([]engine.WorkerStatus{engine.WorkerDraining, engine.WorkerCompleted,
						engine.WorkerFailed}).Draw(t, "status")}
			}
			return Tick{}
		}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			k.apply(next())
		}
		again, why := Rehydrate(plan, k.StoredRun)
		if !k.Run.Status.Live() {
			if why == "" {
				t.Fatal("a run was gone on with that was over")
			}
			return
		}
		if why != "" {
			t.Fatal(why)
		}
		// What is told again keeps its time anew.
		if again.Apply(k.now, RunResumed{}); k.m.Stopping() {
			k.m.stopSentAt = k.now
		}
		for i := range 30 {
			if k.m.Due() != again.Due() || k.m.Status() != again.Status() || k.m.Phase() != again.Phase() ||
				k.m.StopReason() != again.StopReason() {
				t.Fatalf("after %d more: %s/%s %q due %v, and again %s/%s %q due %v", i, k.m.Status(), k.m.Phase(),
					k.m.StopReason(), k.m.Due(), again.Status(), again.Phase(), again.StopReason(), again.Due())
			}
			h := next()
			want, got := k.m.Apply(k.now, h), again.Apply(k.now, h)
			if !reflect.DeepEqual(want, got) {
				t.Fatalf("after %d more, %T%+v: %s, and again %s", i, h, h, words(want), words(got))
			}
			for _, a := range want {
				if c, ok := a.(Change); ok && c.Phase != nil {
					k.m.PhaseSent(k.now, *c.Phase)
					again.PhaseSent(k.now, *c.Phase)
				}
			}
		}
	})
}

func words(out []Action) (text string) {
	for _, a := range out {
		text += fmt.Sprintf("%T%+v ", a, a)
	}
	return text
}

// TestASearchGoesOnAtItsStep: what was judged stays judged, the step that nobody measured
// to its end is begun once more under a number that no run worker has seen, and a search
// that has left no state is not gone on with.
func TestASearchGoesOnAtItsStep(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	find := engine.FindMax{Enabled: true, StartConcurrency: 2, ConcurrencyIncrement: 2, StepDurationSeconds: 5,
		QPSStabilityPct: 5, LatencyStabilityPct: 20, MaxErrorRatePct: 1}
	plan := func() Plan {
		return Plan{Workers: []string{"worker-0"}, Duration: time.Hour, StartLimit: time.Minute,
			Drain:  protocol.DrainTimeoutFor,
			Search: NewSearch(find, 1, func(n int) string { return fmt.Sprint(n) })}
	}
	stored := StoredRun{Workers: map[string]engine.WorkerStatus{"worker-0": engine.WorkerRunning},
		LastSeen: begin.Add(9 * time.Second),
		Run: engine.Run{Status: engine.StatusRunning, Phase: engine.PhaseMeasurement, StartTime: engine.At(begin),
			WarmupStartTime: engine.At(begin), WarmupEndTime: engine.At(begin)}}
	if _, why := Rehydrate(plan(), stored); why == "" {
		t.Error("a search without a state was gone on with")
	}
	p95 := 1.0
	step := engine.FindMaxStep{StepNumber: 1, Repetition: 1, TotalTargetConnections: 2, QPS: 100, TotalQueries: 500,
		P95LatencyMs: &p95, P99LatencyMs: &p95, Outcome: engine.OutcomeStable}
	stored.Search = &engine.FindMaxState{CurrentStep: 2, UpperBound: 50, Steps: []engine.FindMaxStep{step}}
	// The third step was told, and what is kept of the search does not know it yet.
	stored.Events = []engine.Event{{Type: engine.EventSetWorkerTarget, Data: engine.EventData{StepNumber: 3}}}
	m, why := Rehydrate(plan(), stored)
	if why != "" {
		t.Fatal(why)
	}
	out := m.Apply(begin.Add(20*time.Second), RunResumed{})
	if len(out) != 1 {
		t.Fatal(words(out))
	}
	if b, ok := out[0].(BeginStep); !ok || b.Number != 4 || b.Level != 4 {
		t.Errorf("%+v, want step 4 at 4 connections", out[0])
	}
	if got := m.Search().Series(); got.Max() != 50 || len(got.Steps()) != 1 {
		t.Errorf("up to %v after %d steps", got.Max(), len(got.Steps()))
	}
}
