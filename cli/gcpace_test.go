package cli

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestGarbageIsBoundedByWhatIsAlive: never more than usual, never less than the least, and where there is a choice no
// more bytes of it than there are easy ones.
func TestGarbageIsBoundedByWhatIsAlive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		alive := rapid.Uint64Range(0, 64<<30).Draw(t, "alive")
		usual := rapid.SampledFrom([]int{-1, 20, 100, 400}).Draw(t, "usual")
		got := gcPercentFor(alive, usual)
		switch garbage := alive * uint64(max(got, 0)) / 100; {
		case usual < 0 && got != usual, got > usual:
			t.Fatalf("%d of %d bytes alive, usual is %d", got, alive, usual)
		case usual > 0 && got < min(usual, minGCPercent):
			t.Fatalf("%d of %d bytes alive is less than the least", got, alive)
		case usual == 100 && got > minGCPercent && garbage > smallHeapBytes:
			t.Fatalf("%d bytes of garbage on %d bytes alive", garbage, alive)
		}
	})
}

// TestThePercentageFollowsTheHeap, both ways, and leaves alone what somebody else has set.
func TestThePercentageFollowsTheHeap(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	var alive atomic.Uint64
	paceGC(100, alive.Load)
	reaches := func(want uint64) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			runtime.GC()
			percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
			metrics.Read(percent) // debug.SetGCPercent would tell by setting one
			if percent[0].Value.Uint64() == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("with %d bytes alive it is %d, want %d", alive.Load(), percent[0].Value.Uint64(), want)
			}
		}
	}
	alive.Store(2 * smallHeapBytes)
	reaches(50)
	alive.Store(100 * smallHeapBytes)
	reaches(minGCPercent)
	alive.Store(1)
	reaches(100)
	debug.SetGCPercent(77)
	alive.Store(100 * smallHeapBytes)
	for range 5 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	reaches(77)
}
