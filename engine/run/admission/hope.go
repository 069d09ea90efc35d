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

// dialLimit is how long after a server's start its nodes may take to introduce themselves before it is said that
// there are none, and how long a run that is started in that time waits for them.
const dialLimit = 15 * time.Second

// dialled is what a run that waits for them is told besides.
var dialled = fmt.Sprintf("; the server has just started and its nodes are being dialled, for %s at most", dialLimit)

// hoping reports whether nodes that were not there yet may come in a moment.
func (d *Doorman) hoping() bool {
	d.mu.Lock()
	opened := d.opened
	d.mu.Unlock()
	if opened.IsZero() || time.Since(opened) >= dialLimit {
		return false
	}
	c := d.opts.Nodes.Capacity()
	return c.Coming > 0 || c.None && c.Nodes > 0 && !c.Drained
}

// hope notes that a run waits for nodes that are being dialled.
func (d *Doorman) hope(runID string, a *store.Admission) {
	if d.opts.WaitForNodes > 0 || placement.Ever(a.Nodes, runID, a.Works) || !d.hoping() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hopes[runID] = time.Now().Add(dialLimit)
}

// hoped reports whether a run waits for nodes that are being dialled.
func (d *Doorman) hoped(runID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, hoped := d.hopes[runID]
	return hoped
}

// despair ends the runs for which the nodes that were being dialled are not enough, or did not come. One for which
// there are nodes waits from then on like any other.
func (d *Doorman) despair(ctx context.Context, l store.Ledger, nodes []engine.NodeCapacity) {
	d.mu.Lock()
	// A run that was let wait after the ledger was read is not in it yet, and one that has ended never is again.
	maps.DeleteFunc(d.hopes, func(runID string, until time.Time) bool {
		return time.Now().After(until) &&
			!slices.ContainsFunc(l.Waiting, func(w store.Waiting) bool { return w.RunID == runID })
	})
	hopes := maps.Clone(d.hopes) // hope writes to the other while this one is read
	d.mu.Unlock()
	for _, w := range l.Waiting {
		until, hoped := hopes[w.RunID]
		fits := hoped && placement.Ever(nodes, w.RunID, w.Works)
		if !hoped || !fits && time.Now().Before(until) {
			continue
		}
		if !fits {
			if err := d.opts.GiveUp(ctx, w.RunID, d.vain(w, nodes)); err != nil {
				d.opts.Log.Warn().Err(err).Str("run_id", w.RunID).Msg("a run for which no nodes came could not be ended")
				continue
			}
		}
		d.mu.Lock()
		delete(d.hopes, w.RunID)
		d.mu.Unlock()
	}
}

// vain is why a run waited for nothing.
func (d *Doorman) vain(w store.Waiting, nodes []engine.NodeCapacity) string {
	var sc engine.Scenario
	sc.Workload.ConcurrentConnections = placement.Total(w.Works)
	if err := d.opts.Nodes.Capacity().Fits(sc); err != nil {
		return fmt.Sprintf("No nodes for it came in %s: %s", dialLimit, engine.Sentences(err))
	}
	return fmt.Sprintf("No nodes for it came in %s: the run %s", dialLimit, placement.Words(nodes, w.Works, 0))
}
