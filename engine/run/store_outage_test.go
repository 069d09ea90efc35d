package run

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestTheControlStoreIsBlamedForWantOfContactAlone: a node that is shut down while the store is away, or a moment after
// it is back, has taken its run workers along by itself.
func TestTheControlStoreIsBlamedForWantOfContactAlone(t *testing.T) {
	const away = "the control store was away for 40 s, from 2026-11-29T20:00:00Z on"
	lonely := protocol.OutOfContact("worker-1", time.Minute)
	shut := &engine.Error{Code: engine.CodeUnavailable, Message: "The node is shutting down."}
	blamed := "worker-1 stopped by itself: " + away + ", and a server that cannot renew its lease of a run may not go on " +
		"with its load."
	for _, c := range []struct {
		err        *engine.Error
		away, want string
	}{{lonely, away, blamed}, {lonely, "", lonely.Message}, {shut, away, shut.Message}, {nil, away, ""}} {
		if got := failureText(protocol.WorkerState{WorkerID: "worker-1", Err: c.err}, c.away); got != c.want {
			t.Errorf("%v, %q: %q", c.err, c.away, got)
		}
	}
}
