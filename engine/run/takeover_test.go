package run_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	enginerun "github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// outliving gives the fixture a node that outlives its servers, with a link for each.
func (f *fixture) outliving(links ...*protocol.Memory) *worker.Node {
	node := worker.NewNode(worker.Options{NodeID: "elsewhere", Sample: sampleMachine(), Plugins: f.plugins,
		Drivers:  map[string]target.Driver{f.driver.Name(): f.driver},
		SpoolDir: filepath.Join(f.dir, "spool"), Log: testLog()})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	for _, link := range links {
		serving.Go(func() {
			if err := node.Listen(ctx, link); err != nil {
				f.t.Errorf("serving: %v", err)
			}
		})
	}
	f.t.Cleanup(func() { cancel(); serving.Wait() })
	return node
}

// server is a server on the fixture's store whose node is at the end of a link.
func (f *fixture) server(owner string, link protocol.Dialer) *enginerun.Service {
	f.t.Helper()
	svc := enginerun.New(enginerun.Options{Store: f.wrap(f.store), Results: f.results, Plugins: f.plugins,
		Drivers: map[string]target.Driver{f.driver.Name(): f.driver}, Nodes: []protocol.Dialer{link}, Log: testLog(),
		Version: "test", TempDir: filepath.Join(f.dir, "scratch"), Owner: owner, Rules: f.rules})
	if err := svc.Open(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		closing, done := context.WithTimeout(context.Background(), 20*time.Second)
		defer done()
		if err := svc.Close(closing); err != nil {
			f.t.Errorf("closing: %v", err)
		}
	})
	return svc
}

// whole checks that a run that was taken over in its measurement has lost nothing but what it says.
func (f *fixture) whole(runID string) {
	f.t.Helper()
	d := f.settled(runID)
	s := d.Summary
	if d.Status != engine.StatusCompleted || s == nil || !s.Accounting.Balanced || s.Accounting.Recorded == 0 ||
		s.Accounting.Recorded != s.Accounting.Started || s.CoveredSeconds != nil || len(s.Stalls) > 0 {
		f.t.Fatalf("%s, %+v\n%s", d.Status, s, f.logs(runID))
	}
	if got := causes(s.ValidityDetail); !slices.Contains(got, "snapshot_gap") || slices.Contains(got, "lost_worker") ||
		slices.Contains(got, "incomplete_record") {
		f.t.Errorf("%v: %+v", got, s.ValidityDetail)
	}
	// The load never stood still.
	if *s.QPS < 190 || *s.QPS > 210 || s.DurationSeconds < 4.9 || s.DurationSeconds > 5.5 {
		f.t.Errorf("%.1f/s over %.3f s", *s.QPS, s.DurationSeconds)
	}
	if left := spooled(f.t, f); len(left) > 0 {
		f.t.Errorf("in the spool: %v", left)
	}
}

func steady(sc *engine.Scenario) {
	sc.Workload.LoadMode, sc.Workload.ConcurrentConnections = engine.LoadQPS, 4
	rate := 200.0
	sc.Workload.TargetQPS, sc.Workload.DurationSeconds, sc.Workload.WarmupSeconds = &rate, 5, 0.5
}

// TestARestartedServerGoesOnWithWhatNodesCarry: its load never stops, the run ends when it
// would have, and its record is whole.
func TestARestartedServerGoesOnWithWhatNodesCarry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	link := protocol.NewMemory()
	f.outliving(link)
	f.svc = f.server("a", link)
	run := f.run(steady)
	f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 100 })
	f.svc.Kill()
	f.svc = f.server("a", link)
	live := f.until(run.RunID, func(p *engine.LiveState) bool { return p.Ops.CurrentPerSec > 150 && p.Ops.Total > 100 })
	if live.Status != engine.StatusRunning || len(live.Workers) != 2 || live.Workers[0].NodeID != "elsewhere" {
		t.Errorf("%s, %+v", live.Status, live.Workers)
	}
	f.whole(run.RunID)
	events, err := f.store.Events(t.Context(), run.RunID, 0)
	if err != nil || slices.ContainsFunc(events, func(e engine.Event) bool {
		return e.Data.Reason == engine.TargetRedistribute
	}) {
		t.Errorf("%v: a run of a fixed size was divided anew: %+v", err, events)
	}
	if !strings.Contains(f.logs(run.RunID), "The server restarted; this one goes on with the run after") {
		t.Error(f.logs(run.RunID))
	}
}

