package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns: so many calls about several entries are under way at a time, and not more; who gives up waiting takes
// nobody's turn, and calls about one entry never wait.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := NewClaimLimiter()
		most := cap(turns)
		var under, peak atomic.Int64
		var group sync.WaitGroup
		for range 5 * most {
			group.Go(func() {
				back, err := turns.acquire(t.Context(), 32)
				if err != nil {
					t.Error(err)
					return
				}
				defer back()
				now := under.Add(1)
				for seen := peak.Load(); now > seen && !peak.CompareAndSwap(seen, now); seen = peak.Load() {
				}
				time.Sleep(time.Second)
				under.Add(-1)
			})
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := turns.acquire(gone, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("who gives up waiting hears %v", err)
		}
		for _, entries := range []int{0, 1} {
			back, err := turns.acquire(gone, entries)
			if err != nil {
				t.Fatalf("%d entries: %v", entries, err)
			}
			back()
		}
		began := time.Now()
		group.Wait()
		if took := time.Since(began); peak.Load() != int64(most) || took != 5*time.Second || len(turns) != 0 {
			t.Errorf("%d at a time of %d, in %v, %d turns not given back", peak.Load(), most, took, len(turns))
		}
	})
	if back, err := ClaimLimiter(nil).acquire(t.Context(), 99); err != nil {
		t.Error(err)
	} else {
		back()
	}
}
