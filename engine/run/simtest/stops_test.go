package simtest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// promise is within what any server has stopped the load of a run whose owner is dead: the two seconds.
const promise = 2 * time.Second

// TestAnyServerStopsTheRunOfADeadOne: the owner of a run is killed, or reaches nothing any more, and a user stops the
// run at another server long before its lease has expired. The answer says within two seconds that it is being
// cancelled, and by then its run workers on nodes begin no operation.
func TestAnyServerStopsTheRunOfADeadOne(t *testing.T) {
	t.Parallel()
	modes := []engine.ScalingMode{engine.ScalingFixed, engine.ScalingBounded, engine.ScalingAuto}
	for seed := uint64(1); seed <= 24; seed++ {
		st := stopStory{seed: seed, mode: modes[seed%3], own: seed%4 == 0, paused: seed%2 == 0, twice: seed%5 == 0}
		t.Run(fmt.Sprintf("%+v", st), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { st.live(t, newSimulation(t, dir, seed, withoutNothing)) })
		})
	}
}

// stopStory is the end of an owner, and a STOP.
type stopStory struct {
	seed uint64
	mode engine.ScalingMode
	// own: servers have nodes of their own, which bear a part; paused: the owner stands still instead of being killed;
	// twice: two users stop the run.
	own, paused, twice bool
}

func (st stopStory) live(t *testing.T, s *simulation) {
	t.Helper()
	if st.own {
		s.ownCapacity = 4
	}
	s.calmWorld(2, "a", "b")
	owner, other := s.servers[0], s.servers[1]
	s.measures(st.mode)
	s.w.run(s.w.between(0, 10*time.Second), func() bool { return false })
	if st.paused {
		owner.pause(5 * time.Minute)
	} else {
		owner.kill()
	}
	s.w.run(s.w.between(0, 4*time.Second), func() bool { return false })

	begun, before := time.Now(), len(s.model.of("run"))
	answers := 1
	if st.twice {
		answers = 2
	}
	answered := make(chan error, answers)
	for range answers {
		s.asks(func(ctx context.Context) {
			run, err := other.svc.Stop(ctx, "run", "tester")
			if took := time.Since(begun); err == nil && (took > promise || run.StopReason != engine.StopUserRequested) {
				err = fmt.Errorf("%s after %v", run.Status, took)
			}
			answered <- err
		})
	}
	s.w.run(promise, func() bool { return len(answered) == answers })
	for range answers {
		select {
		case err := <-answered:
			if err != nil {
				t.Errorf("the answer to STOP: %v\n%s", err, s.w.trace.String())
			}
		default:
			t.Errorf("there is no answer to STOP within %v", promise)
		}
	}
	s.w.run(time.Until(begun.Add(promise)), func() bool { return false })
	loads := s.model.of("run")
	if len(loads) != before {
		t.Errorf("%d run workers began after the STOP", len(loads)-before)
	}
	for _, l := range loads {
		l.mu.Lock()
		if !l.stopped && !l.p.dead.Load() && l.p.node.own != owner {
			t.Errorf("%s on %s has load %v after STOP", l.worker, l.p.node.name, promise)
		}
		l.mu.Unlock()
	}
	if !s.w.run(mostVirtual, s.settled) {
		s.unsettled()
	}
	s.heal()
	if !s.w.run(mostVirtual, s.settled) {
		s.unsettled()
	}
	run, err := s.store.Run(context.Background(), "run")
	if err != nil || run.Status != engine.StatusCancelled || run.StopReason != engine.StopUserRequested ||
		run.Owner != "b" {
		t.Errorf("the run is %s of %s, %s: %v", run.Status, run.Owner, run.StopReason, err)
	}
	s.converges()
	s.check()
	s.end()
	for _, wrong := range s.w.verdict() {
		t.Error(wrong)
	}
}

// calmWorld is a world with so many nodes, and servers of these owners, in which nothing fails but what a test says.
func (s *simulation) calmWorld(nodes int, owners ...string) {
	s.calm.Store(true)
	for i := range nodes {
		n := &node{w: s.w, sim: s, name: fmt.Sprintf("n%d", i), disk: fmt.Sprintf("%s/n%d", s.dir, i), capacity: 4,
			clock: newClock(s)}
		s.nodes = append(s.nodes, n)
		n.start()
	}
	for _, owner := range owners {
		s.boot(owner)
	}
	s.w.run(time.Minute, func() bool {
		for _, srv := range s.servers {
			if !srv.isOpen() {
				return false
			}
		}
		return true
	})
}

