package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"pgregory.net/rapid"
)

// life follows a core from outside and checks what it asks for against the contract.
type life struct {
	t        *rapid.T
	core     *core
	now      time.Time
	status   engine.Status
	phase    engine.Phase
	terminal engine.Status
	worker   map[string]engine.WorkerStatus
	events   []engine.EventType
	prepares int
	places   int
	finishes int
	ends     int
}

func (l *life) happen(h any) {
	if w, ok := h.(hapWorker); ok {
		l.worker[w.id] = w.status
	}
	for _, a := range l.core.apply(l.now, h) {
		switch a := a.(type) {
		case actPrepare:
			l.prepares++
		case actPlace:
			l.places++
			if l.status != engine.StatusRunning {
				l.t.Fatalf("workers are placed in %s", l.status)
			}
		case actFinish:
			l.finishes++
		case actEnd:
			l.ends++
		case actLost:
			for _, id := range a.ids {
				l.worker[id] = engine.WorkerDead
			}
		case actChange:
			l.change(a)
		}
	}
	if l.terminal != "" && l.core.status != l.terminal {
		l.t.Fatalf("%s became %s after %T", l.terminal, l.core.status, h)
	}
	if l.core.status != l.status || l.core.phase != l.phase {
		l.t.Fatalf("the core is in %s/%s, its transitions led to %s/%s", l.core.status, l.core.phase, l.status, l.phase)
	}
}

func (l *life) change(a actChange) {
	if len(a.t.From) != 1 || a.t.From[0] != l.status {
		l.t.Fatalf("a transition from %v in %s", a.t.From, l.status)
	}
	if a.t.To != "" {
		if !l.status.CanBecome(a.t.To) {
			l.t.Fatalf("%s → %s is forbidden", l.status, a.t.To)
		}
		l.status = a.t.To
		if l.status.Terminal() {
			l.terminal = l.status
			if a.t.EndTime.IsZero() {
				l.t.Fatal("a terminal transition without end time")
			}
		}
	}
	if a.t.Phase != nil {
		if phaseOrder(*a.t.Phase) < phaseOrder(l.phase) {
			l.t.Fatalf("the phase went back from %s to %s", l.phase, *a.t.Phase)
		}
		l.phase = *a.t.Phase
	}
	for _, e := range a.t.Events {
		switch e.Type {
		case engine.EventStart:
			for id, s := range l.worker {
				if s != engine.WorkerReady {
					l.t.Fatalf("START with %s in %s", id, s)
				}
			}
			if len(l.events) > 0 {
				l.t.Fatalf("START after %v", l.events)
			}
		case engine.EventSetPhase:
			if len(l.events) == 0 || l.events[len(l.events)-1] == engine.EventStop {
				l.t.Fatalf("SET_PHASE after %v", l.events)
			}
		case engine.EventStop:
			if !a.urgent {
				l.t.Fatal("STOP waits for the store")
			}
		}
		l.events = append(l.events, e.Type)
	}
}

func phaseOrder(p engine.Phase) int {
	for i, q := range []engine.Phase{engine.PhasePreparing, engine.PhaseWarmup, engine.PhaseMeasurement, engine.PhaseCooldown, engine.PhaseProcessing, engine.PhaseNone} {
		if p == q {
			return i
		}
	}
	return -1
}

