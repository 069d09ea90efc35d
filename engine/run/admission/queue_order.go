package admission

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/store"
)

// fitInterval is how often it is said of a run that waits that there are nodes for it. It lies well below
// placement.BypassAfter, so that a server that is slow once lets nobody by.
const fitInterval = placement.BypassAfter / 6

// admissible is whose turn it is among those that wait.
type admissible struct {
	// start are those for which there is room now, at most one of each pool.
	start []store.QueuedRun
	// fit are those of which it is to be said that there are nodes for them.
	fit []string
}

// isPassedOver reports whether those behind a run are let by: for long, nobody has known nodes that could carry it.
func isPassedOver(w store.QueuedRun) bool { return w.Unfit >= placement.BypassAfter }

// nextAdmissions says whose turn it is. Of each pool that is the first for which there are nodes, or were a moment ago:
// it waits for its room, however small those behind it are, so that what is large is not kept waiting for ever by what
// is small.
func nextAdmissions(waiting []store.QueuedRun, nodes []engine.NodeCapacity) (t admissible) {
	blocked := map[string]bool{}
	for _, w := range waiting {
		stale := w.Unfit >= fitInterval
		if blocked[w.Pool] && !stale {
			continue
		}
		fits := placement.FitsWhenEmpty(nodes, w.RunID, w.Demands)
		if fits && stale {
			t.fit = append(t.fit, w.RunID)
		}
		if blocked[w.Pool] || !fits && isPassedOver(w) {
			continue
		}
		blocked[w.Pool] = true
		if fits && placement.Assign(nodes, w.RunID, w.Demands) != nil {
			t.start = append(t.start, w)
		}
	}
	return t
}

// waitingIDs are the names of those that wait.
func waitingIDs(waiting []store.QueuedRun) []string {
	all := make([]string, len(waiting))
	for i, w := range waiting {
		all[i] = w.RunID
	}
	return all
}
