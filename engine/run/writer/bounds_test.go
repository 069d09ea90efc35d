package writer

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// slowStore is a store that takes its time for each transaction, and is away until it is back.
type slowStore struct {
	Store
	back  time.Time
	delay time.Duration
	rows  map[string]int
	ticks []store.Tick
}

func (s *slowStore) wait(ctx context.Context) error {
	if time.Now().Before(s.back) {
		return store.ErrUnavailable
	}
	select {
	case <-ctx.Done():
		return store.ErrUnavailable
	case <-time.After(s.delay):
		return nil
	}
}

func (s *slowStore) SaveResult(ctx context.Context, rows ...engine.RunResult) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	for _, r := range rows {
		s.rows[r.ResultID]++
	}
	return nil
}

func (s *slowStore) SaveTick(ctx context.Context, t store.Tick) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.ticks = append(s.ticks, t)
	return nil
}

// TestManyResultsComeToTheirEnd in a store that takes longer for all of them than one attempt may last: what it has
// taken is not written again.
func TestManyResultsComeToTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{delay: StoreTimeout/3 + time.Millisecond, rows: map[string]int{}}
		k := New(s, "r", 1, zerolog.Nop())
		var rows []engine.RunResult
		for i := range 1000 {
			rows = append(rows, engine.RunResult{ResultID: fmt.Sprint(i), RunID: "r"})
		}
		stored := 0
		w := k.SaveResults("the results", rows, func() { stored++ })
		k.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*StoreTimeout)
		defer cancel()
		k.Run(ctx)
		if ctx.Err() != nil || w.Err() != nil || stored != 1 || len(s.rows) != len(rows) {
			t.Fatalf("%v: %v, %d rows, stored %d times", ctx.Err(), w.Err(), len(s.rows), stored)
		}
		for id, n := range s.rows {
			if n != 1 {
				t.Errorf("row %s was written %d times", id, n)
			}
		}
	})
}

// second is a second of a run of so many run workers, each of which tells of four kinds.
func second(workers int) *store.Tick {
	t := &store.Tick{RunID: "r", Epoch: 1, Point: &engine.Point{}, Workers: make([]store.WorkerRow, workers)}
	distribution := &engine.PackedHistogram{Width: 1, Counts: make([]byte, 1200)}
	kinds := map[engine.Kind]*engine.PackedHistogram{}
	for k := range engine.Kind(4) {
		kinds[k] = distribution
	}
	for range workers {
		t.Snapshots = append(t.Snapshots, engine.WorkerSnapshot{TickLatency: distribution, KindLatency: kinds})
	}
	return t
}

// TestWhatWaitsIsBounded: the seconds of many run workers that wait for a store keep their points all, the newest of
// them the rows of their run workers, and the newest of these the distributions by kind.
func TestWhatWaitsIsBounded(t *testing.T) {
	for workers, seconds := range map[int]int{1: 90, 100: 90, 1000: 20, 12_000: 4} {
		synctest.Test(t, func(t *testing.T) {
			s := &slowStore{back: time.Now().Add(time.Duration(seconds) * time.Second)}
			k := New(s, "r", 1, zerolog.Nop())
			running := make(chan struct{})
			go func() {
				defer close(running)
				k.Run(t.Context())
			}()
			one, ofKinds := second(workers).Size()
			for range seconds {
				k.SaveTick(second(workers))
				time.Sleep(time.Second)
				k.mu.Lock()
				// The first may be on its way, and what is newest is not given up.
				if k.rows > maxRowBytes+2*one || k.kinds > maxKindBytes+2*ofKinds {
					t.Errorf("%d and %d bytes wait", k.rows, k.kinds)
				}
				k.mu.Unlock()
			}
			k.mu.Lock()
			rows, kinds := 0, 0
			for _, j := range k.queue {
				r, k := j.tick.Size()
				rows, kinds = rows+r, kinds+k
			}
			if rows != k.rows || kinds != k.kinds {
				t.Errorf("%d and %d bytes wait, counted are %d and %d", rows, kinds, k.rows, k.kinds)
			}
			k.mu.Unlock()
			k.Close()
			<-running
			full, whole := 0, 0
			for i, got := range s.ticks[1:] {
				switch {
				case got.Point == nil:
					t.Fatalf("second %d has lost its point", i+1)
				case got.Snapshots == nil && full > 0:
					t.Fatalf("second %d has no rows, but an older one has", i+1)
				case got.Snapshots != nil:
					full++
					if got.Snapshots[0].KindLatency != nil {
						whole++
					}
				}
			}
			keeps := func(bytes int) int { return max(1, min(seconds-1, maxFullTicks, bytes)) }
			if len(s.ticks) != seconds || full != keeps(maxRowBytes/one) || whole != keeps(maxKindBytes/ofKinds) ||
				k.rows != 0 || k.kinds != 0 {
				t.Errorf("of %d seconds of %d run workers %d have their rows (want %d), %d their kinds (want %d); "+
					"%d and %d bytes are left", len(s.ticks), workers, full, keeps(maxRowBytes/one), whole,
					keeps(maxKindBytes/ofKinds), k.rows, k.kinds)
			}
		})
	}
}
