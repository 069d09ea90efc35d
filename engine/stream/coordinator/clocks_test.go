package coordinator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// TestClocksThatAreOff: a query that is not deployed yet goes to a server whose clock is another one. It is neither
// kept waiting until that has come to the time that was written down, nor given up since it has passed long ago.
func TestClocksThatAreOff(t *testing.T) {
	t.Parallel()
	for what, off := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(what, func(t *testing.T) {
			k := &catalogtest.Store{}
			opened := func(p *pipes, owner string, off time.Duration) *coordinator.Coordinator {
				c, err := coordinator.Open(t.Context(), coordinator.Options{Store: k, Connectors: p, Owner: owner,
					Now: func() time.Time { return time.Now().Add(off) }, Sources: system.Sources, Lease: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			refuses := &pipes{refuse: errors.New("connection refused")}
			first := opened(refuses, "one", 0)
			execute(t, first, "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId FROM run_events INTO s")
			within(t, "it was tried", func() bool { n, _, _ := refuses.counts(); return n > 1 })
			if err := first.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			still := &pipes{refuse: errors.New("connection refused")}
			second := opened(still, "two", off)
			defer func() { _ = second.Close(context.Background()) }()
			within(t, "it is tried again", func() bool { n, _, _ := still.counts(); return n > 1 })
			eventually(t, k, "q", catalog.Deploying)
			still.mu.Lock()
			still.refuse = nil
			still.mu.Unlock()
			eventually(t, k, "q", catalog.Running)
		})
	}
}
