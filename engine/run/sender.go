package run

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
)

// sender stores what is decided and tells the run workers: events in their order, and
// the absolute state.
type sender struct {
	*runLoop
	sequence  int64         // of the last event made
	lastStore *writer.Write // the last transition queued
	pending   []pendingPush
	lastState time.Time
	line      clock.StartReport
}

// pendingPush are events that wait for the store before they are sent.
type pendingPush struct {
	events   []engine.Event
	job      *writer.Write
	deadline time.Time
}

// change stores a transition and sends its events: after the store has them, or
// at once when they are urgent.
func (l *sender) change(t store.Transition, urgent bool) {
	now := l.clock.Now()
	t.RunID, t.Epoch = l.runID, l.epoch
	if t.To != "" {
		t.Rules = l.rules.Changed()
	}
	events := make([]engine.Event, len(t.Events))
	for i, e := range t.Events {
		l.sender.sequence++
		t.Events[i].CreatedAt = engine.At(now)
		e.RunID, e.SequenceID, e.CreatedAt = l.runID, l.sender.sequence, engine.At(now)
		events[i] = e
		if w := l.Worker(e.Data.WorkerID); w != nil {
			w.RecordSent(e)
		}
	}
	l.applyChange(t)
	j := l.writer.Transition(t, events)
	l.sender.lastStore = j
	if len(events) > 0 {
		p := pendingPush{events: events, job: j, deadline: now.Add(pushTimeout)}
		if urgent {
			p.deadline = now
		}
		l.sender.pending = append(l.sender.pending, p)
		if urgent {
			// Events go out in order: what waits before an urgent one waits no longer.
			for i := range l.sender.pending {
				l.sender.pending[i].deadline = now
			}
			l.sender.flush(now)
		}
	}
	if t.To != "" {
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
	} else if t.Phase != nil && *t.Phase != engine.PhaseNone {
		l.writeLog(engine.LogInfo, nil, "%s", runlog.PhaseMessage(*t.Phase))
	}
	l.publish(false)
}

// sendTargets stores and sends the targets of run workers, and what goes with them.
func (l *sender) sendTargets(a scaling.TargetChange, workers []*Worker, more ...engine.Event) {
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
	l.sender.change(store.Transition{From: []engine.Status{engine.StatusRunning}, Events: append(a.Events(to), more...),
		WorkerTargets: targets, WorkersExpected: l.ExpectedCount(l.life)}, false)
}

// flush sends the events whose write has ended, or whose time has come, in order.
func (l *sender) flush(now time.Time) {
	for len(l.sender.pending) > 0 {
		p := l.sender.pending[0]
		select {
		case <-p.job.Done():
		default:
			if now.Before(p.deadline) {
				return
			}
		}
		l.sender.pending = l.sender.pending[1:]
		all := l.Nodes()
		for _, e := range p.events {
			for _, n := range l.NodesFor(e, all) {
				l.send(n, e)
			}
			switch {
			case e.Type == engine.EventStart && e.Data.EffectiveAt != nil:
				l.sender.line.Expect(WorkerIDs(l.Workers))
			case e.Type == engine.EventSetPhase:
				l.life.PhaseSent(now, e.Data.Phase)
			case e.Data.StepNumber > 0:
				l.life.StepSent(now, e.Data.StepNumber)
			}
		}
	}
}

// send gives an event to a node. One that cannot have it is told of in the run's log: it
// follows the absolute state when it is back, and stops by itself when it is not.
func (l *sender) send(n nodes.Node, e engine.Event) {
	err := n.Send(protocol.RunEvent{Epoch: l.epoch, Event: e, AtMost: l.HasUnknownLoad()})
	l.spans.Sent(l.clock.Now(), n.ID(), e, err)
	if err != nil {
		l.writeLogWith(runlog.Details{"event": e.Type, "sequence_id": e.SequenceID, "node_id": n.ID()}, engine.LogWarning, nil,
			"The event %s (%d) could not be sent to the node %s: %v", e.Type, e.SequenceID, n.ID(), err)
	}
}

// repeatState repeats the absolute state, which heals lost events.
func (l *sender) repeatState() {
	if !l.life.Placed() || len(l.sender.pending) > 0 {
		return
	}
	state, own := l.sender.state(), l.WorkersByNode()
	for _, n := range l.Nodes() {
		_ = n.Send(state.ForWorkers(own[n], own[nil])) // to a node that has gone: it is repeated
	}
}

// state is the absolute state of the run.
func (l *sender) state() protocol.RunState {
	targets := make(map[string]engine.WorkerTarget, len(l.Workers))
	for _, w := range l.Workers {
		targets[w.ID] = w.Target()
	}
	return protocol.RunState{RunID: l.runID, Epoch: l.epoch, Status: l.life.Status(), Phase: l.life.Phase(),
		Started:      l.life.Started(),
		LastSequence: l.sender.sequence, Targets: targets, Step: l.search.step, StopReason: l.life.StopReason(),
		DrainTimeout: l.life.Drain(l.life.StopReason()), StartAt: l.life.StartAt(), AtMost: l.HasUnknownLoad()}
}

// startLead is how far ahead START lies, should it be decided now.
func (l *sender) startLead() time.Duration {
	if l.life.Started() {
		return 0
	}
	var ways []clock.NodeTiming
	for _, n := range l.Nodes() {
		ways = append(ways, l.svc.nodes.Timing(n.ID()))
	}
	return clock.StartDelay(ways, l.writer.LastWriteDuration())
}

// whenStored closes done once everything decided so far is stored.
func (l *sender) whenStored(done chan struct{}) {
	last := l.sender.lastStore
	if last == nil {
		close(done)
		return
	}
	go func() {
		select {
		case <-last.Done():
		case <-l.svc.lifetime.Done():
		}
		close(done)
	}()
}
