package live

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
	if len(got.Causes) != 2 || got.Causes[0].Cause != engine.CauseGCPause ||
		!got.Causes[0].To.Equal(epoch.Add(2*time.Second)) {
		t.Fatalf("%+v", got.Causes)
	}
}

// TestAProcessThatStoodStillForASecondIsNamed: it was stopped for two seconds, no longer than its reports may be late,
// and its run was VALID with a note that the target had not answered.
func TestAProcessThatStoodStillForASecondIsNamed(t *testing.T) {
	for still, degrades := range map[time.Duration]bool{900 * time.Millisecond: false, 1900 * time.Millisecond: true} {
		v := NewValidity()
		v.Observe(epoch, engine.PhaseMeasurement, &Second{})
		v.Observe(epoch.Add(2*time.Second), engine.PhaseMeasurement, &Second{Nodes: []NodeSample{{NodeID: "local",
			Resources: engine.Resources{MaxStallMs: engine.Milliseconds(still)}}}})
		got := v.Verdict()
		if degrades != (len(got.Causes) == 1) || degrades != v.AllStalled(epoch, epoch.Add(2*time.Second)) {
			t.Fatalf("%v: %+v", still, got)
		}
		if degrades && (got.Causes[0].Cause != engine.CauseSnapshotGap ||
			!strings.Contains(got.Causes[0].Detail, "local: the process stood still for up to 1.9 s")) {
			t.Errorf("%+v", got.Causes)
		}
		if v.AllStalled(epoch.Add(-time.Minute), epoch.Add(-2*time.Second)) || v.AllStalled(epoch.Add(3*time.Second),
			epoch.Add(time.Minute)) {
			t.Error("it stood still before or after")
		}
	}
}

