package simtest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	resultsexecutions "github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/run"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/storage/results"
)

// without is what a simulation leaves out, to see that it is missed.
type without string

const (
	withoutNothing       without = ""
	withoutFencing       without = "fencing"
	withoutDeadline      without = "deadline"
	withoutDeduplication without = "deduplication"
	withoutStop          without = "stop"       // nodes never hear that a run is to end
	withoutCounting      without = "counting"   // a snapshot counts as often as it comes
	withoutKeys          without = "keys"       // the store does not know an event again
	withoutDurability    without = "durability" // a part counts as stored before it is
	withoutTargets       without = "targets"    // nodes never hear of another rate
	withoutRooms         without = "rooms"      // nodes hold more than they can
	withoutAnswers       without = "answers"    // what is wanted of a run is never answered
	withoutHearing       without = "hearing"    // nodes say that they follow what they have not heard of
	withoutRows          without = "rows"       // the row of a run worker is not stored when it says so
	withoutSteps         without = "steps"      // nodes never hear of the load of a step
	withoutClocks        without = "clocks"     // clocks are never compared
	withoutBounds        without = "bounds"     // what is the most of a new owner is taken for what it wants
	withoutLease         without = "lease"      // own nodes go on for a server whose lease has expired
	withoutLosses        without = "losses"     // who goes on with a run does not know whom another has given up
	withoutHeirs         without = "heirs"      // who goes on with a run does not begin its rules
	withoutLapse         without = "lapse"      // all leases of an owner are renewed, whoever carries them
)

// mostVirtual is how long everything that was accepted may take to end once faults are healed: the
// longest wait of the product is that for operations in flight, twice.
const mostVirtual = 15 * time.Minute

// simulation is one world with its servers and nodes.
type simulation struct {
	t       testing.TB
	w       *world
	seed    uint64
	without without
	dir     string
	store   *fake.Store
	results *results.Results
	model   *model
	nodes   []*node
	servers []*server
	lives   []*process
	runs    map[string]engine.Scenario
	// each is how many operations of a run a connection holds in a second, none is any number; knee from how many
	// connections, or operations a second, on they take longer.
	each map[string]float64
	knee map[string]int
	// ownCapacity is what own nodes hold, 0 where servers have none; ownDisks are the disks of owners.
	ownCapacity int
	ownDisks    map[string]string
	// clocks are those of the machines of servers, by owner.
	clocks map[string]*machineClock
	// marked counts records that are marked, searched answers of searches.
	marked, searched int
	// ruling are goroutines of rules on nodes, rulesSeen counts what became of rules, healed is when nothing failed any
	// more.
	ruling    atomic.Int64
	rulesSeen map[engine.RuleStatus]int
	healed    time.Time
	// written: a run was written to since over looked, which found all of them over or not.
	written, allOver bool
	ending           bool
	// asked counts the goroutines of asks, which end with asking.
	asked  atomic.Int64
	asking context.Context //nolint:containedctx // of the whole world
	enough context.CancelFunc

	// calm: nothing fails any more.
	calm atomic.Bool
	// abrupt: a server ends once it has told of new shares; see shares.
	abrupt    bool
	storeAway bool
	storeSlow time.Duration
	// diskSlow is what writing a part into the results takes at most.
	diskSlow atomic.Int64
	// ambiguous: one call in so many is committed and its answer lost; lateCommits: or is committed when its answer
	// is lost already. locked is what waits for such a one, by run.
	ambiguous, lateCommits int
	locked                 map[string][]func()
	// wrote is what was written since that was looked at last; admissions counts how often room was given.
	wrote      []string
	wroteLast  time.Time
	admissions int
}

// server is one life of a server.
type server struct {
	sim    *simulation
	name   string
	owner  string
	svc    *run.Service
	wires  []*wire
	dead   atomic.Bool
	opened chan struct{}
	closed chan struct{}
	// recorded is what run workers in its process record.
	recorded *resultsexecutions.Fanout
	// own is the node in its process, nil where there is none; both go by the clock of their machine.
	own   *node
	clock *machineClock
	// paused: it reaches nothing since stoodStill; resumed is what it hears afterwards, and wentOn is when that was.
	paused             bool
	resumed            []func()
	stoodStill, wentOn time.Time
}

// simulate lives one seed, and returns what was broken, with the trace.
func simulate(t *testing.T, seed uint64, missing without) (wrong []string, trace []byte) {
	t.Helper()
	dir, err := os.MkdirTemp(scratch(), "simulation")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, dir, seed, missing)
		s.live()
		wrong, trace = s.w.verdict(), s.w.trace.Bytes()
	})
	return wrong, trace
}

