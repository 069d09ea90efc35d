package memory_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
)

// TestWhoHoldsTheMostEnds: when the pool is used up, and not who asks for the last of it.
func TestWhoHoldsTheMostEnds(t *testing.T) {
	limits := memory.Limits{Pool: memory.NewPool(16 << 20)}
	ended := ""
	large := limits.Open(0, func() { ended += "large" })
	middle := limits.Open(0, func() { ended += "middle" })
	small := limits.Open(0, func() { ended += "small" })
	for a, n := range map[*memory.Account]int{large: 9 << 20, middle: 5 << 20, small: 1 << 20} {
		if err := a.Grow(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := small.Grow(2 << 20); err != nil || ended != "large" || !large.Stopped() || large.Evicted() == nil ||
		small.Stopped() {
		t.Fatalf("%v, ended %q", err, ended)
	}
	large.Close()
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

// TestAccountsAddUp: whatever grows and shrinks, the pool has at least what accounts hold, little more, and nothing in
// the end.
func TestAccountsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 39))
	limits := memory.Limits{Pool: memory.NewPool(1 << 30), Query: 100 << 20}
	var all []*memory.Account
	for range 5 {
		all = append(all, limits.Open(0, nil))
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
