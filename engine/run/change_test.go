package run_test

import (
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// TestTheRateChangesWhileARunGoesOn: the run workers issue at the new rate, the account balances, and the run says so.
func TestTheRateChangesWhileARunGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	rate, faster := 50.0, 150.0
	run := f.run(func(sc *engine.Scenario) {
		sc.Scaling = engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 4}
		sc.Workload.LoadMode, sc.Workload.TargetQPS = engine.LoadQPS, &rate
		sc.Workload.ConcurrentConnections, sc.Workload.WarmupSeconds, sc.Workload.DurationSeconds = 4, 0, 8
	})
	f.until(run.RunID, func(p *engine.LiveState) bool {
		return p.Timing.PhaseElapsedSeconds != nil && *p.Timing.PhaseElapsedSeconds > 2 && phase(engine.PhaseMeasurement)(p)
	})
	_, err := f.svc.ChangeLoad(t.Context(), run.RunID, "ada", scaling.LoadRequest{Connections: new(int)})
	if !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("connections of an open loop: %v", err)
	}
	e, err := f.svc.ChangeLoad(t.Context(), run.RunID, "ada", scaling.LoadRequest{TargetQPS: &faster})
	if err != nil || e.SequenceID == 0 || e.Data.InitiatedBy != "ada" || *e.Data.OldQPS != rate {
		t.Fatalf("%+v, %v", e, err)
	}
	answered := e.EventID
	f.until(run.RunID, func(p *engine.LiveState) bool {
		return p.Status.Terminal() || p.TargetQPS != nil && *p.TargetQPS == faster
	})
	sum := f.wait(run.RunID)
	// 2 s and more at 50/s, 5 s and more at 150/s: neither rate alone gives as many.
	if sum.Status != engine.StatusCompleted || !sum.Accounting.Balanced || sum.Operations < 600 || sum.Operations > 1100 {
		t.Errorf("%s, %d operations, %+v\n%s", sum.Status, sum.Operations, sum.Accounting, f.logs(run.RunID))
	}
	if said := strings.Join(sum.ValidityDetail.Notes, " "); !strings.Contains(said, "from 50/s to 150/s") {
		t.Errorf("the verdict says %q", said)
	}
	// What the rate was is told as it was on average, not as the template had it.
	if of := sum.TargetQPS; of == nil || *of <= 100 || *of >= 140 || *sum.QPS < *of*0.9 || *sum.QPS > *of*1.1 {
		t.Errorf("%.1f/s of %v", *sum.QPS, *of)
	}
	d := f.settled(run.RunID)
	changes := 0
	for _, e := range d.Events {
		if e.Type == engine.EventLoadChanged {
			changes++
			if e.EventID == "" || e.EventID != answered {
				t.Errorf("the answer names the event %q, stored is %q", answered, e.EventID)
			}
		}
	}
	if changes != 1 || len(told(d, engine.TargetChange)) != 2 {
		t.Errorf("%d changes, targets %+v", changes, told(d, engine.TargetChange))
	}
	if _, err = f.svc.ChangeLoad(
		t.Context(),
		run.RunID,
		"ada",
		scaling.LoadRequest{TargetQPS: &rate},
	); !engine.HasCode(
		err,
		engine.CodeConflict,
	) {
		t.Errorf("of a run that is over: %v", err)
	}
}

// TestConnectionsChangeWhileARunGoesOn: up to what the run workers hold, and down again.
func TestConnectionsChangeWhileARunGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Scaling = engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 4}
		sc.Workload.ConcurrentConnections, sc.Workload.WarmupSeconds, sc.Workload.DurationSeconds = 2, 0, 10
	})
	f.until(run.RunID, phase(engine.PhaseMeasurement))
	for _, n := range []int{8, 3} {
		if _, err := f.svc.ChangeLoad(t.Context(), run.RunID, "ada", scaling.LoadRequest{Connections: &n}); err != nil {
			t.Fatal(err)
		}
		p := f.until(run.RunID, func(p *engine.LiveState) bool { return p.Status.Terminal() || p.Connections.Active == n })
		if p.Connections.Active != n || p.Connections.Target != n {
			t.Errorf("%+v, and not %d\n%s", p.Connections, n, f.logs(run.RunID))
		}
	}
	if sum := f.wait(run.RunID); sum.Status != engine.StatusCompleted || !sum.Accounting.Balanced {
		t.Errorf("%s, %+v\n%s", sum.Status, sum.Accounting, f.logs(run.RunID))
	}
}

// TestEveryChangeOfTheLoadIsShown: also those behind the first events of a run, which are all that comes with it.
func TestEveryChangeOfTheLoadIsShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t).start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Scaling = engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: 2, PerWorkerCapacity: 4}
		sc.Workload.ConcurrentConnections, sc.Workload.WarmupSeconds, sc.Workload.DurationSeconds = 4, 0, 60
	})
	f.until(run.RunID, phase(engine.PhaseMeasurement))
	const changes = 110 // of three events each
	for i := range changes {
		to := scaling.LoadRequest{Connections: new(2 + i%2)}
		if _, err := f.svc.ChangeLoad(t.Context(), run.RunID, "ada", to); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.svc.Stop(t.Context(), run.RunID, "ada"); err != nil {
		t.Fatal(err)
	}
	f.wait(run.RunID)
	d := f.settled(run.RunID)
	if int64(len(d.Events)) >= d.EventsTotal || len(d.LoadChanges) != changes ||
		*d.LoadChanges[changes-1].Data.TargetConnections != 2+(changes-1)%2 {
		t.Errorf("%d of %d events, %d of %d changes", len(d.Events), d.EventsTotal, len(d.LoadChanges), changes)
	}
}
