package worker

import (
	"sync"

	"github.com/loadstone-db/loadstone/engine/control"
)

// outbox is the node's mailbox for the server, which outlives sessions, and counts the
// lines of the runs' logs that it had to drop.
type outbox struct {
	*control.Mailbox[control.FromNode]

	mu    sync.Mutex
	lines map[string]int64 // dropped, by run
}

func newOutbox() *outbox {
	o := &outbox{lines: map[string]int64{}}
	o.Mailbox = control.NewMailbox(control.PolicyFromNode, func(m control.FromNode) {
		if line, ok := m.(control.Log); ok {
			o.dropLines(line.RunID, 1)
		}
	})
	return o
}

// linesDropped is how many lines of a run's log were dropped so far.
func (o *outbox) linesDropped(runID string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines[runID]
}

// dropLines counts lines that were dropped, here or before they came here.
func (o *outbox) dropLines(runID string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines[runID] += int64(n)
}
