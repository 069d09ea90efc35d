package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// TestWhatIsOverdueIsCaughtUp: a generator that stood still for a random time offers what was due at twice the rate at
// most, at once, or not at all, and is on its schedule again after as long as it stood still.
func TestWhatIsOverdueIsCaughtUp(t *testing.T) {
	const second = int64(time.Second)
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 6))
		rate := 50 + rng.Int64N(2000)
		stood := second/2 + rng.Int64N(20*second)
		for _, policy := range []engine.CatchUp{engine.CatchUpSpread, engine.CatchUpBurst, engine.CatchUpDrop} {
			c := catchUp{policy: policy}
			now := int64(0)
			offered := map[int64]int64{} // by tenth of a second
			var dropped, lastLate int64
			for i := int64(0); i < rate*60; i++ {
				due := i * second / rate
				if now = max(now, due); due >= 10*second && due < 10*second+second/rate {
					now += stood
				}
				wait, _ := c.place(due, now)
				now = max(now, wait)
				at, drop := c.place(due, now)
				if at > now {
					t.Fatalf("seed %d, %s: what was waited for is not offered", seed, policy)
				}
				if drop {
					dropped++
					continue
				}
				offered[now*10/second]++
				if now-due > second/1000 {
					lastLate = now
				}
			}
			most := int64(0)
			for _, n := range offered {
				most = max(most, n)
			}
			backlog := rate * stood / second
			switch policy {
			case engine.CatchUpSpread:
				if most > 2*rate/10+2 || dropped > 0 {
					t.Errorf("seed %d: %d in a tenth of a second at %d a second, %d dropped", seed, most, rate, dropped)
				}
				if over := lastLate - 10*second - 2*stood; over > second/10 {
					t.Errorf("seed %d: caught up %v too late", seed, time.Duration(over))
				}
			case engine.CatchUpBurst:
				if most < backlog || dropped > 0 {
					t.Errorf("seed %d: %d of %d at once, %d dropped", seed, most, backlog, dropped)
				}
			default:
				if dropped < backlog-1 || dropped > backlog+2 || most > rate/10+2 {
					t.Errorf("seed %d: %d of %d dropped, then %d at once", seed, dropped, backlog, most)
				}
			}
		}
	}
}

// TestAnotherStopIsSpreadToo: a generator that stands still again while it catches up offers no more than twice the
// rate after each stop.
func TestAnotherStopIsSpreadToo(t *testing.T) {
	const second = int64(time.Second)
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		rate := 50 + rng.Int64N(2000)
		c := catchUp{policy: engine.CatchUpSpread}
		// It runs for a while before each stop, some of them while it still catches up.
		var stops, lengths []int64
		for at := 5 * second; len(stops) < 4; {
			length := second/2 + rng.Int64N(5*second)
			stops, lengths = append(stops, at), append(lengths, length)
			at += length + second/4 + rng.Int64N(2*length)
		}
		now, most, last := int64(0), int64(0), int64(0)
		offered := map[int64]int64{} // by tenth of a second
		for i := int64(0); i < rate*60; i++ {
			due := i * second / rate
			now = max(now, due)
			for len(stops) > 0 && now >= stops[0] {
				now, stops, lengths = max(now, stops[0]+lengths[0]), stops[1:], lengths[1:]
			}
			at, drop := c.place(due, now)
			now = max(now, at)
			if drop {
				t.Fatalf("seed %d: an arrival is dropped", seed)
			}
			offered[now*10/second]++
			last = now - due
		}
		for _, n := range offered {
			most = max(most, n)
		}
		if most > 2*rate/10+2 {
			t.Errorf("seed %d: %d in a tenth of a second at %d a second", seed, most, rate)
		}
		if last > 0 || c.active {
			t.Errorf("seed %d: still %v behind at the end", seed, time.Duration(last))
		}
	}
}

// TestLagIsNotCaughtUp: a generator that is late as busy machines are is not slowed down by it.
func TestLagIsNotCaughtUp(t *testing.T) {
	c := catchUp{policy: engine.CatchUpSpread}
	for late := range int64(200) {
		now := int64(time.Hour)
		if at, drop := c.place(now-late*int64(time.Millisecond), now); at != now || drop || c.active {
			t.Fatalf("%d ms late: at %d, %v", late, at-now, drop)
		}
	}
}