func TestEveryRunEndsAndObeysTheContract(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "workers")
		var ids []string
		l := &life{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), status: engine.StatusRunning, phase: engine.PhasePreparing, worker: map[string]engine.WorkerStatus{}}
		for i := range n {
			ids = append(ids, fmt.Sprintf("worker-%d", i))
			l.worker[ids[i]] = engine.WorkerStarting
		}
		l.core = newCore(engine.Workload{WarmupSeconds: float64(rapid.IntRange(0, 3).Draw(t, "warmup")), DurationSeconds: float64(rapid.IntRange(1, 10).Draw(t, "duration"))}, ids)
		l.happen(hapBegun{})
		prepared := false
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			l.now = l.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if !prepared {
					prepared = true
					l.happen(hapPrepared{})
				}
			case 1:
				if !prepared && rapid.Bool().Draw(t, "fails") {
					prepared = true
					l.happen(hapPrepareFailed{"no such table"})
				}
			case 2:
				l.happen(hapStop{reason: rapid.SampledFrom([]engine.StopReason{engine.StopUserRequested, engine.StopGuardrail}).Draw(t, "reason"), sentence: "because"})
			case 3:
				l.happen(hapLost{ids: []string{rapid.SampledFrom(ids).Draw(t, "lost")}})
			case 4, 5, 6:
				if l.places > 0 {
					id := rapid.SampledFrom(ids).Draw(t, "worker")
					if !l.worker[id].Ended() {
						l.happen(hapWorker{id: id, status: rapid.SampledFrom([]engine.WorkerStatus{engine.WorkerReady, engine.WorkerReady, engine.WorkerReady, engine.WorkerRunning, engine.WorkerDraining, engine.WorkerCompleted, engine.WorkerFailed}).Draw(t, "status"), message: "m"})
					}
				}
			default:
				l.happen(hapTick{})
			}
		}
		// Faults heal: preparation answers, and time passes.
		if !prepared {
			l.happen(hapPrepared{})
		}
		for range 4 {
			l.now = l.now.Add(control.StartLimit + control.DrainLimit + drainGrace)
			l.happen(hapTick{})
		}
		if !l.status.Terminal() || l.phase != engine.PhaseProcessing || l.finishes != 1 {
			t.Fatalf("the run is in %s/%s, finished %d times", l.status, l.phase, l.finishes)
		}
		if l.status == engine.StatusCompleted && l.core.reason != engine.StopDurationElapsed {
			t.Fatalf("COMPLETED by %s", l.core.reason)
		}
		enriches := rapid.Bool().Draw(t, "enrich")
		l.happen(hapEnriched{}) // out of turn
		l.happen(hapFinished{enrich: enriches})
		l.happen(hapFinished{enrich: enriches})
		if enriches {
			if l.ends != 0 || l.phase != engine.PhaseProcessing {
				t.Fatalf("ended before the enrichment, in %q", l.phase)
			}
			l.happen(hapEnriched{})
			l.happen(hapEnriched{})
		}
		if l.ends != 1 || l.phase != engine.PhaseNone || l.prepares != 1 || l.places > 1 {
			t.Fatalf("ended %d times, prepared %d, placed %d, phase %q", l.ends, l.prepares, l.places, l.phase)
		}
	})
}

// script drives a core through fixed happenings, a second apart.
func script(c *core, steps ...any) (statuses []string) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, h := range append([]any{hapBegun{}}, steps...) {
		if d, ok := h.(time.Duration); ok {
			now = now.Add(d)
			h = hapTick{}
		}
		c.apply(now, h)
		statuses = append(statuses, fmt.Sprintf("%s/%s", c.status, c.phase))
		now = now.Add(time.Second)
	}
	return statuses
}

func ready(id string) hapWorker { return hapWorker{id: id, status: engine.WorkerReady} }

func TestTheCourseOfARun(t *testing.T) {
	two := []string{"worker-0", "worker-1"}
	w := engine.Workload{WarmupSeconds: 3, DurationSeconds: 10}
	gone := func(id string) hapWorker { return hapWorker{id: id, status: engine.WorkerCompleted} }
	cases := []struct {
		name     string
		steps    []any
		want     string
		sentence string
	}{
		{"it completes", []any{hapPrepared{}, ready("worker-0"), ready("worker-1"), 3 * time.Second, 10 * time.Second, gone("worker-0"), gone("worker-1")}, "COMPLETED/PROCESSING", ""},
		{"warm-up first", []any{hapPrepared{}, ready("worker-0"), ready("worker-1")}, "RUNNING/WARMUP", ""},
		{"one ready worker is not enough", []any{hapPrepared{}, ready("worker-0"), 20 * time.Second}, "RUNNING/PREPARING", ""},
		{"not ready in time", []any{hapPrepared{}, ready("worker-0"), 120 * time.Second, gone("worker-0"), gone("worker-1")}, "FAILED/PROCESSING", "Set-up failed: worker-1 not ready within 120 s"},
		{"one cannot connect", []any{hapPrepared{}, ready("worker-0"), hapWorker{"worker-1", engine.WorkerFailed, "wrong password"}, gone("worker-0")}, "FAILED/PROCESSING", "Set-up failed: wrong password"},
		{"preparation fails", []any{hapPrepareFailed{"no such table"}}, "FAILED/PROCESSING", "Set-up failed: no such table"},
		{"cancelled while preparing", []any{hapStop{engine.StopUserRequested, "User requested cancellation", "me"}, hapPrepareFailed{"cancelled"}}, "CANCELLED/PROCESSING", "User requested cancellation"},
		{"cancelled while draining", []any{hapPrepared{}, ready("worker-0"), ready("worker-1"), 3 * time.Second, 10 * time.Second, hapStop{engine.StopUserRequested, "User requested cancellation", "me"}, gone("worker-0"), gone("worker-1")}, "CANCELLED/PROCESSING", "User requested cancellation"},
		{"two workers die at once", []any{hapPrepared{}, ready("worker-0"), ready("worker-1"), hapLost{two}}, "FAILED/PROCESSING", "Worker failure: 2 worker(s) stopped responding"},
		{"the workload ends by itself", []any{hapPrepared{}, ready("worker-0"), ready("worker-1"), gone("worker-0"), gone("worker-1")}, "COMPLETED/PROCESSING", ""},
		{"a worker that never leaves", []any{hapPrepared{}, ready("worker-0"), ready("worker-1"), hapStop{engine.StopUserRequested, "User requested cancellation", "me"}, gone("worker-0"), control.DrainLimit + drainGrace}, "CANCELLED/PROCESSING", "User requested cancellation"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := newCore(w, two)
			got := script(c, tc.steps...)
			if got[len(got)-1] != tc.want || c.sentence != tc.sentence {
				t.Fatalf("%v, %q; want %s, %q", got, c.sentence, tc.want, tc.sentence)
			}
		})
	}
}

