package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/target"
)

var loadBegan = time.Unix(1_790_000_000, 0)

// factsOf is a run of the scenario whose run workers, each with so many connections, have begun their load.
func factsOf(sc engine.Scenario, connections ...int) *facts {
	f := &facts{runID: "run-1", sc: sc, plan: &prepare.Prepared{Plan: &engine.Plan{KeySlots: 8},
		Server: target.ServerInfo{MaxConnections: 1000}}}
	for _, w := range InitialWorkers(sc, connections) {
		f.Register(w)
		w.Node = fakeNode("node-" + w.ID)
	}
	f.life = lifecycle.New(LifecyclePlan(engine.Run{RunID: "run-1", Scenario: sc}, WorkerIDs(f.Workers)))
	f.life.Apply(loadBegan, lifecycle.RunStarted{})
	f.life.Apply(loadBegan, lifecycle.Prepared{MaxLevel: 100})
	for _, w := range f.Workers {
		f.life.Apply(loadBegan, lifecycle.WorkerChanged{ID: w.ID, Status: engine.WorkerReady})
		w.State.Status = engine.WorkerRunning
	}
	f.life.PhaseSent(loadBegan, f.life.Phase())
	return f
}

// parts are the connections of run workers.
func parts(workers []*Worker) (out []int) {
	for _, w := range workers {
		out = append(out, w.Connections)
	}
	return out
}

// inStages is a run that has 2 connections to a run worker at most, and goes through the levels, a minute each.
func inStages(levels ...int) engine.Scenario {
	sc := elastic(engine.ScalingAuto, 0)
	sc.Scaling.PerWorkerCapacity, sc.Workload.ConcurrentConnections = 2, levels[0]
	sc.Workload.WarmupSeconds, sc.Workload.Stages = 0, nil
	for _, level := range levels {
		stage := engine.Stage{DurationSeconds: 60, Connections: &level, Ramp: engine.RampStep}
		sc.Workload.Stages = append(sc.Workload.Stages, stage)
	}
	return sc
}

func TestScalerJoinsForStages(t *testing.T) {
	f := factsOf(inStages(2, 6), 2)
	s := newScaler(f)
	for _, c := range []struct {
		at      time.Duration
		missing int
	}{{10 * time.Second, 0}, {60*time.Second - scaling.JoinLead/2, 2}, {70 * time.Second, 2}} {
		if n := s.missingWorkers(loadBegan.Add(c.at), len(f.ActiveWorkers())); n != c.missing {
			t.Errorf("at %v %d are missing, not %d", c.at, n, c.missing)
		}
	}
	now := loadBegan.Add(70 * time.Second)
	s.pauseJoins(now)
	if n := s.missingWorkers(now.Add(scaling.JoinRetryDelay/2), 1); n != 0 {
		t.Errorf("%d may join though one could not a moment ago", n)
	}
	f.plan.Plan.KeySlots = 2
	if n := s.missingWorkers(now.Add(2*scaling.JoinRetryDelay), 1); n != 0 {
		t.Errorf("%d may join without a slot for each", n)
	}
}

func TestScalerRetiresWhoIsNotNeeded(t *testing.T) {
	f := factsOf(inStages(6, 2), 2, 2, 2)
	s := newScaler(f)
	now := loadBegan.Add(100 * time.Second)
	f.plan.Plan.KeySlots = 3
	if stay, left := s.retire(now, f.ActiveWorkers(), 2); len(stay) != 3 || left.workers != nil {
		t.Error("run workers leave whose slots could not be used again when they are needed")
	}
	f.plan.Plan.KeySlots = 8
	changed, left := s.distributeStage(now, f.ActiveWorkers())
	if got := WorkerIDs(left.workers); !slices.Equal(got, []string{"worker-1", "worker-2"}) {
		t.Fatalf("%v leave", got)
	}
	var events []string
	for _, e := range left.events {
		events = append(events, fmt.Sprint(e.Type, " ", e.Data.WorkerID))
	}
	target, stop := string(engine.EventSetWorkerTarget), string(engine.EventStop)
	want := []string{target + " worker-1", stop + " worker-1", target + " worker-2", stop + " worker-2"}
	if !slices.Equal(events, want) {
		t.Errorf("they are told %q", events)
	}
	if !slices.Equal(parts(f.Workers), []int{2, 0, 0}) || len(changed) != 0 || len(f.ActiveWorkers()) != 1 {
		t.Errorf("they have %v, %d changed", parts(f.Workers), len(changed))
	}
}

func TestScalerGrowsAndTakesBackWhatNobodyTook(t *testing.T) {
	f := factsOf(overRate(engine.ScalingAuto, 0), 2)
	s := newScaler(f)
	room, connections := s.roomForRate(loadBegan, 1, placement.FreeCapacity{Nodes: 2, Connections: 4})
	if room.Workers != 2 || connections != 6 {
		t.Fatalf("room for %+v and %d connections", room, connections)
	}
	shares, before := s.scaleOut(1, 2, connections)
	if !slices.Equal(shares, []int{2, 2}) || before != 2 || s.pool != 6 || !s.joining {
		t.Fatalf("%v join %d, of %d", shares, before, s.pool)
	}
	joined := []*Worker{{ID: "worker-1", Group: 1}, {ID: "worker-2", Group: 2}}
	for _, w := range joined {
		f.Register(w)
		w.State.Status = engine.WorkerStarting
	}
	s.lastScaleOut.Add(before, 2, joined)
	joined[0].State.Status = engine.WorkerReady
	if settled, _ := s.rebalanceWhenReady(loadBegan); settled {
		t.Error("one of them is starting")
	}
	joined[1].State.Status = engine.WorkerFailed
	if settled, why := s.rebalanceWhenReady(loadBegan); !settled || why != "" || s.joining || s.pool != 4 {
		t.Errorf("settled %v, %q, %d connections", settled, why, s.pool)
	}
	if settled, _ := s.rebalanceWhenReady(loadBegan); settled {
		t.Error("nobody joins any more")
	}
}

