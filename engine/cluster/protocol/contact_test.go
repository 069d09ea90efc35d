package protocol

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestARunWorkerWithoutContactIsToldApart: by what its node of any version says of it, and from one that went with its
// node.
func TestARunWorkerWithoutContactIsToldApart(t *testing.T) {
	said := func(text string) *engine.Error { return &engine.Error{Code: engine.CodeUnavailable, Message: text} }
	for name, c := range map[string]struct {
		err  *engine.Error
		want bool
	}{
		"without contact": {OutOfContact("worker-1", 61*time.Second), true},
		"the same, by a node of an earlier version": {said("worker-1 stopped by itself: for 60 s no owner of the run has " +
			"acknowledged what its node reports."), true},
		"its node was shut down":  {said("The node is shutting down."), false},
		"it heard no START":       {said("worker-1 was ready, and heard no START for 120 s."), false},
		"another one's sentence":  {OutOfContact("worker-11", time.Minute), false},
		"the disk of its node":    {said("worker-1 stopped by itself: the disk of its node is full."), false},
		"another kind of failure": {&engine.Error{Code: engine.CodeConflict, Message: OutOfContact("worker-1", 0).Message}, false},
		"none":                    {nil, false},
	} {
		if got := (WorkerState{WorkerID: "worker-1", Err: c.err}).WasOutOfContact(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
