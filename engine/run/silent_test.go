package run

import (
	"math"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
)

// TestASilentRunWorkerSaysSinceWhen: its node was killed, or the way to it is cut, and what it does nobody
// knows. Its last figures count until it is dead, and nobody joins for what may be there.
func TestASilentRunWorkerSaysSinceWhen(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, v *virtualServer) {
		sc := overRate(engine.ScalingAuto, 0)
		sc.Workload.ConcurrentConnections = 8
		v.start(sc)
		v.wait(10 * time.Second)
		before := v.live()
		whole := before.Ops.CurrentPerSec
		if len(before.Workers) != 4 || whole < 1 {
			t.Fatalf("%d workers, %v/s", len(before.Workers), whole)
		}
		of := func(p *engine.LiveState, id string) engine.WorkerState {
			for _, w := range p.Workers {
				if w.WorkerID == id {
					return w
				}
			}
			t.Fatalf("%s is not there", id)
			return engine.WorkerState{}
		}
		v.silence("worker-1", true)
		v.wait(runlive.SilentAfter + 3*time.Second)
		p := v.live()
		w := of(p, "worker-1")
		if w.SilentSince.IsZero() || w.SilentSince != w.LastHeartbeat || w.Metrics.QPS == nil {
			t.Errorf("silent since %v, last heard %v, %+v", w.SilentSince, w.LastHeartbeat, w.Metrics)
		}
		if rate := p.Ops.CurrentPerSec; math.Abs(rate-whole) > 0.15*whole {
			t.Errorf("%v/s of %v/s are current", rate, whole)
		}
		if w.Metrics.TotalQueries == 0 || w.Metrics.TotalQueries < of(before, "worker-1").Metrics.TotalQueries ||
			p.Ops.Total <= before.Ops.Total {
			t.Errorf("%d operations, %d of them the silent one's", p.Ops.Total, w.Metrics.TotalQueries)
		}
		if w = of(p, "worker-0"); !w.SilentSince.IsZero() || w.Metrics.QPS == nil {
			t.Errorf("one that reports is silent since %v: %+v", w.SilentSince, w.Metrics)
		}
		v.wait(40 * time.Second) // it is STALE by now
		if p = v.live(); len(p.Workers) != 4 {
			t.Errorf("%d run workers, for a rate that nobody knows to be missed", len(p.Workers))
		}
		v.silence("worker-1", false)
		v.wait(3 * time.Second)
		p = v.live()
		if w = of(p, "worker-1"); !w.SilentSince.IsZero() || math.Abs(p.Ops.CurrentPerSec-whole) > 0.15*whole {
			t.Errorf("silent since %v when it is heard again, %v/s of %v/s", w.SilentSince, p.Ops.CurrentPerSec, whole)
		}
		if _, err := v.svc.Stop(t.Context(), "run-1", "tester"); err != nil {
			t.Fatal(err)
		}
		v.figures()
	})
}