// creates makes a run that would go on for long, and start asks the first server to start it.
func (s *simulation) creates(mode engine.ScalingMode) (start func()) {
	s.t.Helper()
	rate := 20.0
	sc := engine.Scenario{Name: "run", Workload: engine.Workload{Plugin: "mix", LoadMode: engine.LoadQPS,
		Arrival: engine.ArrivalConstant, TargetQPS: &rate, MaxInFlight: 1000, ConcurrentConnections: 6, WarmupSeconds: 1,
		DurationSeconds: 600, Repeat: 1},
		Scaling: engine.Scaling{Mode: mode, WorkerCount: 3, PerWorkerCapacity: 2, MinWorkers: 3}}
	if mode == engine.ScalingBounded {
		sc.Scaling.MaxWorkers = 4
	}
	shares, err := scaling.Shares(sc)
	if err != nil {
		s.t.Fatal(err)
	}
	s.runs["run"] = sc
	if err := s.store.CreateRun(context.Background(), engine.Run{RunID: "run", ResultID: "run", RunName: "run",
		Scenario: sc, Status: engine.StatusPrepared, Phase: engine.PhasePreparing, WorkersExpected: len(shares),
		WorkerTargets: scaling.FirstTargets(sc, shares)}); err != nil {
		s.t.Fatal(err)
	}
	s.written = true
	return func() {
		s.asks(func(ctx context.Context) {
			if _, err := s.servers[0].svc.Start(ctx, "run", "tester"); err != nil {
				s.w.hand("start", func() { s.w.note("starting: %v", err) })
			}
		})
	}
}

// measures begins such a run, and waits until it is measured.
func (s *simulation) measures(mode engine.ScalingMode) {
	s.t.Helper()
	s.creates(mode)()
	if !s.w.run(time.Minute, func() bool {
		run, err := s.store.Run(context.Background(), "run")
		return err == nil && run.Phase == engine.PhaseMeasurement
	}) {
		s.t.Fatalf("the run is not measured:\n%s", s.w.trace.String())
	}
}

// TestTheReasonNamesTheControlStore: a run that ends because the control store was away says so, with since when and for
// how long: its run workers lose contact when the lease of the run cannot be renewed, or cannot begin before they are
// stored, or nobody owns it after its start.
func TestTheReasonNamesTheControlStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode engine.ScalingMode
		// away has the store go away at a moment of the run's life.
		away   func(s *simulation)
		reason string
	}{
		"in the measurement, to run workers that must stop": {engine.ScalingFixed, func(s *simulation) {
			s.measures(engine.ScalingFixed)
			s.w.run(5*time.Second, func() bool { return false })
			s.storeAway = true
			s.w.run(100*time.Second, func() bool { return false })
		}, `^Worker failure: worker-\d stopped by itself: the control store (has been|was) away .*20\d\d-.*Z`},
		"of all run workers of an elastic run": {engine.ScalingBounded, func(s *simulation) {
			s.measures(engine.ScalingBounded)
			s.storeAway = true
			s.w.run(100*time.Second, func() bool { return false })
		}, `the control store (has been|was) away .*20\d\d-.*Z`},
		"while run workers are placed": {engine.ScalingFixed, func(s *simulation) {
			s.creates(engine.ScalingFixed)()
			s.w.run(time.Minute, func() bool {
				run, _ := s.store.Run(context.Background(), "run")
				return run.Status == engine.StatusRunning && s.servers[0].svc.LiveState("run") != nil
			})
			s.storeAway = true
			s.w.run(3*time.Minute, func() bool { return false })
		}, `^Set-up failed: the control store has been away since 20\d\d-.*Z \(for 1\d\d s\)`},
		"between its start and its owner": {engine.ScalingFixed, func(s *simulation) {
			s.creates(engine.ScalingFixed)()
			s.w.run(time.Minute, func() bool {
				run, _ := s.store.Run(context.Background(), "run")
				return run.Status == engine.StatusRunning
			})
			s.storeAway = true
			s.w.run(40*time.Second, func() bool { return false })
		}, `^The control store went away at 20\d\d-.*Z for [34]\d s while the run was RUNNING`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, dir, 7, withoutNothing)
				s.calmWorld(2, "a")
				c.away(s)
				s.heal()
				if !s.w.run(mostVirtual, s.settled) {
					s.unsettled()
				}
				run, err := s.store.Run(context.Background(), "run")
				if err != nil || run.Status != engine.StatusFailed || run.CancellationReason == nil {
					t.Fatalf("the run is %s: %v\n%s", run.Status, err, s.w.trace.String())
				}
				t.Log(*run.CancellationReason)
				if !regexp.MustCompile(c.reason).MatchString(*run.CancellationReason) ||
					strings.Contains(*run.CancellationReason, "no owner of the run") {
					t.Errorf("the reason is %q", *run.CancellationReason)
				}
				s.check()
				s.end()
				for _, wrong := range s.w.verdict() {
					t.Error(wrong)
				}
			})
		})
	}
}