// newSimulation is a world in which nothing has happened yet.
func newSimulation(t *testing.T, dir string, seed uint64, missing without) *simulation {
	t.Helper()
	s := &simulation{t: t, w: newWorld(seed), seed: seed, without: missing, dir: dir, store: fake.New(),
		runs: map[string]engine.Scenario{}, ambiguous: 100, lateCommits: 100, locked: map[string][]func(){},
		ownDisks: map[string]string{}, clocks: map[string]*machineClock{}, each: map[string]float64{},
		knee: map[string]int{}, rulesSeen: map[engine.RuleStatus]int{}}
	s.model = &model{sim: s, ticks: map[string]map[int64]int64{}, stops: map[string]time.Time{},
		heard: map[string][]*engine.WorkerSnapshot{}, bore: map[string][]borne{}, lines: map[string]line{},
		rules: map[string][]engine.RuleState{}, fires: map[string]uint32{}, reached: map[string]time.Time{}}
	var err error
	if s.results, err = results.Open(filepath.Join(dir, "results")); err != nil {
		t.Fatal(err)
	}
	return s
}

// scratch is a folder in memory where there is one: what is made durable is not what is tested here.
func scratch() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// live is the whole life of a world.
func (s *simulation) live() {
	narrow := s.w.oneIn(2) // runs wait for each other
	for i := range 1 + s.w.chance.IntN(3) {
		n := &node{w: s.w, sim: s, name: fmt.Sprintf("n%d", i), disk: filepath.Join(s.dir, fmt.Sprintf("n%d-0", i)),
			capacity: 1000, clock: newClock(s)}
		if narrow {
			n.capacity = 6 + s.w.chance.IntN(6)
		}
		s.nodes = append(s.nodes, n)
		if i > 0 && s.w.oneIn(6) {
			s.w.after(s.w.between(0, time.Minute), n.revive) // it joins while runs go on
			continue
		}
		n.start()
	}
	if s.w.oneIn(3) || s.succeeded() {
		if s.ownCapacity = 1000; narrow {
			s.ownCapacity = 6 + s.w.chance.IntN(6)
		}
	}
	s.boot("a")
	s.w.run(time.Minute, func() bool { return s.servers[0].isOpen() })
	runs := 1 + s.w.chance.IntN(2)
	if narrow {
		runs = 2 + s.w.chance.IntN(3)
	}
	for i := range runs {
		s.begin(fmt.Sprintf("run-%d", i))
	}
	s.plan()
	while := s.w.between(30*time.Second, 4*time.Minute)
	if s.succeeded() || s.without == withoutBounds {
		while = 4 * time.Minute
	}
	s.w.run(while, s.over)
	s.heal()
	if !s.w.run(mostVirtual, s.settled) {
		s.unsettled()
	}
	if s.settled() {
		s.converges()
	}
	s.check()
	s.end()
}

// begin makes a run and asks a server to start it. Some runs are stopped by a user.
func (s *simulation) begin(id string) {
	rate := float64(4 + s.w.chance.IntN(20))
	workers := 1 + s.w.chance.IntN(3)
	sc := engine.Scenario{Name: id, Workload: engine.Workload{Plugin: "mix", LoadMode: engine.LoadQPS,
		Arrival: engine.ArrivalConstant, TargetQPS: &rate, MaxInFlight: 1000, ConcurrentConnections: workers * 2,
		WarmupSeconds: float64(s.w.chance.IntN(6)), DurationSeconds: float64(5 + s.w.chance.IntN(120)), Repeat: 1},
		Scaling: engine.Scaling{Mode: engine.ScalingFixed, WorkerCount: workers, PerWorkerCapacity: 2, MinWorkers: workers}}
	switch s.w.chance.IntN(6) {
	case 0, 1:
		sc.Scaling.Mode, sc.Scaling.MaxWorkers = engine.ScalingBounded, workers+1+s.w.chance.IntN(2)
	case 2:
		sc.Scaling.Mode = engine.ScalingAuto
	}
	if s.w.oneIn(4) || s.without == withoutAnswers {
		s.w.after(s.w.between(2*time.Second, 2*time.Minute), func() { s.stopRun(id) })
	}
	s.vary(id, &sc)
	s.ruled(id, &sc)
	shares, err := scaling.Shares(sc)
	if err != nil {
		s.t.Fatal(err)
	}
	s.runs[id] = sc
	if err := s.store.CreateRun(context.Background(), engine.Run{RunID: id, ResultID: id, RunName: id, Scenario: sc,
		Status: engine.StatusPrepared, Phase: engine.PhasePreparing, WorkersExpected: len(shares),
		WorkerTargets: scaling.FirstTargets(sc, shares)}); err != nil {
		s.t.Fatal(err)
	}
	s.written = true
	s.w.after(s.w.between(0, 3*time.Second), func() { s.start(id) })
}