func TestAStoppedProcessIsNamed(t *testing.T) {
	v := NewValidity()
	v.Observe(epoch, engine.PhaseMeasurement, &Second{})
	v.Observe(epoch.Add(6*time.Second), engine.PhaseMeasurement, &Second{})
	got := v.Verdict()
	if len(got.Causes) != 1 || got.Causes[0].Cause != engine.CauseSnapshotGap || !got.Causes[0].From.Equal(epoch) ||
		!got.Causes[0].To.Equal(epoch.Add(6*time.Second)) {
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

// TestAProcessThatIsStoppedAsTheMeasurementBegins: what of the time lies in the measurement counts, also when it is
// over by then; what lies before or after it does not, and neither does what another process had measured.
func TestAProcessThatIsStoppedAsTheMeasurementBegins(t *testing.T) {
	at := func(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }
	type look struct {
		seconds float64
		phase   engine.Phase
		began   float64 // of the measurement; 0: it has not
	}
	const watch, warm, measures, after = "", engine.PhaseWarmup, engine.PhaseMeasurement, engine.PhaseCooldown
	for name, tc := range map[string]struct {
		looks []look
		want  []float64 // from and to
	}{
		"as it begins":          {[]look{{1, warm, 0}, {91, measures, 1.5}, {92, measures, 1.5}}, []float64{1.5, 91}},
		"it is over":            {[]look{{1, warm, 0}, {91, after, 1.5}, {92, after, 1.5}}, []float64{1.5, 91}},
		"in the warm-up":        {[]look{{1, warm, 0}, {91, measures, 91}, {92, measures, 91}}, nil},
		"after the end":         {[]look{{1, warm, 0}, {2, measures, 1.5}, {3, after, 1.5}, {91, after, 1.5}}, nil},
		"of the process before": {[]look{{91, measures, 1.5}, {92, measures, 1.5}}, nil},
		"before the first look": {[]look{{0.1, watch, 0}, {91, measures, 0.8}, {92, measures, 0.8}}, []float64{0.8, 91}},
		"of one that was taken over": {[]look{{50, watch, 1.5}, {91, measures, 1.5}, {92, measures, 1.5}},
			[]float64{50, 91}},
		"it was to begin sooner":    {[]look{{1, warm, 0}, {91, measures, 0.5}}, []float64{1, 91}},
		"it is to begin later":      {[]look{{1, measures, 3}, {2, measures, 3}, {3, measures, 3}}, nil},
		"a moment, as it goes on":   {[]look{{1, warm, 0}, {2, measures, 1.5}, {3, measures, 1.5}}, nil},
		"in the middle, as it ends": {[]look{{1, measures, 0.5}, {91, after, 0.5}}, []float64{1, 91}},
	} {
		v := NewValidity()
		for _, l := range tc.looks {
			if l.began > 0 {
				v.Outcome(Outcome{From: at(l.began)})
			}
			if l.phase == watch {
				v.StartObserving(at(l.seconds))
				continue
			}
			v.Observe(at(l.seconds), l.phase, &Second{})
		}
		got := v.Verdict().Causes
		if len(tc.want) == 0 && len(got) == 0 {
			continue
		}
		if len(got) != 1 || len(tc.want) == 0 || got[0].Cause != engine.CauseSnapshotGap ||
			!got[0].From.Equal(at(tc.want[0])) ||
			!got[0].To.Equal(at(tc.want[1])) {
			t.Errorf("%s: %+v, want %v", name, got, tc.want)
		}
	}
}

func TestAnOpenLoopThatIsLateOrDropsIsDegraded(t *testing.T) {
	late := func(ms float64) *float64 { return &ms }
	for name, tc := range map[string]struct {
		samples []WorkerSample
		causes  []string
	}{
		"in time": {[]WorkerSample{{LagP99Ms: late(9)}, {LagP99Ms: late(10)}}, nil},
		"late": {[]WorkerSample{{LagP99Ms: late(1)}, {LagP99Ms: late(11)}, {LagP99Ms: late(30)}},
			[]string{engine.CauseScheduleLag}},
		"a thousandth lost": {[]WorkerSample{{Dropped: 2, Scheduled: 1000}, {Scheduled: 1000}}, nil},
		"more lost":         {[]WorkerSample{{Dropped: 3, Scheduled: 1000}, {Scheduled: 1000}}, []string{engine.CauseDropped}},
		"both": {[]WorkerSample{{Dropped: 30, Scheduled: 1000, LagP99Ms: late(100)}},
			[]string{engine.CauseScheduleLag, engine.CauseDropped}},
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

// TestTooFewConnectionsAreACause: waiting for a connection that lasts, or fills most of a
// short measurement, is told; that after a stall of the target is not.
func TestTooFewConnectionsAreACause(t *testing.T) {
	ms := func(v float64) *float64 { return &v }
	long, fine, none := WorkerSample{PoolWaitMs: ms(80), ServiceMs: ms(20)},
		WorkerSample{PoolWaitMs: ms(8), ServiceMs: ms(1)}, WorkerSample{}
	slow := WorkerSample{PoolWaitMs: ms(80), ServiceMs: ms(100)}
	times := func(n int, s WorkerSample) []WorkerSample { return slices.Repeat([]WorkerSample{s}, n) }
	for name, tt := range map[string]struct {
		samples  []WorkerSample
		from, to int // seconds; -1: no cause
	}{
		"short waits":              {times(20, fine), -1, 0},
		"longer service than wait": {times(20, slow), -1, 0},
		"a stall and its backlog": {slices.Concat(times(8, fine), times(3, none), times(4, long), times(8, fine)),
			-1, 0},
		"most of a short measurement":  {slices.Concat(times(1, fine), times(3, long)), 0, 4},
		"five seconds of a longer one": {slices.Concat(times(10, fine), times(5, long), times(10, fine)), 9, 14},
		"silence in between is no break": {slices.Concat(times(10, fine), times(2, long), times(3, none), times(1, long),
			times(10, fine)), 9, 15},
		"shorter than that, out of longer": {slices.Concat(times(10, fine), times(4, long), times(10, fine)), -1, 0},
	} {
		v := NewValidity()
		for i, s := range tt.samples {
			s.WorkerID = "worker-3"
			v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement, &Second{Workers: []WorkerSample{s}})
		}
		v.Observe(epoch.Add(time.Minute), engine.PhaseCooldown, &Second{})
		v.causes = slices.DeleteFunc(v.causes, func(i *interval) bool { return i.cause == engine.CauseSnapshotGap })
		v.Outcome(Outcome{From: epoch, To: epoch.Add(time.Duration(len(tt.samples)) * time.Second), Operations: 1,
			Ended: true})
		got := v.Clone().Verdict()
		if tt.from < 0 {
			if len(got.Causes) != 0 {
				t.Errorf("%s: %+v", name, got.Causes)
			}
			continue
		}
		if len(got.Causes) != 1 || got.Causes[0].Cause != engine.CausePoolWait ||
			!strings.HasPrefix(got.Causes[0].Detail, "worker-3: ") ||
			!got.Causes[0].From.Equal(epoch.Add(time.Duration(tt.from)*time.Second)) ||
			!got.Causes[0].To.Equal(epoch.Add(time.Duration(tt.to)*time.Second)) {
			t.Errorf("%s: %+v", name, got.Causes)
		}
	}
}

func TestGapsStallsAndLostWorkersAreNamed(t *testing.T) {
	v := NewValidity()
	at := epoch.Add(10 * time.Second)
	for before := 4 * time.Second; before > 0; before -= time.Second {
		v.Observe(at.Add(-before), engine.PhaseMeasurement, &Second{Workers: []WorkerSample{
			{WorkerID: "worker-0", Newest: at.Add(-4 * time.Second)}, {WorkerID: "worker-1", Newest: at.Add(-before)}}})
	}
	v.Observe(at, engine.PhaseMeasurement, &Second{Workers: []WorkerSample{
		{WorkerID: "worker-0", Newest: at.Add(-4 * time.Second)},
		{WorkerID: "worker-1", Newest: at, StalledMs: 40},
		{WorkerID: "worker-2", Newest: epoch, Ended: true},
	}})
	v.LostWorker("worker-2", "stopped responding", epoch, at)
	v.AddNote(engine.TextNote("two runs at once"))
	v.AddNote(engine.TextNote("two runs at once"))
	got := v.Verdict()
	want := map[string]bool{engine.CauseSnapshotGap: true, engine.CauseRecorderStall: true, engine.CauseLostWorker: true}
	for _, c := range got.Causes {
		delete(want, c.Cause)
	}
	if len(want) != 0 || len(got.Causes) != 3 || len(got.Notes) != 1 {
		t.Fatalf("missing %v in %+v", want, got)
	}
}

// TestWhatComesLateIsNotMissing: the snapshots of a node behind a long way are old when they come, and no gap while
// each second brings one. One that stops is a gap since the last that came.
func TestWhatComesLateIsNotMissing(t *testing.T) {
	v := NewValidity()
	for i := range 30 {
		at := epoch.Add(time.Duration(i) * time.Second)
		far := WorkerSample{WorkerID: "far", Newest: at.Add(-5 * time.Second)}
		gone := WorkerSample{WorkerID: "gone", Newest: at.Add(-5 * time.Second)}
		if i > 10 {
			gone.Newest = epoch.Add(5 * time.Second)
		}
		v.Observe(at, engine.PhaseMeasurement, &Second{Workers: []WorkerSample{far, gone}})
	}
	got := v.Clone().Verdict().Causes
	if len(got) != 1 || got[0].Cause != engine.CauseSnapshotGap || got[0].Detail != "gone: no snapshot for 24 s" ||
		!got[0].From.Equal(epoch.Add(5*time.Second)) {
		t.Errorf("%+v", got)
	}
}

// TestAWorkerThatStoodStillIsNamedOnEveryEdge: a snapshot tells how long it covers,
// in whatever phase of the run it comes.
func TestAWorkerThatStoodStillIsNamedOnEveryEdge(t *testing.T) {
	snapshot := func(phase engine.Phase, tick, inPhase float64) *Second {
		return &Second{Snapshots: []engine.WorkerSnapshot{{WorkerID: "worker-0", Phase: phase, Timestamp: engine.At(epoch),
			TickSeconds: tick, PhaseSeconds: inPhase, TickStarted: 1}}}
	}
	for name, tt := range map[string]struct {
		seen    *Second
		phase   engine.Phase
		seconds float64
	}{
		"in the middle":               {snapshot(engine.PhaseMeasurement, 6, 20), engine.PhaseMeasurement, 6},
		"over the end":                {snapshot(engine.PhaseMeasurement, 6, 20), engine.PhaseCooldown, 6},
		"told when all is over":       {snapshot(engine.PhaseMeasurement, 6, 20), engine.PhaseProcessing, 6},
		"over the beginning":          {snapshot(engine.PhaseMeasurement, 6, 5), engine.PhaseMeasurement, 5},
		"mostly before the beginning": {snapshot(engine.PhaseMeasurement, 6, 1), engine.PhaseMeasurement, 0},
		"in the warm-up":              {snapshot(engine.PhaseWarmup, 6, 20), engine.PhaseWarmup, 0},
		"a second":                    {snapshot(engine.PhaseMeasurement, 1.1, 20), engine.PhaseMeasurement, 0},
	} {
		v := NewValidity()
		v.Observe(epoch, tt.phase, tt.seen)
		got := v.Verdict()
		if tt.seconds == 0 {
			if got.Verdict != engine.VerdictValid {
				t.Errorf("%s: %+v", name, got.Causes)
			}
			continue
		}
		from := epoch.Add(-time.Duration(tt.seconds * float64(time.Second)))
		if len(got.Causes) != 1 || got.Causes[0].Cause != engine.CauseSnapshotGap || !got.Causes[0].From.Equal(from) ||
			!got.Causes[0].To.Equal(epoch) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// The process as a whole, when the measurement ended meanwhile.
	v := NewValidity()
	v.Observe(epoch, engine.PhaseMeasurement, &Second{})
	v.Observe(epoch.Add(5*time.Second), engine.PhaseCooldown, &Second{})
	v.Observe(epoch.Add(15*time.Second), engine.PhaseProcessing, &Second{})
	if got := v.Verdict(); len(got.Causes) != 1 || !got.Causes[0].To.Equal(epoch.Add(5*time.Second)) {
		t.Errorf("%+v", got)
	}
}

func TestWhatTheOutcomeSays(t *testing.T) {
	end := epoch.Add(time.Minute)
	for name, tt := range map[string]struct {
		o      Outcome
		causes []string
		notes  int
	}{
		"all well":     {Outcome{Operations: 1000, Scheduled: 1000, Ended: true}, nil, 0},
		"few errors":   {Outcome{Operations: 1000, Errors: 10, Ended: true}, nil, 0},
		"some errors":  {Outcome{Operations: 1000, Errors: 11, Ended: true}, nil, 1},
		"half of them": {Outcome{Operations: 1000, Errors: 500}, nil, 1},
		"most of them": {Outcome{Operations: 1000, Errors: 501}, []string{engine.CauseErrors}, 0},
		"a search of errors": {Outcome{Operations: 1000, Errors: 1000, Ended: true, Search: true}, []string{engine.CauseErrors},
			0},
		"a search": {Outcome{Operations: 1000, Errors: 999, Dropped: 9, Scheduled: 9, Ended: true,
			Search: true}, nil, 1},
		"nothing yet": {Outcome{}, nil, 0},
		"nothing":     {Outcome{Ended: true}, []string{engine.CauseNothingMeasured}, 0},
		// What was seen and is not recorded was begun all the same.
		"nothing recorded": {Outcome{CountedLive: 12_000, Ended: true}, []string{engine.CauseIncompleteRecord}, 0},
		"recorded":         {Outcome{CountedLive: 12_000, Operations: 900, Ended: true}, nil, 0},
		"dropped at the end": {Outcome{Operations: 1000, Scheduled: 1002, Dropped: 2, Ended: true},
			[]string{engine.CauseDropped}, 0},
		"dropped, within the rule": {Outcome{Operations: 1000, Scheduled: 1001, Dropped: 1, Ended: true}, nil, 0},
	} {
		tt.o.From, tt.o.To = epoch, end
		v := NewValidity()
		v.Outcome(tt.o)
		got := v.Clone().Verdict()
		var causes []string
		for _, c := range got.Causes {
			causes = append(causes, c.Cause)
			if !c.From.Equal(epoch) || !c.To.Equal(end) {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if !slices.Equal(causes, tt.causes) || len(got.Notes) != tt.notes ||
			(got.Verdict == engine.VerdictValid) != (len(causes) == 0) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	v := NewValidity()
	v.Outcome(Outcome{From: epoch, To: end, Ended: true, Warmup: 24})
	if text := v.Verdict().Causes[0].Detail; !strings.Contains(
		text,
		"the 24 operations that are recorded were begun in the warm-up",
	) {
		t.Errorf("beside 24 that are recorded: %s", text)
	}
	// A run that never came to its measurement has nothing to be judged by.
	v = NewValidity()
	v.Outcome(Outcome{Ended: true})
	if got := v.Verdict(); got.Verdict != engine.VerdictValid {
		t.Errorf("%+v", got)
	}
}

// TestAStallOfTheTargetIsRemarked: it is the target's, so the figures stay valid.
func TestAStallOfTheTargetIsRemarked(t *testing.T) {
	run := func(ended ...int64) engine.Validity {
		v := NewValidity()
		for i, n := range ended {
			s := &Second{}
			if n >= 0 {
				s.Snapshots = []engine.WorkerSnapshot{{WorkerID: "worker-0", Phase: engine.PhaseMeasurement, TickSeconds: 1,
					PhaseSeconds: float64(i), TickStarted: n, TargetConnections: 4}}
			}
			v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement, s)
		}
		return v.Clone().Verdict()
	}
	for name, tt := range map[string]struct {
		ended []int64
		notes int
	}{
		"none":                      {[]int64{100, 100, 100, 100}, 0},
		"three seconds":             {[]int64{100, 100, 0, 0, 0, 100}, 1},
		"two seconds":               {[]int64{100, 100, 0, 0, 100}, 0},
		"to the end":                {[]int64{100, 100, 100, 0, 0, 0}, 1},
		"two stalls":                {[]int64{100, 100, 0, 0, 0, 0, 100, 0, 0, 0, 0, 100}, 2},
		"few operations were due":   {[]int64{1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1}, 0},
		"no news is no stall":       {[]int64{100, 100, -1, -1, -1, -1, 100}, 0},
		"nothing from the start on": {[]int64{0, 0, 0, 0, 0}, 0},
	} {
		got := run(tt.ended...)
		if got.Verdict != engine.VerdictValid && name != "no news is no stall" || len(got.Notes) != tt.notes {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := run(100, 100, 100, 0, 0, 0, 0, 100).Notes[0]; !strings.Contains(got, "no operation ended for 4 s, after") {
		t.Error(got)
	}
}

// TestManyChangesOfTheLoadAreCounted: a verdict is sent and stored each second, and does not grow with each of them.
func TestManyChangesOfTheLoadAreCounted(t *testing.T) {
	v := NewValidity()
	for i := range 1000 {
		v.LoadChanged(engine.Note{Code: engine.NoteRateChanged, Old: float64(i), New: float64(i + 1), User: "ada"})
	}
	got := v.Clone().Verdict()
	if len(got.Notes) != maxPerCause+1 || !strings.Contains(got.Notes[maxPerCause], "975 more times") ||
		len(got.LiveNotes) != len(got.Notes) || got.Verdict != engine.VerdictValid {
		t.Errorf("%q", got.Notes)
	}
}

// TestAnOpenLoopWithNothingDueIsNoStall: its rate was lowered, by its stages or by a user.
func TestAnOpenLoopWithNothingDueIsNoStall(t *testing.T) {
	for waiting, notes := range map[int]int{0: 0, 2: 1} {
		v := NewValidity()
		for i, n := range []int64{100, 100, 100, 0, 0, 0, 0, 1} {
			s := engine.WorkerSnapshot{WorkerID: "worker-0", Phase: engine.PhaseMeasurement, TickSeconds: 1,
				PhaseSeconds: float64(i), TickStarted: n, TargetConnections: 4, PhaseService: &engine.PackedHistogram{}}
			if n == 0 {
				s.InFlight = waiting
			}
			v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement,
				&Second{Snapshots: []engine.WorkerSnapshot{s}})
		}
		if got := v.Verdict().Notes; len(got) != notes {
			t.Errorf("with %d in flight: %q", waiting, got)
		}
	}
}

func TestAClockThatWasSet(t *testing.T) {
	v := NewValidity()
	v.ClockStepped(epoch, epoch.Add(time.Second), engine.PhaseWarmup, time.Hour)
	v.ClockStepped(epoch, epoch.Add(time.Second), engine.PhaseMeasurement, -500*time.Millisecond)
	if got := v.Verdict(); got.Verdict != engine.VerdictValid || len(got.Notes) != 2 ||
		!strings.Contains(got.Notes[1], "set back by 0.5 s") {
		t.Errorf("%+v", got)
	}
	v.ClockStepped(epoch, epoch.Add(time.Second), engine.PhaseMeasurement, time.Hour)
	v.ClockStepped(epoch.Add(time.Second), epoch.Add(2*time.Second), engine.PhaseMeasurement, -time.Hour)
	got := v.Verdict()
	if len(got.Causes) != 2 || got.Causes[0].Cause != engine.CauseClockStep ||
		!strings.Contains(got.Causes[0].Detail, "forward by 3600.0 s, or the machine was paused;") ||
		!strings.Contains(got.Causes[1].Detail, "back by 3600.0 s; the run's") ||
		!got.Causes[1].From.Equal(epoch.Add(time.Second)) {
		t.Errorf("%+v", got)
	}
}

// TestACauseThatComesOftenHidesNoOther: drops that are too few to matter filled the list of causes, and what came after
// them was neither listed nor judged.
func TestACauseThatComesOftenHidesNoOther(t *testing.T) {
	v := NewValidity()
	at := epoch
	second := func(s *Second) { at = at.Add(time.Second); v.Observe(at, engine.PhaseMeasurement, s) }
	load := func(dropped int64) *Second {
		return &Second{Workers: []WorkerSample{{WorkerID: "w0", Dropped: dropped, Scheduled: 100_000}}}
	}
	for range 200 {
		second(load(1))
		for range 4 {
			second(load(0))
		}
	}
	if got := v.Verdict(); got.Verdict != engine.VerdictValid || len(got.Causes)+len(got.Notes) != 0 {
		t.Errorf("drops below the limit: %+v", got)
	}
	for range 40 {
		second(&Second{Nodes: []NodeSample{{NodeID: "n", Resources: engine.Resources{GCPauseMaxMs: 12}}}})
		for range 4 {
			second(load(0))
		}
	}
	v.LostWorker("w0", "did not respond for 10 s", at, at)
	got := v.Verdict()
	if got.Verdict != engine.VerdictDegraded || len(got.Causes) != maxPerCause+1 ||
		got.Causes[maxPerCause].Cause != engine.CauseLostWorker ||
		!slices.Equal(got.Notes, []string{"gc_pause was seen 15 more times, which are not listed."}) {
		t.Errorf("%s, %d causes, %q", got.Verdict, len(got.Causes), got.Notes)
	}
	if same := v.Clone().Verdict(); !slices.Equal(same.Notes, got.Notes) || len(same.Causes) != len(got.Causes) {
		t.Errorf("of its clone %+v", same)
	}
}

// TestAGapByAClockThatIsBehind: a server that is behind the one whose run it took over hears nothing of a run worker,
// whose last second was told by the clock of the other. It is one gap, and as long as it was.
func TestAGapByAClockThatIsBehind(t *testing.T) {
	v := NewValidity()
	ahead := &Second{Workers: []WorkerSample{{WorkerID: "w0", Newest: epoch.Add(48 * time.Second)}}}
	for i := range 30 {
		v.Observe(epoch.Add(time.Duration(i)*time.Second), engine.PhaseMeasurement, ahead)
	}
	got := v.Verdict().Causes
	if len(got) != 1 || !got[0].From.Equal(epoch) || got[0].Detail != "w0: no snapshot for 29 s" {
		t.Errorf("%+v", got)
	}
}

// TestOtherRunsAreNotedOnceBehindATakeover: the process that goes on with a run is told the notes of the one before.
func TestOtherRunsAreNotedOnceBehindATakeover(t *testing.T) {
	for _, c := range []struct {
		before, since int
		want          string
	}{
		{1, 0, "1 other run was live on this server at the same time."},
		{1, 1, "1 other run was live on this server at the same time."},
		{3, 1, "Up to 3 other runs were live on this server at the same time."},
		{2, 12, "Up to 12 other runs were live on this server at the same time."},
	} {
		gone, v := NewValidity(), NewValidity()
		gone.SetConcurrentRuns(c.before)
		before := gone.Verdict()
		for _, note := range before.ReadNotes() {
			v.AddNote(note)
		}
		if most := v.SetConcurrentRuns(c.since); most != max(c.before, c.since) {
			t.Errorf("%+v: %d at most", c, most)
		}
		if got := v.Verdict(); !slices.Equal(got.Notes, []string{c.want}) || !slices.Equal(got.LiveNotes, got.Notes) {
			t.Errorf("%+v: %q, seen %q", c, got.Notes, got.LiveNotes)
		}
	}
}

func TestOtherRunsAreNotedOnce(t *testing.T) {
	v := NewValidity()
	for _, others := range []int{0, 1, 3, 2, 0} {
		v.SetConcurrentRuns(others)
		v = v.Clone()
		switch got := v.Verdict().Notes; {
		case others == 0 && v.concurrentRuns == 0:
			if len(got) != 0 {
				t.Errorf("alone: %q", got)
			}
		case v.concurrentRuns == 1:
			if !slices.Equal(got, []string{"1 other run was live on this server at the same time."}) {
				t.Errorf("beside one: %q", got)
			}
		default:
			if !slices.Equal(got, []string{"Up to 3 other runs were live on this server at the same time."}) {
				t.Errorf("beside %d: %q", others, got)
			}
		}
	}
}
