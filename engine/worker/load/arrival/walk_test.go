package arrival

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// The walk of the ledger and that of a dispatcher, which takes one arrival after the
// other, come to the same count at any moment, over any changes.
func TestTheLedgerAgreesWithTheSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := Share{Of: rapid.IntRange(1, 3).Draw(t, "of")}
		share.Index = rapid.IntRange(0, share.Of-1).Draw(t, "index")
		arrival := rapid.SampledFrom([]engine.Arrival{engine.ArrivalConstant, engine.ArrivalPoisson}).Draw(t, "arrival")
		level := func() float64 { return float64(rapid.SampledFrom([]int{0, 1, 7, 100, 3000, 50_000}).Draw(t, "rate")) }
		first, seed := level(), rand.Uint64()
		own := New(first, arrival, share, seed)
		l := NewLedger(New(first, arrival, share, seed))
		const origin = 1_000_000_000
		l.Begin(origin)
		at := time.Duration(0)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			at += time.Duration(rapid.IntRange(0, 900).Draw(t, "ms")) * time.Millisecond
			for due, ok := own.Next(); ok && due <= at; due, ok = own.Next() {
				own.Take()
			}
			if rapid.Bool().Draw(t, "look") {
				if n, _ := l.Scheduled(origin + int64(at)); n != own.n {
					t.Fatalf("at %v: %d by the ledger, %d taken", at, n, own.n)
				}
			}
			l.Change(own, origin+int64(at),
				[]Leg{{Level: level(), Length: time.Duration(rapid.IntRange(0, 500).Draw(t, "ramp")) * time.Millisecond}})
		}
		at += 700 * time.Millisecond
		for due, ok := own.Next(); ok && due <= at; due, ok = own.Next() {
			own.Take()
		}
		if n, _ := l.Scheduled(origin + int64(at)); n != own.n {
			t.Fatalf("at %v: %d by the ledger, %d taken", at, n, own.n)
		}
	})
}

// TestArrivalsBelongToTheWarmUpUntilTheMeasurementBegins: also while nobody knows when that will be.
func TestArrivalsBelongToTheWarmUpUntilTheMeasurementBegins(t *testing.T) {
	l := NewLedger(New(100, engine.ArrivalConstant, Share{Of: 1}, 1))
	l.Begin(1)
	for second := int64(1); second <= 4; second++ {
		if second == 4 {
			l.Enter(1 + 3*int64(time.Second))
		}
		all, warm := l.Scheduled(1 + second*int64(time.Second))
		if want := min(100*second, 300); all < 100*second-1 || warm < want-1 || warm > want+1 {
			t.Errorf("after %d s: %d arrivals, %d of them of the warm-up, want %d", second, all, warm, want)
		}
	}
}

// BenchmarkLedger walks a second of a poisson process at 200 000/s.
func BenchmarkLedger(b *testing.B) {
	l := NewLedger(New(200_000, engine.ArrivalPoisson, Share{Of: 1}, 1))
	l.Begin(1)
	for i := range b.N {
		l.Scheduled(int64(i+1) * 1_000_000_000)
	}
	n, _ := l.Scheduled(int64(b.N) * 1_000_000_000)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/arrival")
}