// start asks a server that is there to start a run, until one has.
func (s *simulation) start(id string) {
	srv := s.servers[len(s.servers)-1]
	if !srv.isOpen() || srv.dead.Load() {
		s.w.after(time.Second+s.w.between(0, time.Second), func() { s.start(id) })
		return
	}
	s.asks(func(ctx context.Context) {
		run, err := srv.svc.Start(ctx, id, "tester")
		s.w.hand("start "+id, func() {
			s.w.note("start %s: %s %s", id, run.Status, short(err))
			if err == nil && run.Waiting != nil {
				return // it is started when there is room
			}
			if now, readErr := s.store.Run(context.Background(), id); readErr == nil && now.Status == engine.StatusPrepared {
				s.w.after(time.Second+s.w.between(0, time.Second), func() { s.start(id) })
			}
		})
	})
}

// stopRun asks the server that came last to stop a run, as a user does, once more if it could not.
func (s *simulation) stopRun(id string) {
	srv := s.servers[len(s.servers)-1]
	again := func() {
		if now, err := s.store.Run(context.Background(), id); err == nil && !now.Status.Terminal() && !s.calm.Load() {
			s.w.after(s.w.between(time.Second, 20*time.Second), func() { s.stopRun(id) })
		}
	}
	if s.ending {
		return
	}
	if !srv.isOpen() || srv.dead.Load() {
		again()
		return
	}
	s.asks(func(ctx context.Context) {
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		run, err := srv.svc.Stop(limited, id, "tester")
		s.w.hand("stop "+id, func() {
			s.w.note("stop %s by %s: %s %s", id, srv.name, run.Status, short(err))
			if err != nil {
				again()
			}
		})
	})
}

// asks has a goroutine ask something of a process, until the end of the world.
func (s *simulation) asks(do func(ctx context.Context)) {
	if s.asking == nil {
		s.asking, s.enough = context.WithCancel(context.Background())
	}
	s.asked.Add(1)
	go func() {
		defer s.asked.Add(-1)
		do(s.asking)
	}()
}

// stages has a rate change a few times, up to the highest.
func (s *simulation) stages(w *engine.Workload, highest float64) {
	w.TargetQPS, w.DurationSeconds = nil, 0
	for range 2 + s.w.chance.IntN(3) {
		level := 1 + float64(s.w.chance.IntN(int(highest)))
		st := engine.Stage{DurationSeconds: float64(5 + s.w.chance.IntN(40)), TargetQPS: &level, Ramp: engine.RampStep}
		if s.w.oneIn(2) {
			st.Ramp = engine.RampLinear
		}
		w.Stages = append(w.Stages, st)
		w.DurationSeconds += st.DurationSeconds
	}
}

// boot starts a server of an owner.
func (s *simulation) boot(owner string) {
	if s.ending {
		return
	}
	srv := &server{sim: s, name: fmt.Sprintf("%s%d", owner, len(s.servers)), owner: owner, opened: make(chan struct{}),
		closed: make(chan struct{}), clock: s.clockOf(owner), recorded: &resultsexecutions.Fanout{}}
	var dialers []protocol.Dialer
	for _, n := range s.nodes {
		l := &wire{w: s.w, srv: srv, node: n}
		if s.without == withoutHearing {
			l.slow = 2 * time.Second
		}
		srv.wires = append(srv.wires, l)
		dialers = append(dialers, l)
	}
	if s.ownCapacity > 0 {
		s.boots(srv)
		dialers = append(dialers, srv.wires[len(srv.wires)-1])
	}
	srv.svc = run.New(run.Options{Store: controlStore{s.store, srv},
		Results: keptResults{s.results, srv},
		Plugins: plugin.Host(host{}), Drivers: map[string]target.Driver{"postgres": driver{}}, Nodes: dialers,
		Log: zerolog.Nop(), Version: "test", Owner: owner, TempDir: s.dir, Plan: planned, Rules: srv.rules(),
		Shared: s.without != withoutLease, Clock: srv.clock.read,
		// The keepers of several wires ask at one moment, in any order.
		Rand: func(d time.Duration) time.Duration {
			return time.Duration(s.chanceOf(fmt.Sprint(srv.name, time.Now().UnixNano())).Int64N(int64(d)))
		}})
	s.servers = append(s.servers, srv)
	s.w.note("the server %s begins", srv.name)
	go func() {
		err := srv.svc.Open(context.Background())
		close(srv.opened)
		s.w.hand("open "+srv.name, func() { s.opened(srv, err) })
	}()
}