// TestTheSurvivorTakesARunOver: a server that is killed is succeeded by another one that
// has a stream to the same node, when its lease has expired. Until then nobody touches the run.
func TestTheSurvivorTakesARunOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	links := []*protocol.Memory{protocol.NewMemory(), protocol.NewMemory()}
	f.outliving(links...)
	f.svc = f.server("a", links[0])
	survivor := f.server("b", links[1])
	run := f.run(steady)
	f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 50 })
	// The page of the other server shows the run meanwhile, and goes on with it to its end.
	page, leave, err := survivor.Subscribe(run.RunID)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	defer time.AfterFunc(time.Minute, leave).Stop()
	live := false
	for p := range page {
		if live = phase(engine.PhaseMeasurement)(p) && p.Ops.CurrentPerSec > 150 && p.Latency.P95 != nil &&
			len(p.Workers) == 2; live {
			break
		}
	}
	if !live {
		t.Fatal("the other server shows no figures of the run")
	}
	shown := make(chan engine.Status, 1)
	go func() {
		var last engine.Status
		for p := range page {
			last = p.Status
		}
		shown <- last
	}()
	f.svc.Kill()
	f.svc = survivor
	time.Sleep(300 * time.Millisecond)
	if d := f.detail(run.RunID); d.Status != engine.StatusRunning || d.Live != nil {
		t.Fatalf("before its lease has expired the run is %s, live %v", d.Status, d.Live)
	}
	f.expireLeases()
	f.whole(run.RunID)
	if last := <-shown; last != engine.StatusCompleted {
		t.Errorf("the page that was open showed %s last", last)
	}
}

// carriedByA is a run of ten minutes that server a carries, under load, on a node that outlives it, and server b beside it.
func carriedByA(t *testing.T) (f *fixture, b *enginerun.Service, run engine.Run) {
	t.Helper()
	f = newFixture(t)
	links := []*protocol.Memory{protocol.NewMemory(), protocol.NewMemory()}
	f.outliving(links...)
	f.svc = f.server("a", links[0])
	b = f.server("b", links[1])
	run = f.run(func(sc *engine.Scenario) { steady(sc); sc.Workload.DurationSeconds = 600 })
	f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 50 })
	return f, b, run
}

// nothingPends checks that no command of a run is open.
func (f *fixture) nothingPends() {
	f.t.Helper()
	if open, err := f.store.PendingRunCommands(f.t.Context()); err != nil || len(open) > 0 {
		f.t.Errorf("open are %+v, %v", open, err)
	}
}

// expireLeases has the leases of all runs expire.
func (f *fixture) expireLeases() {
	f.t.Helper()
	conn, err := pgx.Connect(f.t.Context(), f.control)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = conn.Close(f.t.Context()) }()
	if _, err := conn.Exec(f.t.Context(), "UPDATE run_status SET lease_until = now() - interval '1 s'"); err != nil {
		f.t.Fatal(err)
	}
}

// stopper stops a run at a server, and says what came of it and how long it took.
func stopper(t *testing.T, at *enginerun.Service, runID string) (engine.Run, time.Duration, error) {
	t.Helper()
	begin := time.Now()
	run, err := at.Stop(t.Context(), runID, "tester")
	return run, time.Since(begin), err
}

// TestAnyServerStopsARun: what it is asked reaches the server that carries the run, and the answer
// is that of a run which is being cancelled.
func TestAnyServerStopsARun(t *testing.T) {
	t.Parallel()
	f, other, run := carriedByA(t)
	got, took, err := stopper(t, other, run.RunID)
	if err != nil || got.StopReason != engine.StopUserRequested ||
		got.Status != engine.StatusCancelling && got.Status != engine.StatusCancelled {
		t.Fatalf("after %v: %s, %s, %v", took, got.Status, got.StopReason, err)
	}
	d := f.settled(run.RunID)
	if d.Status != engine.StatusCancelled || !d.Summary.Accounting.Balanced || d.Owner != "a" {
		t.Errorf("%s of %s, %+v\n%s", d.Status, d.Owner, d.Summary.Accounting, f.logs(run.RunID))
	}
	// A run that is over has nothing to stop, wherever that is asked; one that has not begun is cancelled.
	if _, _, err := stopper(t, other, run.RunID); !engine.HasCode(err, engine.CodeConflict) {
		t.Error(err)
	}
	f.nothingPends()
}

