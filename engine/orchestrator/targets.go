package orchestrator

import (
	"maps"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/store"
)

// aimed is a run worker with the target that it is told.
type aimed struct {
	id     string
	group  int
	target engine.WorkerTarget
}

// aiming is what the targets of one change have in common.
type aiming struct {
	reason string
	// at is when the change takes effect, ramp how long it takes.
	at     time.Time
	ramp   time.Duration
	stepID string
	step   control.Step
}

// events are the events of a change, one explicit one for each run worker. A
// run worker is all of its group, and the group goes with it: its retirement
// is told to the group.
func (a aiming) events(workers []aimed) []engine.Event {
	out := make([]engine.Event, 0, len(workers))
	for _, w := range workers {
		at, group, n := engine.At(a.at), w.group, w.target.TargetConnections
		d := engine.EventData{Scope: engine.ScopeWorker, WorkerID: w.id, WorkerGroupID: &group, TargetConnections: &n,
			TargetQPS:   w.target.TargetQPS,
			EffectiveAt: &at, Reason: a.reason, RampSeconds: a.ramp.Seconds(),
			StepID: a.stepID, StepNumber: a.step.Number, SettleSeconds: a.step.Settle.Seconds(),
			StepSeconds: a.step.Length.Seconds()}
		if a.reason == engine.TargetRetire {
			d.Scope = engine.ScopeWorkerGroup
		}
		out = append(out, engine.Event{Type: engine.EventSetWorkerTarget, Data: d})
	}
	return out
}

// stepID names a step of a search, the same in its events, its history and the payload.
func stepID(runID string, number int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(runID+"/"+strconv.Itoa(number))).String()
}

// shareRate gives each run worker an equal part of a rate.
func shareRate(workers []*runWorker, rate float64) {
	for _, w := range workers {
		own := rate / float64(len(workers))
		w.rate = &own
	}
}

// shareConnections spreads a number of connections over the run workers.
func shareConnections(workers []*runWorker, total int) {
	if len(workers) == 0 {
		return
	}
	for i, n := range engine.Spread(total, len(workers)) {
		workers[i].connections = n
	}
}

// firstRate is the rate of a run before anything changes it, nil in a closed
// loop and where the workload paces itself.
func firstRate(sc engine.Scenario) *float64 {
	w := loadOf(sc)
	if rate := w.StartRate(); w.OpenLoop() && w.Arrival != engine.ArrivalWorkload && rate > 0 {
		return &rate
	}
	return nil
}

// firstTargets are the targets that a run begins with, by run worker.
func firstTargets(sc engine.Scenario, shares []int) map[string]engine.WorkerTarget {
	out := make(map[string]engine.WorkerTarget, len(shares))
	for i, n := range shares {
		t := engine.WorkerTarget{TargetConnections: n}
		if rate := firstRate(sc); rate != nil {
			own := *rate / float64(len(shares))
			t.TargetQPS = &own
		}
		out[workerID(i)] = t
	}
	return out
}

func (w *runWorker) target() engine.WorkerTarget {
	return engine.WorkerTarget{TargetConnections: w.connections, TargetQPS: w.rate}
}

// tell stores and sends the targets of run workers, and what goes with them.
func (l *live) tell(a aiming, workers []*runWorker, more ...engine.Event) {
	if a.at.IsZero() {
		a.at = l.clock.Now()
	}
	to := make([]aimed, len(workers))
	targets := make(map[string]engine.WorkerTarget, len(workers))
	for i, w := range workers {
		to[i] = aimed{id: w.id, group: w.group, target: w.target()}
		targets[w.id] = to[i].target
	}
	// Who retires is among the targets too: what is stored says so even when its events are missed.
	for _, w := range l.workers {
		if w.retiring {
			targets[w.id] = w.target()
		}
	}
	l.change(store.Transition{From: []engine.Status{engine.StatusRunning}, Events: append(a.events(to), more...),
		WorkerTargets: targets, WorkersExpected: l.expected()}, false)
}

// expected is how many run workers the run has: those that are not needed any
// more, and those that never came to carry load, are none of them.
func (l *live) expected() int {
	n := 0
	for _, w := range l.workers {
		if !w.retiring && (w.state.Status != engine.WorkerFailed || l.life.Carried(w.id) || !l.life.Started()) {
			n++
		}
	}
	return n
}

// showTargets makes the targets of a change those of the run in memory.
func showTargets(r *engine.Run, t store.Transition) {
	if t.WorkersExpected > 0 {
		r.WorkersExpected = t.WorkersExpected
	}
	if len(t.WorkerTargets) == 0 {
		return
	}
	all := maps.Clone(r.WorkerTargets)
	if all == nil {
		all = map[string]engine.WorkerTarget{}
	}
	maps.Copy(all, t.WorkerTargets)
	r.WorkerTargets = all
}

// stageBegan tells what a stage asks of each run worker. Run workers that
// follow the stages by themselves do so to the millisecond, and take the events for a record.
func (l *live) stageBegan(a lifecycle.BeginStage) {
	if followed(l.sc) {
		l.followRates(l.clock.Now())
		return
	}
	s := l.sc.Workload.Stages[a.Index]
	workers := l.carrying()
	if s.TargetQPS != nil {
		shareRate(workers, *s.TargetQPS)
	} else {
		shareConnections(workers, int(s.Level()))
	}
	about := aiming{reason: engine.TargetStage, at: a.At}
	if s.Ramp != engine.RampStep {
		about.ramp = s.Duration()
	}
	l.tell(about, workers)
}
