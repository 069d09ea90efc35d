package nodes

import (
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Fragments is the way by which a node runs fragments of continuous queries, nil where it is not there now, or runs
// none.
func (f *Fleet) Fragments(id string) protocol.FragmentRunner {
	f.mu.Lock()
	at := f.byID[id]
	f.mu.Unlock()
	if at == nil {
		return nil
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.session == "" {
		return nil
	}
	r, _ := at.end.(protocol.FragmentRunner)
	return r
}
