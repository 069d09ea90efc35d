package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/system"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
)

// silent is a store that does not answer while it hangs, and whose answers to who renews a lease in good time are lost
// while it loses them.
type silent struct {
	*catalogtest.Store
	hangs, loses atomic.Bool
}

func (s *silent) wait(ctx context.Context) error {
	for s.hangs.Load() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return ctx.Err()
}

func (s *silent) CatalogContents(ctx context.Context) (catalog.Contents, error) {
	if err := s.wait(ctx); err != nil {
		return catalog.Contents{}, err
	}
	return s.Store.CatalogContents(ctx)
}

func (s *silent) ClaimQueries(ctx context.Context, owner string, lease time.Duration) (int, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	if until, bounded := ctx.Deadline(); bounded && time.Until(until) < 2*time.Second && s.loses.Load() {
		return 0, errors.New("the answer is lost") // a look has more time
	}
	return s.Store.ClaimQueries(ctx, owner, lease)
}

func openOver(t *testing.T, k coordinator.Options) *coordinator.Coordinator {
	t.Helper()
	c, err := coordinator.Open(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// TestNothingRunsLongerThanItsLease: a look that hangs at the store for longer than a lease does not keep the server
// from ending what another one begins then. (Found by the simulation: a query ran on two servers.)
func TestNothingRunsLongerThanItsLease(t *testing.T) {
	t.Parallel()
	k, one, two := &catalogtest.Store{}, &pipes{}, &pipes{}
	store := &silent{Store: k}
	sources := "CREATE LOGICAL SOURCE run_events(timestamp TIMESTAMP, runId TEXT, event TEXT, status TEXT, phase TEXT, " +
		"reason TEXT); CREATE PHYSICAL SOURCE FOR run_events TYPE SYSTEM SET('run_events' AS SOURCE.STREAM)"
	first := openOver(t, coordinator.Options{Store: store, Connectors: one, Owner: "one", Sources: sources,
		Lease: 2 * time.Second})
	execute(t, first, sinks)
	eventually(t, k, "q", catalog.Running)
	store.hangs.Store(true)
	second := openOver(t, coordinator.Options{Store: k, Connectors: two, Owner: "two", Sources: sources,
		Lease: 2 * time.Second})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		_, there, _ := two.counts()
		if _, here, _ := one.counts(); there == 1 {
			if here != 0 {
				t.Error("it runs on two servers")
			}
			break
		} else if time.Now().After(end) {
			t.Fatal("nobody goes on")
		}
	}
	store.hangs.Store(false)
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { // it lives, and goes on again
		if _, here, _ := one.counts(); here == 1 {
			break
		} else if time.Now().After(end) {
			t.Fatal("the first server does not go on")
		}
	}
}

// TestALeaseThatALookHasGotBackEnds like any other, though nobody renews it. (Found by the simulation: a query ran on
// two servers.)
func TestALeaseThatALookHasGotBackEnds(t *testing.T) {
	t.Parallel()
	k, one, two := &catalogtest.Store{}, &pipes{}, &pipes{}
	store := &silent{Store: k}
	options := coordinator.Options{Store: store, Connectors: one, Owner: "one", Sources: system.Sources,
		Lease: 2 * time.Second}
	first := openOver(t, options)
	execute(t, first, sinks)
	eventually(t, k, "q", catalog.Running)
	here := func(n int) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			if _, open, _ := one.counts(); open == n {
				return
			} else if time.Now().After(end) {
				t.Fatalf("%d sinks are open, not %d", open, n)
			}
		}
	}
	store.hangs.Store(true)
	here(0)
	store.loses.Store(true)
	store.hangs.Store(false)
	here(1)
	store.hangs.Store(true)
	options.Store, options.Connectors, options.Owner = k, two, "two"
	openOver(t, options)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, there, _ := two.counts(); there == 1 {
			break
		} else if time.Now().After(end) {
			t.Fatal("nobody goes on")
		}
	}
	if _, open, _ := one.counts(); open != 0 {
		t.Error("it runs on two servers")
	}
	store.hangs.Store(false)
}

// TestAWatchEndsWhileTheStoreIsSilent: who has gone away is not kept, and the second one does not wait for the first.
func TestAWatchEndsWhileTheStoreIsSilent(t *testing.T) {
	t.Parallel()
	store := &silent{Store: &catalogtest.Store{}}
	c := openOver(t, coordinator.Options{Store: store, Connectors: &pipes{}, Owner: "one"})
	v, err := watch.Parse("WATCH SELECT name FROM queries")
	if err != nil {
		t.Fatal(err)
	}
	store.hangs.Store(true)
	first, leave := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- c.Watch(first, "", v, "", func([]watch.Event) error { return nil }) }()
	time.Sleep(20 * time.Millisecond) // it reads now
	second, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	go func() { ended <- c.Watch(second, "", v, "", func([]watch.Event) error { return nil }) }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a watch waits for another one that waits for the store")
	}
	leave()
}

// seen notes which physical sources are opened.
type seen struct {
	pipes
	ids []int64
}

func (s *seen) Source(_ context.Context, p catalog.PhysicalSource, columns []column.Column) (connector.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids = append(s.ids, p.ID)
	return s.hub.Open(connector.RunEvents, columns), nil
}

// TestAQueryReadsWhatItWasAcceptedWith: a physical source that came after a query is not read by it when it begins
// anew. It is not held by it, and could be dropped. (Found by the simulation.)
func TestAQueryReadsWhatItWasAcceptedWith(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &seen{}
	options := coordinator.Options{Store: k, Connectors: p, Owner: "one"}
	c := openOver(t, options)
	const tcp = "SET('h' AS SOURCE.SOCKET_HOST, 1 AS SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE)"
	execute(t, c, "CREATE LOGICAL SOURCE a(x INT64); CREATE PHYSICAL SOURCE FOR a TYPE TCP "+tcp+
		"; CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT x FROM a INTO s")
	eventually(t, k, "q", catalog.Running)
	execute(t, c, "CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('f' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)")
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	openOver(t, options)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if opened, _, _ := p.counts(); opened == 2 {
			break
		} else if time.Now().After(end) {
			t.Fatal("it does not begin anew")
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.ids, []int64{1, 1}) {
		t.Errorf("the physical sources %v were opened", p.ids)
	}
}
