package enrich

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

func TestCourse(t *testing.T) {
	type step struct {
		at      time.Duration
		matched int64
	}
	for name, c := range map[string]struct {
		executions, before int64
		polls              []step
		want               engine.EnrichmentStatus
	}{
		"nothing to look for":  {0, 0, nil, engine.EnrichmentSkipped},
		"all before it begins": {10, 10, nil, engine.EnrichmentCompleted},
		"all at once":          {100, 0, []step{{time.Second, 100}}, engine.EnrichmentCompleted},
		"enough": {100, 0, []step{{time.Second, 40}, {12 * time.Second, 90}},
			engine.EnrichmentCompleted},
		"goes on below": {100, 0, []step{{time.Second, 40}, {12 * time.Second, 89}}, engine.EnrichmentRunning},
		"stuck above half": {100, 0,
			[]step{{0, 60}, {10 * time.Second, 60}, {20 * time.Second, 60}, {30 * time.Second, 60}}, engine.EnrichmentPartial},
		"not yet stuck": {100, 0, []step{{0, 60}, {10 * time.Second, 60}, {20 * time.Second, 60}},
			engine.EnrichmentRunning},
		"progress begins again": {100, 0,
			[]step{{0, 60}, {10 * time.Second, 60}, {20 * time.Second, 60}, {30 * time.Second, 61}, {40 * time.Second, 61}},
			engine.EnrichmentRunning},
		"stuck at half goes on": {100, 0,
			[]step{{0, 50}, {10 * time.Second, 50}, {20 * time.Second, 50}, {30 * time.Second, 50}, {40 * time.Second, 50}},
			engine.EnrichmentRunning},
		"the last poll is at 240 s": {100, 0, []step{{230 * time.Second, 1}}, engine.EnrichmentRunning},
		"time is up":                {100, 0, []step{{231 * time.Second, 1}}, engine.EnrichmentPartial},
		"time is up with nothing":   {100, 0, []step{{240 * time.Second, 0}}, engine.EnrichmentPartial},
		"what was matched counts":   {100, 89, []step{{time.Second, 90}}, engine.EnrichmentCompleted},
		"a retry may be stuck at once": {100, 60, []step{{0, 60}, {10 * time.Second, 60}, {20 * time.Second, 60}},
			engine.EnrichmentPartial},
	} {
		t.Run(name, func(t *testing.T) {
			course := NewPollSchedule(DefaultPolicy(), c.executions, c.before)
			v := course.Begin()
			for i, s := range c.polls {
				if v.Done {
					t.Fatalf("over before poll %d: %+v", i, v)
				}
				v = course.PollSucceeded(s.at, s.matched)
			}
			if v.Status != c.want || v.Done != (c.want != engine.EnrichmentRunning) || v.Done && v.Reason == "" {
				t.Fatalf("got %+v, want %s", v, c.want)
			}
		})
	}
}

func TestCourseEndsWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		executions := rapid.Int64Range(1, 1000).Draw(t, "executions")
		course := NewPollSchedule(p, executions, 0)
		v := course.Begin()
		var now time.Duration
		matched, failures := int64(0), 0
		for polls := 0; !v.Done; polls++ {
			if now > p.Timeout || polls > int(p.Timeout/p.Interval)+1 {
				t.Fatalf("a poll begins at %s, after %d others", now, polls)
			}
			now += time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(t, "poll"))
			if rapid.IntRange(0, 4).Draw(t, "failed") == 0 {
				failures++
				v = course.PollFailed(now, matched, false, "away")
			} else {
				failures = 0
				matched = min(executions, matched+rapid.Int64Range(0, executions/3).Draw(t, "matched"))
				v = course.PollSucceeded(now, matched)
			}
			now += v.Wait
		}
		ratio := float64(matched) / float64(executions)
		switch v.Status {
		case engine.EnrichmentCompleted:
			if ratio < p.TargetRatio {
				t.Fatalf("completed with %g", ratio)
			}
		case engine.EnrichmentPartial:
			if ratio >= p.TargetRatio {
				t.Fatalf("partial with %g", ratio)
			}
		case engine.EnrichmentFailed:
			if failures == 0 {
				t.Fatalf("failed although the last poll succeeded: %s", v.Reason)
			}
		default:
			t.Fatalf("ended as %s", v.Status)
		}
	})
}

func TestPercentRoundsDown(t *testing.T) {
	for ratio, want := range map[float64]string{1: "100 %", 0.9999: "99.9 %", 0.5: "50 %", 0.0001: "Less than 0.1 %",
		0: "0 %", 0.123: "12.3 %"} {
		if got := percent(ratio); got != want {
			t.Errorf("%g is %q, want %q", ratio, got, want)
		}
	}
}

// TestCursorReadsEverything pages through any history two of whose ticks fit on a page
// and misses nothing that ended in the interval.
func TestCursorReadsEverything(t *testing.T) {
	base := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		pageSize := rapid.IntRange(3, 20).Draw(t, "page size")
		var ends []time.Time // ascending
		at := base
		for range rapid.IntRange(0, 200).Draw(t, "ticks") {
			at = at.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "gap")) * historyResolution)
			for range rapid.IntRange(1, (pageSize-1)/2).Draw(t, "in tick") {
				ends = append(ends, at)
			}
		}
		exclusive := rapid.Bool().Draw(t, "the end is excluded")
		seen := map[int]bool{}
		c := NewCursor(base, at.Add(time.Second), pageSize, 1<<20)
		for pages := 0; ; pages++ {
			from, to, ok := c.Next()
			if !ok {
				break
			}
			if pages > len(ends)+2 {
				t.Fatal("it does not end")
			}
			rows, earliest := 0, to
			for i := len(ends) - 1; i >= 0 && rows < pageSize; i-- {
				if ends[i].After(to) || exclusive && ends[i].Equal(to) || ends[i].Before(from) {
					continue
				}
				rows++
				seen[i] = true
				earliest = ends[i]
			}
			c.Read(rows, earliest)
		}
		if len(seen) != len(ends) || c.Gaps() != 0 || c.Truncated() {
			t.Fatalf("%d of %d rows were read, %d gaps", len(seen), len(ends), c.Gaps())
		}
	})
}

func TestCursorPassesACrowdedTick(t *testing.T) {
	base := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c := NewCursor(base, base.Add(time.Hour), 10, 100)
	c.Read(10, base.Add(time.Minute))
	c.Read(10, base.Add(time.Minute)) // a page of one tick
	if _, to, ok := c.Next(); !ok || !to.Before(base.Add(time.Minute)) || c.Gaps() != 1 {
		t.Fatalf("next ends at %s, %d gaps", to, c.Gaps())
	}
	for range 3 {
		c.Read(10, base.Add(2*time.Hour)) // a history that does not do what it was asked
	}
	if _, to, _ := c.Next(); !to.Before(base.Add(time.Minute)) {
		t.Fatal("it went back")
	}
}

func TestCursorHasALimitOfPages(t *testing.T) {
	base := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	c := NewCursor(base, base.Add(time.Hour), 10, 2)
	c.Read(10, base.Add(50*time.Minute))
	c.Read(10, base.Add(40*time.Minute))
	if _, _, ok := c.Next(); ok || !c.Truncated() || c.Pages() != 2 {
		t.Fatal("it goes on")
	}
	if got := DefaultPolicy().MaxPages(18_000_000); got != 1802 {
		t.Fatalf("%d pages for 18 million", got)
	}
	if got := DefaultPolicy().MaxPages(5); got != 10 {
		t.Fatalf("%d pages for 5", got)
	}
}
