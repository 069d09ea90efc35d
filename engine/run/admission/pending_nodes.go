package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/store"
)

// dialTimeout is how long after a server's start its nodes may take to introduce themselves before it is said that
// there are none, and how long a run that is started in that time waits for them.
const dialTimeout = 15 * time.Second

// dialingNote is what a run that waits for them is told besides.
var dialingNote = fmt.Sprintf(
	"; the server has just started and its nodes are being dialled, for %s at most",
	dialTimeout,
)

// nodesPending reports whether nodes that were not there yet may come in a moment.
func (d *Controller) nodesPending() bool {
	d.mu.Lock()
	opened := d.dialDeadline
	d.mu.Unlock()
	if opened.IsZero() || time.Since(opened) >= dialTimeout {
		return false
	}
	c := d.opts.Nodes.Capacity()
	return c.Coming > 0 || c.None && c.Nodes > 0 && !c.Drained
}

// addPending notes that a run waits for nodes that are being dialled.
func (d *Controller) addPending(runID string, a *store.Admission) {
	if d.opts.WaitForNodes > 0 || placement.FitsWhenEmpty(a.Nodes, runID, a.Demands) || !d.nodesPending() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[runID] = time.Now().Add(dialTimeout)
}

// isPending reports whether a run waits for nodes that are being dialled.
func (d *Controller) isPending(runID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, waits := d.pending[runID]
	return waits
}

// failExpired ends the runs for which the nodes that were being dialled are not enough, or did not come. One for which
// there are nodes waits from then on like any other.
func (d *Controller) failExpired(ctx context.Context, l store.Ledger, nodes []engine.NodeCapacity) {
	d.mu.Lock()
	// A run that was let wait after the ledger was read is not in it yet, and one that has ended never is again.
	maps.DeleteFunc(d.pending, func(runID string, until time.Time) bool {
		return time.Now().After(until) &&
			!slices.ContainsFunc(l.Queued, func(w store.QueuedRun) bool { return w.RunID == runID })
	})
	pending := maps.Clone(d.pending) // addPending writes to the other while this one is read
	d.mu.Unlock()
	for _, w := range l.Queued {
		until, waits := pending[w.RunID]
		fits := waits && placement.FitsWhenEmpty(nodes, w.RunID, w.Demands)
		if !waits || !fits && time.Now().Before(until) {
			continue
		}
		if !fits {
			if err := d.opts.Runs.Cancel(ctx, w.RunID, engine.StopSetupFailure, d.timeoutMessage(w, nodes)); err != nil {
				d.opts.Log.Warn().Err(err).Str("run_id", w.RunID).Msg("a run for which no nodes came could not be ended")
				continue
			}
		}
		d.mu.Lock()
		delete(d.pending, w.RunID)
		d.mu.Unlock()
	}
}

// timeoutMessage is why a run waited for nothing.
func (d *Controller) timeoutMessage(w store.QueuedRun, nodes []engine.NodeCapacity) string {
	var sc engine.Scenario
	sc.Workload.ConcurrentConnections = placement.Total(w.Demands)
	if err := d.opts.Nodes.Capacity().Fits(sc); err != nil {
		return fmt.Sprintf("No nodes for it came in %s: %s", dialTimeout, engine.ErrorText(err))
	}
	return fmt.Sprintf("No nodes for it came in %s: the run %s", dialTimeout, placement.WaitReason(nodes, w.Demands, 0))
}