// opened has somebody start a server again that could not begin, as those do who run servers.
func (s *simulation) opened(srv *server, err error) {
	s.w.note("the server %s is open: %s", srv.name, short(err))
	if err == nil || srv.dead.Load() {
		return
	}
	srv.kill()
	s.w.after(s.w.between(time.Second, 5*time.Second), func() {
		if s.servers[len(s.servers)-1] == srv && !s.ending {
			s.boot(srv.owner)
		}
	})
}

func (srv *server) isOpen() bool {
	select {
	case <-srv.opened:
		return true
	default:
		return false
	}
}

// kill ends a server as SIGKILL does.
func (srv *server) kill() {
	if srv.dead.Swap(true) {
		return
	}
	w := srv.sim.w
	w.note("the server %s is killed", srv.name)
	if srv.own != nil {
		srv.own.kill()
	}
	for _, l := range srv.wires {
		if l.stream != nil {
			l.stream.server.close()
			l.stream.up.held, l.stream.down.held = nil, nil
			s := l.stream
			w.after(w.between(100*time.Microsecond, 20*time.Millisecond), func() { s.down.travel(s.node.close) })
			w.after(srv.sim.silent(), s.node.close)
		}
	}
	go func() {
		defer close(srv.closed)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		<-srv.opened
		_ = srv.svc.Close(ctx)
	}()
}

func planned(context.Context, prepare.Deps, engine.Scenario, func(engine.PrepareProgress)) (*prepare.Prepared, error) {
	return &prepare.Prepared{Plan: &engine.Plan{Driver: "postgres", KeySlots: 64,
		Statements: []engine.Statement{{ID: "point_lookup", Kind: engine.KindPointLookup}}},
		Server: target.ServerInfo{MaxConnections: 1000}}, nil
}

// over reports whether all runs are.
func (s *simulation) over() bool {
	if s.written {
		s.written, s.allOver = false, s.look()
	}
	return s.allOver
}

// look reads all runs.
func (s *simulation) look() bool {
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		run, err := s.store.Run(context.Background(), id)
		if err != nil || !run.Status.Terminal() || run.Phase != engine.PhaseNone {
			return false
		}
	}
	return true
}

// settled reports whether all runs are over and no load is left.
func (s *simulation) settled() bool {
	if !s.over() {
		return false
	}
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		for _, l := range s.model.of(id) {
			l.mu.Lock()
			left := !l.gone && !l.p.dead.Load()
			l.mu.Unlock()
			if left {
				return false
			}
		}
	}
	return true
}

// unsettled says what has not ended (invariant 2).
func (s *simulation) unsettled() {
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		run, _ := s.store.Run(context.Background(), id)
		text := fmt.Sprintf("%s is %s, %s", id, run.Status, run.Phase)
		for _, l := range s.model.of(id) {
			l.mu.Lock()
			text += fmt.Sprintf("; %s on %s: begun %t, stopped %t, closed %t", l.worker, l.p.node.name, l.begun, l.stopped,
				l.gone || l.p.dead.Load())
			l.mu.Unlock()
		}
		s.w.violated(2, "%v after everything is healed: %s", mostVirtual, text)
	}
}

// check holds everything against the invariants that can be seen in the end.
func (s *simulation) check() {
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		run, err := s.store.Run(context.Background(), id)
		if err != nil {
			s.w.violated(2, "%s cannot be read: %v", id, err)
			continue
		}
		s.w.note("%s ended %s %s epoch %d", id, run.Status, run.StopReason, run.OwnerEpoch)
		s.model.events(id)
		s.model.stored(id)
		s.model.aggregated(id)
		s.model.searched(id)
		if run.Status.Terminal() && run.Phase == engine.PhaseNone {
			s.model.account(run)
			s.model.fired(run)
		}
	}
	for _, n := range s.nodes {
		if n.process != nil {
			n.process.keeps()
		}
	}
}

// end ends all processes.
func (s *simulation) end() {
	s.ending = true
	for _, srv := range s.servers {
		srv.kill()
	}
	for _, n := range s.nodes {
		n.kill()
	}
	for _, srv := range s.servers {
		s.w.run(time.Hour, func() bool { return isClosed(srv.closed) })
	}
	for _, p := range s.lives {
		s.w.run(time.Hour, func() bool { return isClosed(p.ended) })
	}
	if s.enough != nil {
		s.enough()
	}
	s.w.run(time.Hour, func() bool { return s.asked.Load()+s.ruling.Load() == 0 })
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