// TestAStopNeedsNoOwner: the server that carried a run is killed, and another one stops the run as soon as it is asked,
// on a real store and a real node, long before the lease has expired.
func TestAStopNeedsNoOwner(t *testing.T) {
	t.Parallel()
	f, survivor, run := carriedByA(t)
	f.svc.Kill()
	f.svc = survivor
	got, took, err := stopper(t, survivor, run.RunID)
	if err != nil || got.StopReason != engine.StopUserRequested || got.OwnerEpoch <= run.OwnerEpoch ||
		got.Status != engine.StatusCancelling && got.Status != engine.StatusCancelled {
		t.Fatalf("after %v: %s, %s, epoch %d, %v\n%s", took, got.Status, got.StopReason, got.OwnerEpoch, err,
			f.logs(run.RunID))
	}
	t.Logf("stopped after %v", took)
	d := f.settled(run.RunID)
	if d.Status != engine.StatusCancelled || d.StopReason != engine.StopUserRequested || d.Owner != "b" ||
		!d.Summary.Accounting.Balanced {
		t.Errorf("%s of %s, %s, %+v\n%s", d.Status, d.Owner, d.StopReason, d.Summary.Accounting, f.logs(run.RunID))
	}
	f.nothingPends()
}

// TestAStopThatWasNotedOutlivesTheLease: the server that carried a run and the one that was asked to stop it are both gone.
// Who takes the run over when its lease has expired does the STOP, on a real store and a real node.
func TestAStopThatWasNotedOutlivesTheLease(t *testing.T) {
	t.Parallel()
	f, survivor, run := carriedByA(t)
	f.svc.Kill()
	f.svc = survivor
	// As the server that was asked does it, which ends then: nobody else takes a run over for it.
	if _, err := f.store.EnqueueRunCommand(t.Context(), store.RunCommand{RunID: run.RunID, Kind: store.CommandStop,
		By: "tester", Server: "c"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if d := f.detail(run.RunID); d.Status != engine.StatusRunning || d.Owner != "a" {
		t.Fatalf("before its lease has expired the run is %s of %s", d.Status, d.Owner)
	}
	f.expireLeases()
	d := f.settled(run.RunID)
	if d.Status != engine.StatusCancelled || d.StopReason != engine.StopUserRequested || d.Owner != "b" ||
		!d.Summary.Accounting.Balanced {
		t.Errorf("%s of %s, %s, %+v\n%s", d.Status, d.Owner, d.StopReason, d.Summary.Accounting, f.logs(run.RunID))
	}
	f.nothingPends()
}

// TestALostRunIsCancelledWhereThatWasAsked: a run whose run workers ended with the server that carried them is not
// FAILED when a user has stopped it, and the stop waits for no lease.
func TestALostRunIsCancelledWhereThatWasAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.owner = "a"
	f.start()
	run := f.run(func(sc *engine.Scenario) { steady(sc); sc.Workload.DurationSeconds = 600 })
	f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 50 })
	f.kill()
	survivor := f.server("b", protocol.NewMemory())
	got, took, err := stopper(t, survivor, run.RunID)
	if err != nil || got.StopReason != engine.StopUserRequested {
		t.Fatalf("after %v: %s, %s, %v", took, got.Status, got.StopReason, err)
	}
	f.svc = survivor
	d := f.settled(run.RunID)
	if d.Status != engine.StatusCancelled || *d.CancellationReason != "User requested cancellation" ||
		d.Summary.Validity != engine.VerdictDegraded {
		t.Errorf("%s, %v, %+v\n%s", d.Status, d.CancellationReason, d.Summary, f.logs(run.RunID))
	}
}
