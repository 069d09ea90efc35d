package coordinator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
)

// server sees workers somehow, and tells the catalog what that has otherwise.
type server struct {
	sees   map[string]catalog.WorkerState
	told   coordinator.SentStates
	writes int
}

// looks is one look at the catalog at a time.
func (s *server) looks(kept map[string]catalog.WorkerState, now time.Time) {
	var all, changed []catalog.Worker
	for host, state := range s.sees {
		all = append(all, catalog.Worker{Host: host, State: state})
		if kept[host] != state {
			changed = append(changed, catalog.Worker{Host: host, State: state})
		}
	}
	s.told.Reconcile(all)
	due := s.told.Due(changed, now)
	s.told.MarkSent(due, now)
	for _, w := range due {
		kept[w.Host] = w.State
		s.writes++
	}
}

// TestServersThatDisagree: two servers that see a node otherwise, and each of which looks whenever the other has
// written, write a few times and not all the time; when one comes to see what the other does, the catalog has that at
// once, and nobody writes any more.
func TestServersThatDisagree(t *testing.T) {
	t.Parallel()
	begin := time.Unix(0, 0)
	a := &server{sees: map[string]catalog.WorkerState{"n": catalog.Draining}, told: coordinator.SentStates{}}
	b := &server{sees: map[string]catalog.WorkerState{"n": catalog.Active}, told: coordinator.SentStates{}}
	kept := map[string]catalog.WorkerState{}
	const apart = 50 * time.Millisecond
	at := time.Duration(0)
	for ; at < 10*time.Minute; at += apart {
		a.looks(kept, begin.Add(at))
		b.looks(kept, begin.Add(at+apart/2))
	}
	if a.writes < 5 || b.writes < 5 || a.writes > 20 || b.writes > 20 {
		t.Errorf("in ten minutes they have written %d and %d times", a.writes, b.writes)
	}
	b.sees["n"] = catalog.Draining
	b.looks(kept, begin.Add(at))
	a.writes, b.writes = 0, 0
	for end := at + 10*time.Minute; at < end; at += apart {
		a.looks(kept, begin.Add(at))
		b.looks(kept, begin.Add(at))
	}
	if kept["n"] != catalog.Draining || a.writes+b.writes != 0 {
		t.Errorf("%s, %d and %d writes", kept["n"], a.writes, b.writes)
	}
}

// TestWhatAllSeeIsKept: whatever servers have seen before and told, once all of them see the same the catalog has it a
// minute later, and what a server sees for the first time, or anew, it has at once.
func TestWhatAllSeeIsKept(t *testing.T) {
	t.Parallel()
	states := []catalog.WorkerState{catalog.Active, catalog.Draining, catalog.Unreachable}
	rapid.Check(t, func(t *rapid.T) {
		servers := []*server{}
		for range rapid.IntRange(1, 3).Draw(t, "servers") {
			servers = append(servers, &server{sees: map[string]catalog.WorkerState{}, told: coordinator.SentStates{}})
		}
		kept := map[string]catalog.WorkerState{}
		now := time.Unix(0, 0)
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			s := servers[rapid.IntRange(0, len(servers)-1).Draw(t, fmt.Sprint("server ", i))]
			now = now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(t, fmt.Sprint("ms ", i))) * time.Millisecond)
			host := rapid.SampledFrom([]string{"a", "b"}).Draw(t, fmt.Sprint("host ", i))
			was := s.sees[host]
			s.sees[host] = rapid.SampledFrom(states).Draw(t, fmt.Sprint("state ", i))
			s.looks(kept, now)
			if s.sees[host] != was && kept[host] != s.sees[host] {
				t.Fatalf("%s is %s, and a server has just come to see it %s", host, kept[host], s.sees[host])
			}
		}
		for _, s := range servers {
			s.sees = map[string]catalog.WorkerState{"a": catalog.Active, "b": catalog.Unreachable}
		}
		for range 61 {
			now = now.Add(time.Second)
			for _, s := range servers {
				s.looks(kept, now)
			}
		}
		if kept["a"] != catalog.Active || kept["b"] != catalog.Unreachable {
			t.Fatalf("%v", kept)
		}
		if host := slices.IndexFunc(servers, func(s *server) bool { return len(s.told) > 2 }); host >= 0 {
			t.Fatalf("server %d has kept more than it has seen", host)
		}
	})
}
