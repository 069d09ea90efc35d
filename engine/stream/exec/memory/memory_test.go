package memory_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
)

// query is an account that ends when it is evicted, as soon as it hears of it.
func query(l memory.Limits, of memory.Holder) *memory.Account {
	var a *memory.Account
	a = l.Open(of, 0, func() { go a.Close() })
	return a
}

func grow(t *testing.T, a *memory.Account, n int) {
	t.Helper()
	if err := a.Grow(n); err != nil {
		t.Fatal(err)
	}
}

// TestWhoHoldsTheMostEnds: when the pool is used up, and not who asks for the last of it.
func TestWhoHoldsTheMostEnds(t *testing.T) {
	limits := memory.Limits{Pool: memory.NewPool(16 << 20)}
	large := query(limits, memory.Holder{})
	middle := query(limits, memory.Holder{})
	small := query(limits, memory.Holder{})
	grow(t, large, 9<<20)
	grow(t, middle, 5<<20)
	grow(t, small, 1<<20)
	if err := small.Grow(2 << 20); err != nil || !large.Stopped() || large.Evicted() == nil || middle.Stopped() ||
		small.Stopped() {
		t.Fatal(err)
	}
	var over *memory.ExceededError
	if err := middle.Grow(10 << 20); !errors.As(err, &over) || !over.Total || middle.Used() != 5<<20 {
		t.Errorf("who holds the most gets more: %v, %d", err, middle.Used())
	}
	if err := small.Grow(65 << 20); !errors.As(err, &over) || over.Total || over.Limit != memory.DefaultQuery {
		t.Errorf("a query holds more than it may: %v", err)
	}
	middle.Close()
	small.Close()
	if used := limits.Pool.Used(); used != 0 {
		t.Errorf("%d bytes are drawn by nobody", used)
	}
}

// TestTheUserWithTheMostLosesAQuery: many queries of one user end none of another user's, though that one is larger
// than each of them.
func TestTheUserWithTheMostLosesAQuery(t *testing.T) {
	limits := memory.Limits{Pool: memory.NewPool(128 << 20)}
	other := query(limits, memory.Holder{Owner: "bob"})
	grow(t, other, 55<<20)
	var mine []*memory.Account
	for i := range 3 {
		mine = append(mine, query(limits, memory.Holder{Owner: "eve"}))
		grow(t, mine[i], 10*(i+1)<<20)
	}
	if err := mine[0].Grow(14 << 20); err != nil || other.Stopped() || !mine[2].Stopped() || mine[1].Stopped() {
		t.Fatalf("%v; the other user's query was ended: %v", err, other.Stopped())
	}
	if err := mine[0].Grow(33 << 20); err == nil || other.Stopped() {
		t.Errorf("the user with the most gets more: %v", err)
	}
}

// TestWhatIsLookedAtEndsFirst: a watch of the catalog ends no query, and gives way to each, of whomever it is.
func TestWhatIsLookedAtEndsFirst(t *testing.T) {
	limits := memory.Limits{Pool: memory.NewPool(16 << 20)}
	of := query(limits, memory.Holder{Owner: "bob"})
	grow(t, of, 10<<20)
	watch := query(limits, memory.Holder{Owner: "eve", Yields: true})
	grow(t, watch, 5<<20)
	if err := watch.Grow(5 << 20); err == nil || of.Stopped() {
		t.Errorf("a watch ends a query: %v", err)
	}
	if err := of.Grow(5 << 20); err != nil || !watch.Stopped() {
		t.Errorf("a query does not get what a watch has: %v", err)
	}
}

// TestAnEndThatHangsExceedsNothing: what an evicted query has is given to nobody before it has given it back. Others
// wait for it, and then the next one ends.
func TestAnEndThatHangsExceedsNothing(t *testing.T) {
	limits := memory.Limits{Pool: memory.NewPool(16 << 20)}
	hangs := limits.Open(memory.Holder{}, 0, nil)
	grow(t, hangs, 9<<20)
	next := query(limits, memory.Holder{})
	grow(t, next, 5<<20)
	asks := query(limits, memory.Holder{})
	grow(t, asks, 1<<20)
	began := time.Now()
	err := asks.Grow(3 << 20)
	if used := limits.Pool.Used(); err != nil || used > 16<<20 || !hangs.Stopped() || !next.Stopped() {
		t.Errorf("%d MiB are drawn of 16: %v", used>>20, err)
	}
	if took := time.Since(began); took < time.Second || took > 4*time.Second {
		t.Errorf("it waited for %v", took)
	}
	// Who is told to end meanwhile waits no longer.
	time.AfterFunc(50*time.Millisecond, asks.Stop)
	began = time.Now()
	if err := asks.Grow(8 << 20); err == nil || time.Since(began) > time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	hangs.Close()
	asks.Close()
	if used := limits.Pool.Used(); used != 0 {
		t.Errorf("%d bytes are drawn by nobody", used)
	}
}

// TestAccountsAddUp: whatever grows and shrinks, the pool has at least what accounts hold, little more, and nothing in
// the end.
func TestAccountsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 39))
	limits := memory.Limits{Pool: memory.NewPool(1 << 30), Query: 100 << 20}
	var all []*memory.Account
	for range 5 {
		all = append(all, limits.Open(memory.Holder{}, 0, nil))
	}
	for range 20_000 {
		a := all[r.IntN(len(all))]
		if n := r.IntN(2 << 20); r.IntN(2) == 0 {
			_ = a.Grow(n)
		} else {
			a.Free(min(n, a.Used()))
		}
		held := int64(0)
		for _, a := range all {
			held += int64(a.Used())
		}
		if drawn := limits.Pool.Used(); drawn < held || drawn > held+5*(2<<20) {
			t.Fatalf("%d are drawn, %d held", drawn, held)
		}
	}
	for _, a := range all {
		a.Close()
	}
	if used := limits.Pool.Used(); used != 0 {
		t.Errorf("%d are drawn by nobody", used)
	}
}
