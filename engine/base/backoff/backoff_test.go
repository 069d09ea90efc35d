package backoff_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	t.Parallel()
	b := backoff.Backoff{Min: 100, Max: 500}
	var got []time.Duration
	for range 5 {
		got = append(got, b.Next())
	}
	b.Reset()
	got = append(got, b.Next())
	if want := []time.Duration{100, 200, 400, 500, 500, 100}; !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
	for failures, want := range map[int]time.Duration{0: 10, 1: 10, 2: 20, 6: 320, 60: 320} {
		if got := backoff.After(failures, 10); got != want {
			t.Errorf("after %d failures %d, want %d", failures, got, want)
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		b, began := backoff.Backoff{Min: time.Second, Max: time.Minute}, time.Now()
		if !b.Wait(ctx) || time.Since(began) != time.Second {
			t.Errorf("the first pause took %s", time.Since(began))
		}
		if !b.Wait(ctx) || b.Wait(ctx) || time.Since(began) != 4*time.Second {
			t.Errorf("the pauses took %s", time.Since(began))
		}
	})
}

func TestJitterTakesHalfAtMost(t *testing.T) {
	t.Parallel()
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		d := backoff.Jitter(time.Second)
		least, most = min(least, d), max(most, d)
	}
	if most > time.Second || least < time.Second/2 || most-least < time.Second/4 {
		t.Errorf("pauses of %s to %s", least, most)
	}
}
