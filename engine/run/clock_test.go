package run_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// wallClock is the machine's clock, which a test can set (the monotonic reading
// stays, as in time.Now after somebody has set the clock), and let jump as it
// does over a time in which the process was stopped.
type wallClock struct {
	set  atomic.Int64 // s
	jump atomic.Int64 // ns
}

func (c *wallClock) read() time.Time {
	t := time.Now().Add(time.Duration(c.jump.Load()))
	// One bit, 33 bits of seconds, 30 bits of nanoseconds; see TestAClockDoesNotFollowTheWall.
	wall := (*uint64)(unsafe.Pointer(&t))
	*wall = uint64(int64(*wall) + c.set.Load()<<30)
	return t
}

func causes(v engine.Validity) []string {
	var out []string
	for _, c := range v.Causes {
		out = append(out, c.Cause)
	}
	return out
}

// paced makes a load small enough that the machine does little else than keep time:
// what is tested is when things happen, and not how many.
func paced(sc *engine.Scenario, mode engine.LoadMode) {
	if sc.Workload.LoadMode = mode; mode == engine.LoadQPS {
		rate := 100.0
		sc.Workload.TargetQPS = &rate
		return
	}
	sc.Workload.ThinkTimeMs = 20
}

func TestAClockThatIsSetMovesNoTimeOfTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		step int64
		mode engine.LoadMode
	}{
		"forward in a closed loop": {3600, engine.LoadConcurrency}, "back in a closed loop": {-3600, engine.LoadConcurrency},
		"forward in an open loop": {3600, engine.LoadQPS}, "back in an open loop": {-3600, engine.LoadQPS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			var clock wallClock
			f.clock = clock.read
			f.start()
			begin := time.Now()
			run := f.run(func(sc *engine.Scenario) {
				sc.Workload.DurationSeconds = 4
				paced(sc, c.mode)
			})
			f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 0 })
			clock.set.Store(c.step)
			p := f.until(run.RunID, func(p *engine.LiveState) bool {
				return strings.Contains(f.logs(run.RunID), "the machine's clock was set") || len(p.Validity.Causes) > 0
			})
			if e := p.Timing.ElapsedDisplaySeconds; e <= 0 || e > 120 {
				t.Errorf("%v s are shown", e)
			}
			sum := f.wait(run.RunID)
			took := time.Since(begin)
			within := func(what string, at engine.Time) {
				t.Helper()
				if d := at.Sub(begin); d < -time.Second || d > took+time.Second {
					t.Errorf("%s is %v after the run's begin", what, d)
				}
			}
			if sum.Status != engine.StatusCompleted || !sum.Accounting.Balanced {
				t.Errorf("%s %+v", sum.Status, sum.Accounting)
			}
			// A busy machine may add causes of its own; what the step must not add is a gap.
			if got := causes(sum.ValidityDetail); sum.Validity != engine.VerdictDegraded ||
				!slices.Contains(got, "clock_step") || slices.Contains(got, "snapshot_gap") {
				t.Errorf("%s: %+v", sum.Validity, sum.ValidityDetail)
			}
			for _, cause := range sum.ValidityDetail.Causes {
				within(cause.Cause, cause.From)
				within(cause.Cause, cause.To)
			}
			d := f.detail(run.RunID)
			for what, at := range map[string]engine.Time{"the start": d.StartTime, "the warm-up": d.WarmupStartTime,
				"the measurement": d.WarmupEndTime, "its end": d.MeasurementEndTime, "the end": d.EndTime} {
				within(what, at)
			}
			if d.MeasurementEndTime.Sub(d.WarmupEndTime.Time) < 4*time.Second-10*time.Millisecond {
				t.Errorf("measured from %v to %v", d.WarmupEndTime, d.MeasurementEndTime)
			}
			for _, e := range d.Events {
				within("an event", e.CreatedAt)
			}
			for _, a := range d.Artifacts {
				within("the first record", a.MinTime)
				within("the last record", a.MaxTime)
			}
			points, _, err := f.store.Series(t.Context(), run.RunID, store.Window{})
			if err != nil || len(points) < 3 {
				t.Fatalf("%d points, %v", len(points), err)
			}
			last := -1.0
			for _, p := range points {
				within("a point", p.Timestamp)
				if p.ElapsedSeconds <= last {
					t.Errorf("a point at %v s after one at %v s", p.ElapsedSeconds, last)
				}
				last = p.ElapsedSeconds
			}
		})
	}
}

// A process that was stopped for longer than workers may be silent has lost none of them.
func TestAProcessThatStoodStillLosesNoWorker(t *testing.T) {
	f := newFixture(t)
	var clock wallClock
	f.clock = clock.read
	f.start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Workload.DurationSeconds = 300
		paced(sc, engine.LoadConcurrency)
	})
	// The measurement begins when run workers are told of it: what lies between the decision and that is not missed.
	f.until(run.RunID, func(p *engine.LiveState) bool {
		return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 0 &&
			!slices.ContainsFunc(p.Workers, func(w engine.WorkerState) bool { return w.Phase != engine.PhaseMeasurement })
	})
	clock.jump.Store(int64(90 * time.Second))
	var before int64
	p := f.until(run.RunID, func(p *engine.LiveState) bool {
		if len(p.Validity.Causes) == 0 {
			return p.Status.Terminal()
		}
		if before == 0 {
			before = p.Ops.Total
		}
		return p.Ops.Total > before || p.Status.Terminal()
	})
	if p.Status != engine.StatusRunning {
		t.Fatalf("the run is %s\n%s", p.Status, f.logs(run.RunID))
	}
	if _, err := f.svc.Stop(t.Context(), run.RunID, "tester"); err != nil {
		t.Fatal(err)
	}
	sum := f.wait(run.RunID)
	if sum.Status != engine.StatusCancelled || !sum.Accounting.Balanced ||
		!slices.Contains(causes(sum.ValidityDetail), "snapshot_gap") ||
		slices.Contains(causes(sum.ValidityDetail), "lost_worker") {
		t.Errorf("%s, %+v, %+v", sum.Status, sum.Accounting, sum.ValidityDetail)
	}
}