func TestScalerSeesAMissedRate(t *testing.T) {
	f := factsOf(overRate(engine.ScalingAuto, 0), 2)
	s, rate := newScaler(f), 100.0
	second := &runlive.Second{Snapshots: []engine.WorkerSnapshot{{}}}
	second.Payload.TargetQPS, second.Payload.Waiting, second.Payload.Ops.CurrentPerSec = &rate, 1, 50
	if seen, ok := s.observedRate(second); !ok || !seen.MissesRate() {
		t.Errorf("%+v, %v", seen, ok)
	}
	if _, ok := s.observedRate(&runlive.Second{}); ok {
		t.Error("a second without a snapshot shows nothing")
	}
	s.joining = true
	if _, ok := s.observedRate(second); ok {
		t.Error("run workers are on their way")
	}
}

// namedLedger knows nodes by other names.
type namedLedger struct{}

func (namedLedger) Reserved(workerID, node string, connections int) engine.Reservation {
	return engine.Reservation{WorkerID: workerID, NodeID: "ledger:" + node, Connections: connections}
}

func TestScalerTellsTheLedgerOfWhatHasChanged(t *testing.T) {
	f := factsOf(inStages(4), 2, 2)
	s := newScaler(f)
	f.Workers[0].State.NodeID, f.Workers[1].State.NodeID = "a", "b"
	held := s.changedReservations(namedLedger{})
	if len(held) != 2 || held[0].NodeID != "ledger:a" || held[0].Connections != 2 {
		t.Errorf("it holds %+v", held)
	}
	if held := s.changedReservations(namedLedger{}); len(held) != 0 {
		t.Errorf("nothing has changed, but %+v", held)
	}
	f.Workers[0].Connections = 1
	f.Workers[1].State.Status = engine.WorkerCompleted
	held = s.changedReservations(namedLedger{})
	slices.SortFunc(held, func(a, b engine.Reservation) int { return strings.Compare(a.WorkerID, b.WorkerID) })
	if len(held) != 2 || held[0].Connections != 1 || held[1].Connections != 0 {
		t.Errorf("it holds %+v", held)
	}
	if fixed := newScaler(factsOf(overRate(engine.ScalingFixed, 0), 2)); fixed.changedReservations(namedLedger{}) != nil {
		t.Error("a run of a fixed size holds what it was let in with")
	}
}

func TestScalerChangesTheLoad(t *testing.T) {
	sc := elastic(engine.ScalingFixed, 0)
	sc.Workload.Stages, sc.Workload.WarmupSeconds, sc.Scaling.PerWorkerCapacity = nil, 0, 10
	sc.Workload.ConcurrentConnections = 4
	f := factsOf(sc, 2, 2)
	s, six := newScaler(f), 6
	c, workers, err := s.change(loadBegan.Add(10*time.Second), loadBegan, "ada", scaling.LoadRequest{Connections: &six})
	if err != nil || len(workers) != 2 || s.pool != 6 || !s.userChanged || f.sc.Workload.ConcurrentConnections != 6 {
		t.Fatalf("%v, %+v, %d connections", err, c, s.pool)
	}
	if !slices.Equal(parts(workers), []int{3, 3}) {
		t.Errorf("they have %v", parts(workers))
	}
	_, _, err = s.change(loadBegan, loadBegan, "ada", scaling.LoadRequest{Connections: &six})
	if err == nil || s.pool != 6 {
		t.Error("it has them already")
	}
}

// TestScalerFollowsARateThatRises, but not while somebody joins, who may take a minute.
func TestScalerFollowsARateThatRises(t *testing.T) {
	sc, low, high := overRate(engine.ScalingAuto, 0), 50.0, 80.0
	sc.Workload.WarmupSeconds, sc.Workload.TargetQPS = 0, &low
	sc.Workload.Stages = []engine.Stage{{DurationSeconds: 60, TargetQPS: &low, Ramp: engine.RampStep},
		{DurationSeconds: 60, TargetQPS: &high, Ramp: engine.RampStep}}
	f := factsOf(sc, 2)
	s := newScaler(f)
	own := func() float64 { return *f.Workers[0].Rate }
	s.followRate(loadBegan.Add(10 * time.Second))
	if own() != low {
		t.Fatalf("the first stage has %v/s", own())
	}
	s.joining = true
	changed, _ := s.followRate(loadBegan.Add(70 * time.Second))
	if len(changed) != 0 || own() != low || !s.increasesPending {
		t.Errorf("while somebody joins it has %v/s, owed more: %v", own(), s.increasesPending)
	}
	s.joining = false
	changed, _ = s.followRate(loadBegan.Add(71 * time.Second))
	if len(changed) != 1 || own() != high || s.increasesPending {
		t.Errorf("the second stage has %v/s, owed more: %v", own(), s.increasesPending)
	}
	f.life.Apply(loadBegan.Add(72*time.Second), lifecycle.StopRequested{Reason: engine.StopUserRequested})
	if changed, _ = s.followRate(loadBegan.Add(10 * time.Second)); changed != nil || s.canRaise() {
		t.Error("a run that ends follows nothing")
	}
}
