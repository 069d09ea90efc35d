package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"pgregory.net/rapid"
)

// machineHarness follows a machine from outside and checks what it asks for against the contract.
type machineHarness struct {
	t        *rapid.T
	run      *Machine
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

func (l *machineHarness) apply(h Event) {
	if w, ok := h.(WorkerChanged); ok {
		l.worker[w.ID] = w.Status
	}
	for _, a := range l.run.Apply(l.now, h) {
		switch a := a.(type) {
		case Prepare:
			l.prepares++
		case AssignWorkers:
			l.places++
			if l.status != engine.StatusRunning {
				l.t.Fatalf("workers are placed in %s", l.status)
			}
		case ComputeFigures:
			l.finishes++
		case End:
			l.ends++
		case MarkLost:
			for _, id := range a.IDs {
				l.worker[id] = engine.WorkerDead
			}
		case Change:
			l.change(a)
		}
	}
	if l.terminal != "" && l.run.status != l.terminal {
		l.t.Fatalf("%s became %s after %T", l.terminal, l.run.status, h)
	}
	if l.run.status != l.status || l.run.phase != l.phase {
		l.t.Fatalf("the machine is in %s/%s, its transitions led to %s/%s", l.run.status, l.run.phase, l.status, l.phase)
	}
}

func (l *machineHarness) change(a Change) {
	if a.From != l.status {
		l.t.Fatalf("a transition from %v in %s", a.From, l.status)
	}
	if a.To != "" {
		if !l.status.CanBecome(a.To) {
			l.t.Fatalf("%s → %s is forbidden", l.status, a.To)
		}
		l.status = a.To
		if l.status.Terminal() {
			l.terminal = l.status
			if a.EndTime.IsZero() {
				l.t.Fatal("a terminal transition without end time")
			}
		}
	}
	if a.Phase != nil {
		if phaseOrder(*a.Phase) < phaseOrder(l.phase) {
			l.t.Fatalf("the phase went back from %s to %s", l.phase, *a.Phase)
		}
		l.phase = *a.Phase
	}
	for _, e := range a.Events {
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
			if !a.Urgent {
				l.t.Fatal("STOP waits for the store")
			}
		}
		l.events = append(l.events, e.Type)
	}
}

// fixed is a run of a workload that keeps its run workers.
func fixed(w engine.Workload, workers ...string) *Machine {
	return New(Plan{Workers: workers, Warmup: w.Warmup(), Duration: w.Duration(), Stages: w.Stages,
		StartLimit: protocol.StartTimeout,
		Drain:      func(r engine.StopReason) time.Duration { return protocol.DrainTimeoutOf(w, r) }})
}

func phaseOrder(p engine.Phase) int {
	for i, q := range []engine.Phase{engine.PhasePreparing, engine.PhaseWarmup, engine.PhaseMeasurement,
		engine.PhaseCooldown, engine.PhaseProcessing, engine.PhaseNone} {
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
		l := &machineHarness{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), status: engine.StatusRunning,
			phase: engine.PhasePreparing, worker: map[string]engine.WorkerStatus{}}
		for i := range n {
			ids = append(ids, fmt.Sprintf("worker-%d", i))
			l.worker[ids[i]] = engine.WorkerStarting
		}
		l.run = fixed(engine.Workload{WarmupSeconds: float64(rapid.IntRange(0, 3).Draw(t, "warmup")),
			DurationSeconds: float64(rapid.IntRange(1, 10).Draw(t, "duration"))}, ids...)
		l.apply(RunStarted{})
		prepared := false
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			l.now = l.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if !prepared {
					prepared = true
					l.apply(Prepared{})
				}
			case 1:
				if !prepared && rapid.Bool().Draw(t, "fails") {
					prepared = true
					l.apply(PrepareFailed{"no such table"})
				}
			case 2:
				l.apply(
					StopRequested{Reason: rapid.SampledFrom([]engine.StopReason{engine.StopUserRequested, engine.StopGuardrail}).
						Draw(t, "reason"), Message: "because"},
				)
			case 3:
				l.apply(WorkersLost{IDs: []string{rapid.SampledFrom(ids).Draw(t, "lost")}})
			case 4, 5, 6:
				if l.places > 0 {
					id := rapid.SampledFrom(ids).Draw(t, "worker")
					if !l.worker[id].Ended() {
						l.apply(WorkerChanged{ID: id,
							Status: rapid.SampledFrom([]engine.WorkerStatus{engine.WorkerReady, engine.WorkerReady, engine.WorkerReady,
								engine.WorkerRunning, engine.WorkerDraining, engine.WorkerCompleted, engine.WorkerFailed}).Draw(t, "status"),
							Message: "m"})
					}
				}
			default:
				l.apply(Tick{})
			}
		}
		// Faults heal: preparation answers, and time passes.
		if !prepared {
			l.apply(Prepared{})
		}
		for range 4 {
			l.now = l.now.Add(protocol.StartTimeout + protocol.DrainTimeout + drainGrace)
			l.apply(Tick{})
		}
		if !l.status.Terminal() || l.phase != engine.PhaseProcessing || l.finishes != 1 {
			t.Fatalf("the run is in %s/%s, finished %d times", l.status, l.phase, l.finishes)
		}
		if l.status == engine.StatusCompleted && l.run.reason != engine.StopDurationElapsed {
			t.Fatalf("COMPLETED by %s", l.run.reason)
		}
		enriches := rapid.Bool().Draw(t, "enrich")
		l.apply(EnrichmentDone{}) // out of turn
		l.apply(FiguresReady{Enrich: enriches})
		l.apply(FiguresReady{Enrich: enriches})
		if enriches {
			if l.ends != 0 || l.phase != engine.PhaseProcessing {
				t.Fatalf("ended before the enrichment, in %q", l.phase)
			}
			l.apply(EnrichmentDone{})
			l.apply(EnrichmentDone{})
		}
		if l.ends != 1 || l.phase != engine.PhaseNone || l.prepares != 1 || l.places > 1 {
			t.Fatalf("ended %d times, prepared %d, placed %d, phase %q", l.ends, l.prepares, l.places, l.phase)
		}
	})
}

