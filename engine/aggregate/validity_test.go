package aggregate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"pgregory.net/rapid"
)

func cpu(percent float64) *Second {
	return &Second{Nodes: []NodeSample{{NodeID: "local", Resources: engine.Resources{CPUPercent: percent}}}}
}

func TestCPUDegradesOnlyWhenItHoldsForFiveSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := NewValidity()
		high := rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "high")
		longest, run := 0, 0
		for i, h := range high {
			percent := 50.0
			if h {
				percent = 95
				run++
			} else {
				run = 0
			}
			longest = max(longest, run)
			v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement, cpu(percent))
		}
		if got, want := v.Verdict().Verdict == engine.VerdictDegraded, longest >= 5; got != want {
			t.Fatalf("degraded is %v after %d seconds over the limit", got, longest)
		}
	})
}

func TestOnlyTheMeasurementIsJudged(t *testing.T) {
	v := NewValidity()
	for i := range 20 {
		v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseWarmup, cpu(100))
	}
	if got := v.Verdict(); got.Verdict != engine.VerdictValid || got.Causes == nil || got.Notes == nil {
		t.Fatalf("%+v", got)
	}
}

func TestAdjoiningIntervalsAreOneCause(t *testing.T) {
	v := NewValidity()
	pause := &Second{Nodes: []NodeSample{{NodeID: "local", Resources: engine.Resources{GCPauseMaxMs: 12}}}}
	for i := range 3 {
		v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement, pause)
	}
	for i := 3; i < 60; i++ {
		v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement, &Second{})
	}
	v.Observe(epoch.Add(time.Minute), engine.PhaseMeasurement, pause)
	got := v.Verdict()
	if len(got.Causes) != 2 || got.Causes[0].Cause != CauseGCPause || !got.Causes[0].To.Equal(epoch.Add(2*time.Second)) {
		t.Fatalf("%+v", got.Causes)
	}
}

func TestAStoppedProcessIsNamed(t *testing.T) {
	v := NewValidity()
	v.Observe(epoch, engine.PhaseMeasurement, &Second{})
	v.Observe(epoch.Add(6*time.Second), engine.PhaseMeasurement, &Second{})
	got := v.Verdict()
	if len(got.Causes) != 1 || got.Causes[0].Cause != CauseSnapshotGap || !got.Causes[0].From.Equal(epoch) || !got.Causes[0].To.Equal(epoch.Add(6*time.Second)) {
		t.Fatalf("%+v", got)
	}
	// Between a warm-up and its measurement nothing is judged.
	v = NewValidity()
	v.Observe(epoch, engine.PhaseWarmup, &Second{})
	v.Observe(epoch.Add(6*time.Second), engine.PhaseMeasurement, &Second{})
	if got := v.Verdict(); len(got.Causes) != 0 {
		t.Fatalf("%+v", got)
	}
}

func TestAnOpenLoopThatIsLateOrDropsIsDegraded(t *testing.T) {
	late := func(ms float64) *float64 { return &ms }
	for name, tc := range map[string]struct {
		samples []WorkerSample
		causes  []string
	}{
		"in time":           {[]WorkerSample{{LagP99Ms: late(9)}, {LagP99Ms: late(10)}}, nil},
		"late":              {[]WorkerSample{{LagP99Ms: late(1)}, {LagP99Ms: late(11)}, {LagP99Ms: late(30)}}, []string{CauseScheduleLag}},
		"a thousandth lost": {[]WorkerSample{{Dropped: 2, Scheduled: 1000}, {Scheduled: 1000}}, nil},
		"more lost":         {[]WorkerSample{{Dropped: 3, Scheduled: 1000}, {Scheduled: 1000}}, []string{CauseDropped}},
		"both":              {[]WorkerSample{{Dropped: 30, Scheduled: 1000, LagP99Ms: late(100)}}, []string{CauseScheduleLag, CauseDropped}},
	} {
		v := NewValidity()
		for i, s := range tc.samples {
			s.WorkerID = "worker-0"
			v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement, &Second{Workers: []WorkerSample{s}})
		}
		var causes []string
		for _, c := range v.Clone().Verdict().Causes {
			causes = append(causes, c.Cause)
			if !strings.Contains(c.Detail, "worker-0: ") || c.From.IsZero() {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if !slices.Equal(causes, tc.causes) {
			t.Errorf("%s: %v", name, causes)
		}
	}
}

func TestGapsStallsAndLostWorkersAreNamed(t *testing.T) {
	v := NewValidity()
	at := epoch.Add(10 * time.Second)
	v.Observe(at, engine.PhaseMeasurement, &Second{Workers: []WorkerSample{
		{WorkerID: "worker-0", Newest: at.Add(-4 * time.Second)},
		{WorkerID: "worker-1", Newest: at, StalledMs: 40},
		{WorkerID: "worker-2", Newest: epoch, Ended: true},
	}})
	v.LostWorker("worker-2", "stopped responding", epoch, at)
	v.Note("two runs at once")
	v.Note("two runs at once")
	got := v.Verdict()
	want := map[string]bool{CauseSnapshotGap: true, CauseRecorderStall: true, CauseLostWorker: true}
	for _, c := range got.Causes {
		delete(want, c.Cause)
	}
	if len(want) != 0 || len(got.Causes) != 3 || len(got.Notes) != 1 {
		t.Fatalf("missing %v in %+v", want, got)
	}
}
