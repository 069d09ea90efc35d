// This part has what is decided stored, and tells the run workers of it: events in their order, and the absolute state.

package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store"
)

// storeChange stores a transition and sends its events: after the store has them, or
// at once when they are urgent.
func (l *runLoop) storeChange(t store.Transition, urgent bool) {
	now := l.clock.Now()
	t.RunID, t.Epoch = l.runID, l.epoch
	if t.To != "" {
		t.Rules = l.rules.Changed()
	}
	events := l.sender.number(now, l.runID, t.Events)
	for _, e := range events {
		if w := l.Worker(e.Data.WorkerID); w != nil {
			w.RecordSent(e)
		}
	}
	l.applyChange(t)
	l.sender.queue(now, events, l.writer.Transition(t, events), urgent)
	if urgent && len(events) > 0 {
		l.flush(now)
	}
	l.logChange(t)
	l.publish(false)
}

// logChange tells the run's log of a new status or phase.
func (l *runLoop) logChange(t store.Transition) {
	if t.To == "" {
		if t.Phase != nil && *t.Phase != engine.PhaseNone {
			l.writeLog(engine.LogInfo, nil, "%s", runlog.PhaseMessage(*t.Phase))
		}
		return
	}
	level, text := engine.LogInfo, runlog.StatusMessage(t.To)
	if t.CancellationReason != "" {
		text += ": " + t.CancellationReason
		level = engine.LogWarning
	}
	if t.To == engine.StatusFailed {
		level = engine.LogError
	}
	about := runlog.Details{"status": t.To}
	if t.StopReason != "" {
		about["stop_reason"], about["drain_seconds"] = t.StopReason, l.life.Drain(t.StopReason).Seconds()
	}
	l.writeLogWith(about, level, nil, "%s", text)
}

// sendTargets stores and sends the targets of run workers, and what goes with them.
func (l *runLoop) sendTargets(a scaling.TargetChange, workers []*Worker, more ...engine.Event) {
	if a.At.IsZero() {
		a.At = l.clock.Now()
	}
	to := make([]scaling.Target, len(workers))
	targets := make(map[string]engine.WorkerTarget, len(workers))
	for i, w := range workers {
		to[i] = scaling.Target{WorkerID: w.ID, Group: w.Group, WorkerTarget: w.Target()}
		targets[w.ID] = to[i].WorkerTarget
	}
	// Who retires is among the targets too: what is stored says so even when its events are missed. So is who was
	// lost: whether others have its load.
	for _, w := range l.Workers {
		if w.Retiring || w.Dead {
			targets[w.ID] = w.Target()
		}
	}
	l.storeChange(store.Transition{From: []engine.Status{engine.StatusRunning}, Events: append(a.Events(to), more...),
		WorkerTargets: targets, WorkersExpected: l.ExpectedCount(l.life)}, false)
}

// flush sends the events whose write has ended, or whose time has come, in order.
func (l *runLoop) flush(now time.Time) {
	measured := false
	for events, ok := l.sender.next(now); ok; events, ok = l.sender.next(now) {
		all := l.Nodes()
		for _, e := range events {
			for _, n := range l.NodesFor(e, all) {
				l.sendEvent(n, e)
			}
			switch {
			case e.Type == engine.EventStart && e.Data.EffectiveAt != nil:
				l.line.Expect(WorkerIDs(l.Workers))
			case e.Type == engine.EventSetPhase:
				l.life.PhaseSent(now, e.Data.Phase)
				measured = measured || e.Data.Phase == engine.PhaseMeasurement
			case e.Data.StepNumber > 0:
				l.life.StepSent(now, e.Data.StepNumber)
			}
		}
	}
	if measured {
		l.repeatState() // with the end of the run, which is known now
	}
}

// sendEvent gives an event to a node. One that cannot have it is told of in the run's log: it
// follows the absolute state when it is back, and stops by itself when it is not.
func (l *runLoop) sendEvent(n nodes.Node, e engine.Event) {
	err := n.Send(protocol.RunEvent{Epoch: l.epoch, Event: e, AtMost: l.HasUnknownLoad()})
	l.spans.Sent(l.clock.Now(), n.ID(), e, err)
	if err != nil {
		l.writeLogWith(
			runlog.Details{"event": e.Type, "sequence_id": e.SequenceID, "node_id": n.ID()},
			engine.LogWarning,
			nil,
			"The event %s (%d) could not be sent to the node %s: %v",
			e.Type,
			e.SequenceID,
			n.ID(),
			err,
		)
	}
}

// repeatState repeats the absolute state, which heals lost events.
func (l *runLoop) repeatState() {
	if !l.life.Placed() || !l.sender.idle() {
		return
	}
	state, own := l.state(), l.WorkersByNode()
	for _, n := range l.Nodes() {
		_ = n.Send(state.ForWorkers(own[n], own[nil])) // to a node that has gone: it is repeated
	}
}

// state is the absolute state of the run.
func (l *runLoop) state() protocol.RunState {
	targets := make(map[string]engine.WorkerTarget, len(l.Workers))
	for _, w := range l.Workers {
		targets[w.ID] = w.Target()
	}
	return protocol.RunState{RunID: l.runID, Epoch: l.epoch, Status: l.life.Status(), Phase: l.life.Phase(),
		Started:      l.life.Started(),
		LastSequence: l.sender.sequence, Targets: targets, Step: l.search.step, StopReason: l.life.StopReason(),
		DrainTimeout: l.life.Drain(l.life.StopReason()), StartAt: l.life.StartAt(), EndAt: l.life.PlannedEnd(),
		AtMost: l.HasUnknownLoad()}
}

// startLead is how far ahead START lies, should it be decided now.
func (l *runLoop) startLead() time.Duration {
	if l.life.Started() {
		return 0
	}
	var ways []clock.NodeTiming
	for _, n := range l.Nodes() {
		ways = append(ways, l.svc.nodes.Timing(n.ID()))
	}
	return clock.StartDelay(ways, l.writer.LastWriteDuration())
}
