package orchestrator

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
	"github.com/loadstone-db/loadstone/engine/fleet"
)

// push sends the events whose write has ended, or whose time has come, in order.
func (l *live) push(now time.Time) {
	for len(l.pending) > 0 {
		p := l.pending[0]
		select {
		case <-p.job.Done():
		default:
			if now.Before(p.deadline) {
				return
			}
		}
		l.pending = l.pending[1:]
		for _, e := range p.events {
			for _, n := range l.nodes() {
				n.Send(control.RunEvent{Epoch: l.epoch, Event: e})
			}
			switch {
			case e.Type == engine.EventSetPhase:
				l.life.Entered(now, e.Data.Phase)
			case e.Data.StepNumber > 0:
				l.life.Stepped(now, e.Data.StepNumber)
			}
		}
	}
}

// nodes are the nodes that host workers of the run.
func (l *live) nodes() []fleet.Node {
	var found []fleet.Node
	seen := map[fleet.Node]bool{}
	for _, w := range l.workers {
		if w.node != nil && !seen[w.node] {
			seen[w.node] = true
			found = append(found, w.node)
		}
	}
	return found
}
