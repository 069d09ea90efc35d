package worker

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// openTimeout is how long a step waits beyond its settling time for connections
// that are not open yet.
const openTimeout = 10 * time.Second

// openPollInterval is how often it looks.
const openPollInterval = 50 * time.Millisecond

// stepping is the step of a search that a run worker is in. The worker cuts its
// ticks at the step's borders, so that a tick lies in one step as a whole or in none.
type stepping struct {
	protocol.Step
	begun, settled time.Time // zero until it is so
	over           bool
	missing        int // connections that were not open when it was settled
	timer          *time.Timer
}

// due fires when the step has settled, and when it is over; nil without a step.
func (s *stepping) due() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

// halt ends the step; its number stays.
func (s *stepping) halt() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer, s.settled = nil, time.Time{}
}

// tag says on a snapshot which step it lies in.
func (s *stepping) tag(snap *engine.WorkerSnapshot) {
	if s.settled.IsZero() {
		return
	}
	snap.Step, snap.StepOver = s.Number, s.over
	if s.over {
		snap.StepMissing = max(min(s.missing, snap.TargetConnections-snap.ActiveConnections), 0)
	}
}

// stepOf reads the step of an event.
func stepOf(d engine.EventData) protocol.Step {
	length := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return protocol.Step{Number: d.StepNumber, Settle: length(d.SettleSeconds), Length: length(d.StepSeconds)}
}

// enterStep begins a step that the worker is not in yet. What waits for a
// connection from the step before is dropped: it would be measured in the wrong one.
func (w *runWorker) enterStep(s protocol.Step) {
	if s.Number <= w.step.Number || w.stopping {
		return
	}
	if w.load != nil && w.loadPhase != "" {
		w.collect()
		w.load.DropQueued()
	}
	w.step.halt()
	w.step = stepping{Step: s}
	if w.loadStarted {
		w.beginStep(w.line.Load().Now())
	}
}

// beginStep lets the step settle, once there is load.
func (w *runWorker) beginStep(now time.Time) {
	if w.step.Number == 0 || !w.step.begun.IsZero() {
		return
	}
	w.load.SetStep(uint16(min(w.step.Number, 1<<16-1)))
	w.step.begun = now
	w.step.timer = time.NewTimer(w.step.Settle)
}

// stepDue ends the settling of a step, or its measurement.
func (w *runWorker) stepDue(now time.Time) {
	s := &w.step
	if w.stopping || s.over {
		return
	}
	if !s.settled.IsZero() {
		s.over = true
		w.collect()
		s.halt()
		return
	}
	open, target := w.load.Connections()
	if open != target && now.Sub(s.begun) < s.Settle+openTimeout {
		s.timer.Reset(openPollInterval)
		return
	}
	w.collect()
	s.settled, s.missing = now, max(target-open, 0)
	w.ticker.Reset(protocol.HeartbeatInterval)
	s.timer.Reset(s.Length)
}

// setRate changes the rate of an open loop; it is the worker's own. atMost is that of aim.
func (w *runWorker) setRate(rate float64, ramp time.Duration, atMost bool) {
	now := w.a.Workload.StartRate() / w.wholeRunRate(1)
	if w.rate != nil {
		now = *w.rate
	}
	cut := atMost && time.Now().Before(w.rateReached)
	if atMost {
		rate, ramp = min(rate, now), 0
	}
	if math.Abs(rate-now) <= 1e-9*now && !cut || rate < 0 || w.follows() || w.stopping {
		return
	}
	w.rate, w.rateReached = &rate, time.Now().Add(ramp)
	if w.loadStarted {
		w.load.SetRate(w.wholeRunRate(rate), ramp)
	}
}

// wholeRunRate is the rate of the whole run when each run worker has so much: the
// language of the load, which takes its share.
func (w *runWorker) wholeRunRate(own float64) float64 { return own * float64(max(w.a.Workers, 1)) }
