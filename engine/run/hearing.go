package run

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// hearing brings what the nodes say to the runs that it is about.
type hearing struct{ s *Service }

// Hear hands a message to the loop of its run. A part of a run that is not live here is
// kept for who finishes the run.
func (h hearing) Hear(runID string, from nodes.Node, m protocol.FromNode) bool {
	l := h.s.runs.Find(runID)
	if l == nil {
		h.s.recovery.Left(from, m)
		return false
	}
	l.inbox.Put(fromNode{from, m})
	if h.s.runs.Find(runID) != l {
		l.handOn() // its loop ended meanwhile, and may have looked for the last time
	}
	return true
}

// handOn gives what its loop did not come to any more to who finishes the run.
func (l *live) handOn() {
	for f, ok := l.inbox.Take(); ok; f, ok = l.inbox.Take() {
		l.svc.recovery.Left(f.node, f.m)
	}
}

// disbelieve notes, once for each run worker and node, that a node speaks for what it does not
// carry: its certificate bounds what it can say to itself.
func (l *live) disbelieve(f fromNode, workerID string) {
	key := f.node.ID() + " of " + workerID
	if l.disbelieved[key] || len(l.disbelieved) >= mostDisbelieved {
		return
	}
	if l.disbelieved == nil {
		l.disbelieved = map[string]bool{}
	}
	l.disbelieved[key] = true
	l.log.Warn().Str("node_id", f.node.ID()).Str("worker_id", workerID).Type("message", f.m).
		Msg("a node speaks for a run worker that it does not carry; it is not heard")
}

// mostDisbelieved bounds how many lines of that kind a run can cause.
const mostDisbelieved = 64

// Owned are the runs that this server owns. Its own node ends with it; a node elsewhere
// may have heard of another owner, once a lease has expired.
func (h hearing) Owned(remote bool) []protocol.OwnedRun { return h.s.runs.Owned(remote) }

// Stranger remembers a run worker of a run that nobody carries here.
func (h hearing) Stranger(from nodes.Node, w protocol.WorkerState) { h.s.recovery.Stranger(from, w) }

// Aside remembers a part that cannot be opened, for the log of its run.
func (h hearing) Aside(p protocol.AsidePart) { h.s.recovery.Aside(p) }

// carrier is the service as recovery sees it.
type carrier struct {
	*Registry[*live]
	s *Service
}

// SetBack undoes what the preparation of a run started.
func (c carrier) SetBack(run engine.Run, plan *engine.Plan) string { return c.s.setBack(run, plan) }

// Show offers the state of a run to those who watch it.
func (c carrier) Show(runID string, p *engine.Payload, last bool) { c.s.board.Show(runID, p, last) }

// heard lets what plugins log in calls with the context reach the log of the run, while it is live here.
func (s *Service) heard(ctx context.Context, runID string) context.Context {
	return plugin.WithLog(ctx, func(line plugin.LogLine) {
		if l := s.runs.Find(runID); l != nil {
			l.plugins.Add(line, l.clock.Now())
		}
	})
}
