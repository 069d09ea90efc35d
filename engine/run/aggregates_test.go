package run_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// aggregatesBecome waits until the aggregates of a run are as want says.
func aggregatesBecome(t *testing.T, f *fixture, runID string,
	want func(*engine.AggregateEnrichment) bool) *engine.AggregateEnrichment {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		a := f.detail(runID).Enrichment.Aggregate
		if a != nil && want(a) {
			return a
		}
		if time.Now().After(deadline) {
			t.Fatalf("the aggregates are %+v", a)
		}
	}
}

// TestAggregatesAreAskedForAgain: by themselves, on a schedule that a restart does not
// end, until they are whole.
func TestAggregatesAreAskedForAgain(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	a.latency = 8 * time.Second
	f.start()
	run := f.run(onAccount)
	sum := f.wait(run.RunID)
	first := aggregatesBecome(t, f, run.RunID, func(g *engine.AggregateEnrichment) bool { return g.Polls == 1 })
	if first.Status != engine.EnrichmentPending || first.NextPollAt.IsZero() ||
		!first.NextPollAt.Before(first.AvailableAt.Time) {
		t.Fatalf("after the first time: %+v", first)
	}
	f.settled(run.RunID)
	f.kill()
	f.start()
	second := aggregatesBecome(t, f, run.RunID, func(g *engine.AggregateEnrichment) bool { return g.Polls >= 2 })
	if second.Status != engine.EnrichmentPending && second.Status != engine.EnrichmentPartial {
		t.Fatalf("after the second time: %+v", second)
	}
	a.mu.Lock()
	a.published = sum.Accounting.Started
	a.mu.Unlock()
	last := aggregatesBecome(t, f, run.RunID,
		func(g *engine.AggregateEnrichment) bool { return g.Status == engine.EnrichmentCompleted })
	if last.Calls != sum.Accounting.Started || !last.NextPollAt.IsZero() {
		t.Errorf("at the end: %+v", last)
	}
	if d := f.detail(run.RunID); d.Enrichment.Status != engine.EnrichmentCompleted || d.Enrichment.Retryable {
		t.Errorf("the enrichment is %+v", d.Enrichment)
	}
}

// TestAggregatesThatNeverComeArePartial: when their latency has passed nobody asks any more.
func TestAggregatesThatNeverComeArePartial(t *testing.T) {
	t.Parallel()
	f, a := newAccount(t)
	a.latency = 2 * time.Second
	f.start()
	run := f.run(onAccount)
	f.wait(run.RunID)
	last := aggregatesBecome(t, f, run.RunID,
		func(g *engine.AggregateEnrichment) bool { return g.Status == engine.EnrichmentPartial })
	if !last.NextPollAt.IsZero() || last.Polls < 2 {
		t.Errorf("%+v", last)
	}
}