// script drives a machine through fixed events, a second apart.
func script(c *Machine, steps ...any) (statuses []string) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range append([]any{RunStarted{}}, steps...) {
		h, ok := step.(Event)
		if !ok {
			now, h = now.Add(step.(time.Duration)), Tick{}
		}
		c.Apply(now, h)
		statuses = append(statuses, fmt.Sprintf("%s/%s", c.status, c.phase))
		now = now.Add(time.Second)
	}
	return statuses
}

func ready(id string) WorkerChanged { return WorkerChanged{ID: id, Status: engine.WorkerReady} }

func TestTheCourseOfARun(t *testing.T) {
	two := []string{"worker-0", "worker-1"}
	w := engine.Workload{WarmupSeconds: 3, DurationSeconds: 10}
	gone := func(id string) WorkerChanged { return WorkerChanged{ID: id, Status: engine.WorkerCompleted} }
	cases := []struct {
		name     string
		steps    []any
		want     string
		sentence string
	}{
		{"it completes", []any{Prepared{}, ready("worker-0"), ready("worker-1"), 3 * time.Second, 10 * time.Second,
			gone("worker-0"), gone("worker-1")}, "COMPLETED/PROCESSING", ""},
		{"warm-up first", []any{Prepared{}, ready("worker-0"), ready("worker-1")}, "RUNNING/WARMUP", ""},
		{"one ready worker is not enough", []any{Prepared{}, ready("worker-0"), 20 * time.Second}, "RUNNING/PREPARING", ""},
		{"not ready in time", []any{Prepared{}, ready("worker-0"), 120 * time.Second, gone("worker-0"), gone("worker-1")},
			"FAILED/PROCESSING", "Set-up failed: worker-1 not ready within 120 s"},
		{"one cannot connect", []any{Prepared{}, ready("worker-0"),
			WorkerChanged{ID: "worker-1", Status: engine.WorkerFailed, Message: "wrong password"}, gone("worker-0")},
			"FAILED/PROCESSING",
			"Set-up failed: wrong password"},
		{"preparation fails", []any{PrepareFailed{"no such table"}}, "FAILED/PROCESSING", "Set-up failed: no such table"},
		{"cancelled while preparing",
			[]any{StopRequested{engine.StopUserRequested, "User requested cancellation", "me"}, PrepareFailed{"cancelled"}},
			"CANCELLED/PROCESSING", "User requested cancellation"},
		{"cancelled while draining",
			[]any{Prepared{}, ready("worker-0"), ready("worker-1"), 3 * time.Second, 10 * time.Second,
				StopRequested{engine.StopUserRequested, "User requested cancellation", "me"}, gone("worker-0"), gone("worker-1")},
			"CANCELLED/PROCESSING", "User requested cancellation"},
		{"two workers die at once", []any{Prepared{}, ready("worker-0"), ready("worker-1"), WorkersLost{IDs: two}},
			"FAILED/PROCESSING", "Worker failure: 2 worker(s) stopped responding"},
		{"the workload ends by itself",
			[]any{Prepared{}, ready("worker-0"), ready("worker-1"), gone("worker-0"), gone("worker-1")}, "COMPLETED/PROCESSING",
			""},
		{"a worker that never leaves",
			[]any{Prepared{}, ready("worker-0"), ready("worker-1"),
				StopRequested{engine.StopUserRequested, "User requested cancellation", "me"}, gone("worker-0"),
				protocol.DrainTimeout + drainGrace}, "CANCELLED/PROCESSING", "User requested cancellation"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := fixed(w, two...)
			got := script(c, tc.steps...)
			if got[len(got)-1] != tc.want || c.message != tc.sentence {
				t.Fatalf("%v, %q; want %s, %q", got, c.message, tc.want, tc.sentence)
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
		{"a user, with a drain of the template", &engine.Stop{DrainSeconds: &own}, false, 0, engine.StopUserRequested,
			40 * time.Second},
		{"the end, with a drain of the template", &engine.Stop{DrainSeconds: &own}, true, 0, "", 40 * time.Second},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			c := fixed(engine.Workload{DurationSeconds: 5, Stop: tc.stop}, "worker-0")
			var drains []float64
			apply := func(h Event) {
				for _, a := range c.Apply(now, h) {
					if ch, ok := a.(Change); ok {
						for _, e := range ch.Events {
							if e.Type == engine.EventStop {
								drains = append(drains, e.Data.DrainTimeoutSeconds)
							}
						}
					}
				}
			}
			for _, h := range []Event{RunStarted{}, Prepared{}, ready("worker-0")} {
				apply(h)
			}
			if now = now.Add(5 * time.Second); tc.natural {
				apply(Tick{})
			} else {
				apply(StopRequested{Reason: tc.reason})
			}
			stopped := now
			if tc.cancelAt > 0 {
				now = stopped.Add(tc.cancelAt)
				apply(StopRequested{Reason: tc.reason})
			}
			last := drains[len(drains)-1]
			for !c.status.Terminal() {
				now = c.Due()
				apply(Tick{})
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
	c := fixed(engine.Workload{DurationSeconds: 1}, "worker-0")
	if got := script(c, Prepared{}, ready("worker-0")); got[2] != "RUNNING/MEASUREMENT" || !c.measureAt.Equal(c.loadAt) {
		t.Fatalf("%v, measured from %v, load from %v", got, c.measureAt, c.loadAt)
	}
}

func TestAPhaseCountsFromWhenTheWorkersHearOfIt(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	c := fixed(engine.Workload{WarmupSeconds: 1, DurationSeconds: 2}, "worker-0")
	c.Apply(at(0), RunStarted{})
	c.Apply(at(0), Prepared{})
	c.Apply(at(0), WorkerChanged{ID: "worker-0", Status: engine.WorkerReady})
	c.PhaseSent(at(300), engine.PhaseWarmup)
	if c.Apply(at(1200), Tick{}); c.phase != engine.PhaseWarmup {
		t.Fatalf("after 0.9 s of 1 s of warm-up the phase is %s", c.phase)
	}
	if c.Apply(at(1300), Tick{}); c.phase != engine.PhaseMeasurement {
		t.Fatalf("after the warm-up the phase is %s", c.phase)
	}
	c.PhaseSent(at(1800), engine.PhaseMeasurement)
	if c.Apply(at(3700), Tick{}); c.Stopping() || !c.Due().Equal(at(3800)) {
		t.Fatalf("stopping %v, due at %v", c.Stopping(), c.Due())
	}
	c.Apply(at(3800), Tick{})
	if c.reason != engine.StopDurationElapsed {
		t.Fatalf("the run goes on after its measurement: %q", c.reason)
	}
}

// TestStagesBeginAtTheirTime: once each, in order, at the time that the workload gives, and not after the end.
func TestStagesBeginAtTheirTime(t *testing.T) {
	level := 8
	w := engine.Workload{DurationSeconds: 6,
		Stages: []engine.Stage{{DurationSeconds: 2, Connections: &level}, {DurationSeconds: 1, Connections: &level},
			{DurationSeconds: 3, Connections: &level}}}
	c := fixed(w, "worker-0")
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var began []time.Duration
	apply := func(now time.Time, h Event) {
		for _, a := range c.Apply(now, h) {
			if s, ok := a.(BeginStage); ok {
				if s.Index != len(began) {
					t.Fatalf("stage %d after %d others", s.Index, len(began))
				}
				began = append(began, s.At.Sub(begin))
			}
		}
	}
	apply(begin, RunStarted{})
	apply(begin, Prepared{})
	apply(begin, WorkerChanged{ID: "worker-0", Status: engine.WorkerReady})
	// The store took its time before the run workers were told.
	const told = 40 * time.Millisecond
	apply(begin.Add(told/2), Tick{})
	c.PhaseSent(begin.Add(told), engine.PhaseMeasurement)
	for range 10 {
		if c.Stopping() {
			break
		}
		apply(c.Due(), Tick{})
	}
	if len(began) != 3 || began[0] != told || began[1] != told+2*time.Second || began[2] != told+3*time.Second ||
		c.reason != engine.StopDurationElapsed {
		t.Errorf("stages began at %v, the run ended by %q", began, c.reason)
	}
}
