package warehouse

import (
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// closedLoop keeps a number of connections busy for a while, on virtual time,
// and tells what the clients saw, and a poller that looks eight times.
func closedLoop(b *bench, name string, w Work, connections int, settle, length time.Duration) findmax.Observation {
	const network = time.Millisecond
	poll := length / 8
	clients := map[ID]time.Time{} // when each statement was sent
	idle := make([]time.Time, connections)
	for i := range idle {
		idle[i] = b.now.Add(time.Duration(i) * network)
	}
	from, to := b.now.Add(settle), b.now.Add(settle+length)
	var took []float64
	var queued bool
	next := from.Add(poll / 2)
	send := func() {
		for i := 0; i < len(idle); i++ {
			if idle[i].After(b.now) {
				continue
			}
			idle = slices.Delete(idle, i, i+1)
			i--
			clients[b.submit(name, w)] = b.now
		}
	}
	for b.now.Before(to) {
		send()
		at := to
		for _, t := range idle {
			if t.Before(at) {
				at = t
			}
		}
		if next.Before(at) {
			at = next
		}
		for _, end := range b.ends {
			if end.Before(at) {
				at = end
			}
		}
		if t, any := b.m.Next(); any && t.Before(at) {
			at = t
		}
		b.now = later(b.now, at)
		b.take()
		for id, end := range b.ends {
			if end.After(b.now) {
				continue
			}
			delete(b.ends, id)
			b.m.Finish(b.now, id)
			if sent := clients[id]; !b.now.Before(from) {
				took = append(took, float64(b.now.Sub(sent))/1e6)
			}
			delete(clients, id)
			idle = append(idle, b.now.Add(network))
		}
		b.take()
		if !next.After(b.now) {
			// SHOW WAREHOUSES
			queued = queued || b.state(name).Queued > 0
			next = next.Add(poll)
		}
	}
	for id := range clients {
		delete(b.ends, id)
		b.m.Finish(b.now, id)
		b.take()
		delete(b.ends, id)
	}
	b.begun = nil
	slices.Sort(took)
	o := findmax.Observation{Operations: int64(len(took)), QPS: float64(len(took)) / length.Seconds(), Queued: queued}
	if n := len(took); n > 0 {
		at := func(q float64) *float64 { return &took[min(int(q*float64(n)), n-1)] }
		o.P50, o.P95, o.P99 = at(0.5), at(0.95), at(0.99)
	}
	return o
}

// TestFindMaxFindsTheSlots: the search of Find Max on the modelled warehouse ends
// at its slots, because one connection more waits, for every one of twenty seeds.
// Hybrid lookups are not among them: they are so short that connections spend a
// part of their time on the network, and a few more than the slots do not queue.
func TestFindMaxFindsTheSlots(t *testing.T) {
	for _, c := range []struct {
		name      string
		spec      Spec
		work      Work
		increment float64
		slots     int
		step      time.Duration
	}{
		{"one cluster", Spec{Name: "W"}, scan, 3, 8, 20 * time.Second},
		{"three clusters of five slots", Spec{Name: "W", MinClusters: 3, MaxClusters: 3, MaxConcurrency: 5}, scan, 4, 15,
			20 * time.Second},
		{"interactive", Spec{Name: "W", Type: TypeInteractive, MaxConcurrency: 2}, Work{Interactive, Lookup}, 6, 16,
			4 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				b := newBench(t, Config{Seed: seed})
				b.create(c.spec)
				s := findmax.New(findmax.Config{Unit: engine.FindMaxConnections, Start: 2, Increment: c.increment, Max: 100,
					QPSStabilityPct: 5, LatencyStabilityPct: 60, MaxErrorRatePct: 1})
				for {
					level, _, more := s.Next()
					if !more {
						break
					}
					s.Observe(closedLoop(b, "W", c.work, int(level), time.Second, c.step))
				}
				r := s.Result()
				if r.MaxConnections == nil || *r.MaxConnections != c.slots || !r.Confirmed ||
					r.Limit != engine.OutcomeQueueDetected || *r.FirstUnstable != float64(c.slots+1) {
					t.Errorf("seed %d: %s", seed, r.Reason)
				}
			}
		})
	}
}
