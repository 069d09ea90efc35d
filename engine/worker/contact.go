package worker

import (
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// maxStatuses bounds how many are remembered until they are acknowledged: more than a node
// sends within the limit of contact, so that those that are forgotten are none any more.
const maxStatuses = 256

// statusLog are those that the node has sent. They are numbered over all streams, and the
// numbers of a later process are higher: what acknowledges one says how things were when
// that very one was sent.
type statusLog struct {
	mu       sync.Mutex
	sequence int64
	sent     [maxStatuses]sentStatus
}

// sentStatus was sent at a time, which the node's own clock calls line.
type sentStatus struct {
	sequence int64
	at, line time.Time
}

// next numbers a Status that is about to be sent.
func (s *statusLog) next(now, line time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sequence == 0 {
		s.sequence = now.UnixMicro()
	}
	s.sequence++
	s.sent[s.sequence%maxStatuses] = sentStatus{s.sequence, now, line}
	return s.sequence
}

// at is when a Status was sent; false when nobody knows.
func (s *statusLog) at(sequence int64) (sent sentStatus, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sequence <= 0 {
		return sent, false
	}
	sent = s.sent[sequence%maxStatuses]
	return sent, sent.sequence == sequence
}

// report sends the node's status to every server, which acknowledges it.
func (n *Node) report() { n.out.each(n.reportTo) }

// reportTo sends the node's status to one server, with what its clock is to the node's.
func (n *Node) reportTo(s *session) {
	n.mu.Lock()
	draining, refusal := n.draining || n.drainRequested, n.refusal
	n.mu.Unlock()
	now, line := time.Now(), n.clock.Now()
	ahead, wrong := s.clocks.estimate(line)
	if wrong > 0 {
		ahead -= n.clock.Offset() // the page shows the machine's clock as it is set now
	}
	s.out.Put(protocol.Status{
		ClockOffset: ahead,
		ClockError:  wrong,
		Sequence:    n.statuses.next(now, line),
		NodeID:      n.opts.NodeID,
		Alive:       true,
		AcceptingWork: !draining &&
			refusal == "",
		Refusal:   refusal,
		Draining:  draining,
		Resources: *n.resources.Load(),
		At:        now,
	})
}

// acknowledgedStatus hands an acknowledgement to the run workers that it is about.
func (n *Node) acknowledgedStatus(s *session, ack protocol.StatusAck) {
	for _, run := range ack.Runs {
		if len(n.workersOf(run.RunID)) > 0 {
			n.dispatchRunMessage(
				s,
				run.RunID,
				run.Epoch,
				protocol.StatusAck{Sequence: ack.Sequence, Runs: []protocol.OwnedRun{run}},
			)
		}
	}
}

// acceptsEpoch reports whether a message of that epoch counts. Who owns the run in a later one has
// taken it over, and its former owner has nothing to say any more. The new one's events are
// numbered by what is stored, which may be less than what the one before had sent.
func (w *runWorker) acceptsEpoch(epoch int64) bool {
	if epoch < w.epoch {
		return false
	}
	if epoch > w.epoch {
		w.epoch, w.sequence = epoch, 0
		w.mu.Lock()
		w.state.LastSequence = 0
		w.mu.Unlock()
	}
	return true
}

// recordContact takes the owner's acknowledgement of a Status of the node: contact as it was when
// that was sent, and no later.
func (w *runWorker) recordContact(ack protocol.StatusAck) {
	sent, known := w.node.statuses.at(ack.Sequence)
	if !known || !w.acceptsEpoch(ack.Runs[0].Epoch) || w.hadContact && !sent.at.After(w.contact) {
		return
	}
	if w.loadStarted && !time.Now().Before(w.deadline()) {
		w.outOfContact(time.Since(w.contact)) // too late: its load may be with others by now
		return
	}
	w.contact, w.hadContact = sent.at, true
	if w.load != nil {
		w.load.SetDeadline(w.deadline())
		w.tryBegin()
	}
}

// deadline is until when the worker may issue operations.
func (w *runWorker) deadline() time.Time {
	if !w.hadContact {
		return time.Time{}
	}
	return protocol.EndOfLoad(w.contact, w.node.opts.ContactLimit, w.plannedEnd())
}

// plannedEnd is when the load ends by plan, zero before the measurement: who takes a run over in its warm-up begins the
// measurement later than was planned, and the end moves with it.
func (w *runWorker) plannedEnd() time.Time {
	if order(w.phase) < order(engine.PhaseMeasurement) {
		return time.Time{}
	}
	return w.endsAt
}

// setEnd takes when the load ends by plan, by the clock of who has assigned the run worker. An owner of a later epoch
// says it by another clock: it can only put an end off that is known.
func (w *runWorker) setEnd(at time.Time, epoch int64) {
	if at.IsZero() || epoch < w.a.Epoch {
		return
	}
	end := time.Now().Add(at.Round(0).Sub(w.ownerNow()))
	if epoch > w.a.Epoch && (w.endsAt.IsZero() || !end.After(w.endsAt)) {
		return
	}
	w.endsAt = end
	w.followEnd()
}

// followEnd has the load end when it is planned to.
func (w *runWorker) followEnd() {
	if w.load != nil && w.hadContact {
		w.load.SetDeadline(w.deadline())
	}
	w.tryEnd()
}

// tryEnd ends the load in order when its planned end has come and the owner of the run is out of reach: as the STOP
// does that has not come. While there is contact it is about to.
func (w *runWorker) tryEnd() {
	due := w.plannedEnd()
	if w.stopping || due.IsZero() || !w.loadStarted {
		return
	}
	if with := w.contact.Add(protocol.EndGrace); with.After(due) {
		due = with
	}
	if wait := time.Until(due); wait > 0 {
		w.endTimer.Reset(wait)
		return
	}
	w.log(
		engine.LogWarning,
		"%s has ended its load by itself at the planned end of the run: for %.0f s no owner of the run "+
			"has acknowledged what its node reports",
		w.a.WorkerID,
		time.Since(w.contact).Seconds(),
	)
	w.stop(protocol.DrainTimeoutOf(w.a.Workload, engine.StopDurationElapsed))
}

// watch stops the worker by itself when the owner of its run has been silent for too long.
func (w *runWorker) watch() {
	if silence := time.Since(w.contact); silence >= w.node.opts.ContactLimit && !w.stopping {
		w.outOfContact(silence)
	}
}

// outOfContact ends the load: others may have it from soon on, and what is in flight must
// have left the target by then.
func (w *runWorker) outOfContact(silence time.Duration) {
	w.failWithin(contactDrainTimeout, protocol.OutOfContact(w.a.WorkerID, silence))
}

// contactDrainTimeout is how long operations in flight may take after the deadline before they are
// cancelled. With the time that takes it is less than the margin after which the load is
// given to others.
const contactDrainTimeout = time.Second