// TestPatienceFollowsTheDrainOfTheReason: a worker that does not leave is given up 10 s after its
// drain is over, and a run that is cancelled while it ends by itself begins anew.
func TestPatienceFollowsTheDrainOfTheReason(t *testing.T) {
	own := 30.0
	cases := []struct {
		name     string
		stop     *engine.Stop
		natural  bool          // the run ends by itself
		cancelAt time.Duration // after that; 0: never
		reason   engine.StopReason
		want     time.Duration // until it is given up, since the first STOP
	}{
		{"a user", nil, false, 0, engine.StopUserRequested, 15 * time.Second},
		{"a guardrail", nil, false, 0, engine.StopGuardrail, 130 * time.Second},
		{"the end of the measurement", nil, true, 0, "", 130 * time.Second},
		{"a user, late in the drain", nil, true, 100 * time.Second, engine.StopUserRequested, 115 * time.Second},
		{"a guardrail in the drain", nil, true, 100 * time.Second, engine.StopGuardrail, 230 * time.Second},
		{"a user, with a drain of the template", &engine.Stop{DrainSeconds: &own}, false, 0, engine.StopUserRequested, 40 * time.Second},
		{"the end, with a drain of the template", &engine.Stop{DrainSeconds: &own}, true, 0, "", 40 * time.Second},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			c := newCore(engine.Workload{DurationSeconds: 5, Stop: tc.stop}, []string{"worker-0"})
			var drains []float64
			apply := func(h any) {
				for _, a := range c.apply(now, h) {
					if ch, ok := a.(actChange); ok {
						for _, e := range ch.t.Events {
							if e.Type == engine.EventStop {
								drains = append(drains, e.Data.DrainTimeoutSeconds)
							}
						}
					}
				}
			}
			for _, h := range []any{hapBegun{}, hapPrepared{}, ready("worker-0")} {
				apply(h)
			}
			if now = now.Add(5 * time.Second); tc.natural {
				apply(hapTick{})
			} else {
				apply(hapStop{reason: tc.reason})
			}
			stopped := now
			if tc.cancelAt > 0 {
				now = stopped.Add(tc.cancelAt)
				apply(hapStop{reason: tc.reason})
			}
			last := drains[len(drains)-1]
			for !c.status.Terminal() {
				now = c.due()
				apply(hapTick{})
			}
			if took := now.Sub(stopped); took < tc.want || took > tc.want+time.Second {
				t.Errorf("given up after %v, want %v; told to drain for %v", took, tc.want, drains)
			}
			if want := (tc.want - tc.cancelAt - 10*time.Second).Seconds(); last != want {
				t.Errorf("told to drain for %v s, want %v", last, want)
			}
		})
	}
}

func TestWithoutWarmupTheMeasurementBeginsAtOnce(t *testing.T) {
	c := newCore(engine.Workload{DurationSeconds: 1}, []string{"worker-0"})
	if got := script(c, hapPrepared{}, ready("worker-0")); got[2] != "RUNNING/MEASUREMENT" || !c.measureAt.Equal(c.loadAt) {
		t.Fatalf("%v, measured from %v, load from %v", got, c.measureAt, c.loadAt)
	}
}

func TestAPhaseCountsFromWhenTheWorkersHearOfIt(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	c := newCore(engine.Workload{WarmupSeconds: 1, DurationSeconds: 2}, []string{"worker-0"})
	c.apply(at(0), hapBegun{})
	c.apply(at(0), hapPrepared{})
	c.apply(at(0), hapWorker{id: "worker-0", status: engine.WorkerReady})
	c.entered(at(300), engine.PhaseWarmup)
	if c.apply(at(1200), hapTick{}); c.phase != engine.PhaseWarmup {
		t.Fatalf("after 0.9 s of 1 s of warm-up the phase is %s", c.phase)
	}
	if c.apply(at(1300), hapTick{}); c.phase != engine.PhaseMeasurement {
		t.Fatalf("after the warm-up the phase is %s", c.phase)
	}
	c.entered(at(1800), engine.PhaseMeasurement)
	if c.apply(at(3700), hapTick{}); c.stopping() || !c.due().Equal(at(3800)) {
		t.Fatalf("stopping %v, due at %v", c.stopping(), c.due())
	}
	c.apply(at(3800), hapTick{})
	if c.reason != engine.StopDurationElapsed {
		t.Fatalf("the run goes on after its measurement: %q", c.reason)
	}
}
