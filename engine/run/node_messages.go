package run

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

// messageHandler brings what the nodes say to the runs that it is about.
type messageHandler struct{ s *Service }

// Receive hands a message to the loop of its run. A part of a run that is not live here is
// kept for who finishes the run.
func (h messageHandler) Receive(runID string, from nodes.Node, m protocol.FromNode) bool {
	l := h.s.runs.Get(runID)
	if l == nil {
		h.s.recovery.AddLeftovers(from, m)
		return false
	}
	l.inbox.Put(nodeMessage{from, m})
	if h.s.runs.Get(runID) != l {
		l.forwardUnprocessed() // its loop ended meanwhile, and may have looked for the last time
	}
	return true
}

// forwardUnprocessed gives what its loop did not come to any more to who finishes the run.
func (l *runLoop) forwardUnprocessed() {
	for f, ok := l.inbox.Take(); ok; f, ok = l.inbox.Take() {
		l.svc.recovery.AddLeftovers(f.node, f.message)
	}
}

// rejectMessage notes, once for each run worker and node, that a node speaks for what it does not
// carry: its certificate bounds what it can say to itself.
func (l *runLoop) rejectMessage(f nodeMessage, workerID string) {
	key := f.node.ID() + " of " + workerID
	if l.untrustedNodes[key] || len(l.untrustedNodes) >= maxRejectedNodes {
		return
	}
	if l.untrustedNodes == nil {
		l.untrustedNodes = map[string]bool{}
	}
	l.untrustedNodes[key] = true
	l.log.Warn().Str("node_id", f.node.ID()).Str("worker_id", workerID).Type("message", f.message).
		Msg("a node sent a message of a run worker that it does not carry; the message is ignored")
}

// maxRejectedNodes bounds how many lines of that kind a run can cause.
const maxRejectedNodes = 64

// OwnedRuns are the runs that this server owns. Its own node ends with it; a node elsewhere
// may have heard of another owner, once a lease has expired.
func (h messageHandler) OwnedRuns(remote bool) []protocol.OwnedRun { return h.s.runs.OwnedRuns(remote) }

// UnknownWorker remembers a run worker of a run that nobody carries here.
func (h messageHandler) UnknownWorker(from nodes.Node, w protocol.WorkerState) {
	h.s.recovery.AddUnknownWorker(from, w)
}

// PartQuarantined remembers a part that cannot be opened, for the log of its run.
func (h messageHandler) PartQuarantined(p protocol.QuarantinedPart) { h.s.recovery.AddQuarantined(p) }

// recoveryHost is the service as recovery sees it.
type recoveryHost struct {
	*ActiveRuns[*runLoop]
	s *Service
}

// RestoreTarget undoes what the preparation of a run started.
func (c recoveryHost) RestoreTarget(run engine.Run, plan *engine.Plan) string {
	return c.s.restoreTarget(run, plan)
}

// Publish offers the state of a run to those who watch it.
func (c recoveryHost) Publish(runID string, p *engine.LiveState, last bool) {
	c.s.hub.Publish(runID, p, last)
}

// ownRuns are the runs of the service as enrichments and the admission need them.
type ownRuns struct{ *Service }

// Claim takes a run for this server.
func (o ownRuns) Claim(ctx context.Context, runID string) error {
	_, err := o.recovery.Claim(ctx, runID, true)
	return err
}

// PublishFinished shows a run whose enrichment has changed after its end.
func (o ownRuns) PublishFinished(d *engine.RunDetail) {
	o.hub.Publish(d.RunID, live.FinishedState(d, time.Now()), false)
}

// StartWaiting starts a run that waits, however many its user has.
func (o ownRuns) StartWaiting(ctx context.Context, runID, by string) error {
	_, err := o.start(ctx, runID, by, 0)
	return err
}

// LogContext lets what plugins log in calls with the context reach the log of the run, while it is live here.
func (s *Service) LogContext(ctx context.Context, runID string) context.Context {
	return plugin.WithLog(ctx, func(line plugin.LogLine) {
		if l := s.runs.Get(runID); l != nil {
			l.plugins.Add(line, l.clock.Now())
		}
	})
}
