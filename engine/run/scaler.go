package run

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/placement"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// scaler decides which run workers join and leave while the run goes on, and shares its load between those that are
// there. It reads no clock and sends nothing: what it decides, the loop carries out.
type scaler struct {
	run *facts
	// growth decides whether run workers join a run over the rate.
	growth lifecycle.Growth
	// pool is how many connections all have together; joining says that some are under way.
	pool         int
	joining      bool
	lastScaleOut ScaleOut
	// userChanged says that a user has changed the load: its run workers are told their rates also where they are fixed.
	userChanged bool
	// increasesPending says that somebody is to have more, once others have less; boundsOnly, that run workers were told
	// the most alone since all were told what they have.
	increasesPending, boundsOnly bool
	// nextJoin is when the next run worker may join, after one that could not.
	nextJoin time.Time
	// pendingStarts are run workers that begin when the store knows them.
	pendingStarts PendingStarts
	// reservedNodes are the nodes that the first run workers have room on, account what the ledger has.
	reservedNodes map[string]string
	account       placement.WrittenReservations
	// reservations are answers of the ledger.
	reservations chan reservation
}

func newScaler(run *facts) scaler {
	return scaler{run: run, reservations: make(chan reservation), pool: run.sc.Workload.ConcurrentConnections}
}

// carriesOn reports whether the load of the run has begun and goes on.
func (f *facts) carriesOn() bool { return f.life.Started() && !f.life.Stopping() }

// elastic reports whether run workers join and leave while the run goes on.
func (s *scaler) elastic() bool {
	if s.run.life.Search() != nil {
		return s.run.sc.Scaling.Elastic() && s.run.sc.FindMax.Unit != engine.FindMaxRate
	}
	return scaling.Staged(s.run.sc)
}

// hasRateTargets reports whether the run workers are told their rates as they are divided.
func (s *scaler) hasRateTargets() bool {
	return scaling.ScalesWithRate(s.run.sc) || s.userChanged && scaling.FirstRate(s.run.sc) != nil
}

// pauseJoins lets nobody join for a while: one could not.
func (s *scaler) pauseJoins(now time.Time) { s.nextJoin = now.Add(scaling.JoinRetryDelay) }

// hasSlots reports whether so many more run workers can have a slot each: one is never used again.
func (f *facts) hasSlots(more int) bool { return len(f.Workers)+more <= f.plan.Plan.KeySlots }

// retirement is run workers that are not needed any more, with the events that end them.
type retirement struct {
	workers []*Worker
	events  []engine.Event
}

// retire takes the run workers that the level does not need out of those that
// carry it: they stop, drain, flush and leave. It keeps them when their slots
// could run out, because a slot is never used again.
func (s *scaler) retire(now time.Time, workers []*Worker, level int) (stay []*Worker, left retirement) {
	need := s.run.sc.Scaling.Workers(level)
	most := s.run.sc.Scaling.Workers(s.run.sc.PeakConnections(s.run.plan.Server.MaxConnections))
	if !s.elastic() || need >= len(workers) || !s.run.hasSlots(most-need) {
		return workers, retirement{}
	}
	left.workers = workers[need:]
	for _, w := range left.workers {
		w.Retiring, w.Connections = true, 0
		if w.Rate != nil {
			w.Rate = new(float64)
		}
		left.events = append(left.events, scaling.TargetChange{Reason: engine.TargetRetire, At: now}.Events(
			[]scaling.Target{{WorkerID: w.ID, Group: w.Group, WorkerTarget: w.Target()}})...)
		left.events = append(left.events, engine.Event{Type: engine.EventStop,
			Data: engine.EventData{Scope: engine.ScopeWorker, WorkerID: w.ID,
				Reason: string(engine.StopDurationElapsed), Detail: "retired",
				DrainTimeoutSeconds: s.run.life.Drain(engine.StopDurationElapsed).Seconds()}})
	}
	return workers[:need], left
}

// sharedLoad is what the run workers of a run without stages of connections share now.
func (s *scaler) sharedLoad(now time.Time) SharedLoad {
	load := SharedLoad{Connections: s.pool, MaxPerWorker: max(s.run.sc.Scaling.PerWorkerCapacity, 1)}
	if s.hasRateTargets() {
		rate := s.run.sc.Workload.RateAt(s.run.life.MeasuredFor(now))
		load.Rate = &rate
	}
	return load
}

// distribute shares a load, and remembers whether somebody is to have more when others have less. It returns
// those whose part has changed.
func (s *scaler) distribute(now time.Time, workers []*Worker, load SharedLoad) (changed []*Worker) {
	changed, s.increasesPending = s.run.Distribute(now, workers, load)
	if s.run.HasUnknownLoad() {
		s.increasesPending, s.boundsOnly = true, true
	} else if s.boundsOnly {
		changed, s.boundsOnly = workers, false // they may have less than they were told
	}
	return changed
}

// redistribute shares the connections of a run, and its rate if it has one, between the run workers that it has, which
// it returns.
func (s *scaler) redistribute(now time.Time) []*Worker {
	workers := s.run.ActiveWorkers()
	if len(workers) > 0 {
		s.distribute(now, workers, s.sharedLoad(now))
	}
	return workers
}

// canRaise reports whether somebody may be owed more than it has by now.
func (s *scaler) canRaise() bool { return s.increasesPending && s.run.carriesOn() && !s.joining }

// rebalanceWhenReady takes that everybody who joins is ready, or has failed to be, and reports whether that was so and
// the load is to be shared anew. A run that does not grow any more says why.
func (s *scaler) rebalanceWhenReady(now time.Time) (settled bool, why string) {
	if !s.joining || !s.run.AllReady() || s.run.life.Stopping() {
		return false, ""
	}
	s.joining = false
	var refused bool
	s.pool, refused = s.lastScaleOut.Settle(s.pool)
	return true, s.growth.RecordJoin(now, refused)
}

// missingWorkers is how many run workers are to join the have that bear the load of stages of connections, for what
// these ask for soon.
func (s *scaler) missingWorkers(now time.Time, have int) int {
	w, at := s.run.sc.Workload, s.run.life.MeasuredFor(now)
	missing := s.run.sc.Scaling.Workers(w.MaxConnectionsBetween(at, at+scaling.JoinLead)) - have
	if missing <= 0 || !s.run.hasSlots(missing) || !now.After(s.nextJoin) {
		return 0
	}
	return missing
}

// distributeStage brings those who have borne the load of stages of connections to its level. It returns those whose
// part has changed, and those that leave.
func (s *scaler) distributeStage(now time.Time, have []*Worker) (changed []*Worker, left retirement) {
	w, at := s.run.sc.Workload, s.run.life.MeasuredFor(now)
	stay, left := s.retire(now, have, w.MaxConnectionsBetween(at, at+scaling.RetireAfter))
	var running []*Worker
	for _, x := range stay {
		if x.State.Status == engine.WorkerRunning {
			running = append(running, x)
		}
	}
	// Those that are not needed yet, or may be needed again, wait without connections.
	return s.distribute(now, running, SharedLoad{Connections: w.NextConnections(at, scaling.StageRamp),
		MaxPerWorker: s.run.sc.Scaling.PerWorkerCapacity, Sharers: s.run.sc.Scaling.Workers}), left
}

// shareStage shares what a stage asks for between run workers that follow the stages by themselves: what they are told
// is a record. ramp is 0 for one that begins with all of it.
func (s *scaler) shareStage(index int) (workers []*Worker, ramp time.Duration) {
	stage := s.run.sc.Workload.Stages[index]
	workers = s.run.ActiveWorkers()
	if stage.TargetQPS != nil {
		ShareEqually(workers, SharedLoad{Connections: s.pool, Rate: stage.TargetQPS})
	} else {
		ShareEqually(workers, SharedLoad{Connections: int(stage.Level())})
	}
	if stage.Ramp != engine.RampStep {
		ramp = stage.Duration()
	}
	return workers, ramp
}

// followRate brings the run workers to the rate of the stages, up to the next second or the next border: a ramp is made
// of such pieces, and a step is announced at its time. It returns those whose part has changed, and the ramp to it.
// While somebody joins the rate only falls: a joining one may take a minute.
func (s *scaler) followRate(now time.Time) (changed []*Worker, ramp time.Duration) {
	if !scaling.ScalesWithRate(s.run.sc) || !scaling.StagesDriven(s.run.sc) || !s.run.carriesOn() {
		return nil, 0
	}
	rate, ramp := s.run.sc.Workload.NextRate(s.run.life.MeasuredFor(now), scaling.StageRamp)
	workers := s.run.ActiveWorkers()
	if s.joining {
		workers = slices.DeleteFunc(workers, func(w *Worker) bool { return w.Rate == nil || *w.Rate == 0 })
	}
	load := s.sharedLoad(now)
	load.Rate, load.NoIncrease = &rate, s.joining // settle gives more
	return s.distribute(now, workers, load), ramp
}

// observedRate is what a second shows of the rate of a run, ok where run workers may join for it.
func (s *scaler) observedRate(second *runlive.Second) (seen lifecycle.RateSample, ok bool) {
	if !scaling.ScalesWithRate(s.run.sc) || s.run.life.Search() != nil || !s.run.carriesOn() ||
		s.joining || s.run.plan == nil || len(second.Snapshots) == 0 {
		return seen, false
	}
	p := &second.Payload
	seen = lifecycle.RateSample{Achieved: p.Ops.CurrentPerSec, Saturated: p.Waiting > 0 ||
		p.DroppedPerSec > 0, CPUPercent: second.Peak.CPUPercent}
	if p.TargetQPS != nil {
		seen.Target = *p.TargetQPS
	}
	return seen, true
}

// roomForRate is how many run workers may join the have there are, and how many
// connections all may hold together, where so much is free on the nodes.
func (s *scaler) roomForRate(now time.Time, have int, free placement.FreeCapacity) (lifecycle.Headroom, int) {
	return lifecycle.HeadroomForRate(s.run.sc, lifecycle.ScaleLimits{Workers: have, Pool: s.pool,
		Allowed: s.run.plan.Server.MaxConnections, Spare: scaling.SpareSessions,
		Unlimited: free.Unbounded, Nodes: free.Connections,
		Slots: s.run.plan.Plan.KeySlots, SlotsUsed: len(s.run.Workers), Paused: now.Before(s.nextJoin)})
}

// scaleOut makes room in the pool for so many run workers that join, of connections at most, and returns how many each
// of them would have in it, and how many all had before.
func (s *scaler) scaleOut(have, add, connections int) (shares []int, before int) {
	before = s.pool
	s.pool = min(s.pool+add*s.run.sc.Scaling.PerWorkerCapacity, connections)
	s.joining = true
	return engine.Spread(s.pool, have+add)[have:], before
}

// canReplaceLost reports whether the load of lost run workers is to be given to others. Stages of connections and steps
// of a search place whom they need by themselves.
func (s *scaler) canReplaceLost() bool {
	return !s.run.life.Stopping() && !scaling.Staged(s.run.sc) && s.run.life.Search() == nil
}

// replacements is how many run workers join in the place of so many lost ones, and why not all are replaced.
func (s *scaler) replacements(lost int) (n int, why string) {
	slots := s.run.plan.Plan.KeySlots - len(s.run.Workers)
	return lifecycle.ReplacementLimitsOf(s.run.sc, len(s.run.ActiveWorkers()), slots).Replacements(lost)
}

// ledger says what a run worker holds, as the ledger of the nodes has it.
type ledger interface {
	Reserved(workerID, node string, connections int) engine.Reservation
}

// changedReservations are what the run workers of an elastic run or a search hold now, those alone that hold another
// number than before: they come and go, and share connections anew. A lost one keeps its room as long as it may bear
// load.
func (s *scaler) changedReservations(in ledger) []engine.Reservation {
	moves := s.run.sc.Scaling.Elastic() || s.run.sc.Workload.IsSearch()
	if !moves || !s.run.life.Placed() || s.run.life.Status().Terminal() {
		return nil
	}
	var held []engine.Reservation
	for _, w := range s.run.Workers {
		if w.State.Status.Ended() && !s.run.LostWorkers.HoldsLoad(w.ID) {
			held = append(held, engine.Reservation{WorkerID: w.ID})
		} else if !w.State.Status.Ended() && w.Node != nil {
			held = append(held, in.Reserved(w.ID, w.State.NodeID, w.Connections))
		}
	}
	return s.account.Changed(held)
}

// change takes what a user wants of the load, begun is when the run did. It returns what follows from it and whom it
// is shared between, or why it cannot be.
func (s *scaler) change(now, begun time.Time, by string, to scaling.LoadRequest) (scaling.Change, []*Worker, error) {
	c, err := scaling.Decide(scaling.State{Scenario: s.run.sc, Started: s.run.life.Started(),
		Stopping: s.run.life.Stopping(), Joining: s.joining, Connections: s.pool, Workers: len(s.run.ActiveWorkers()),
		Elapsed: now.Sub(begun), MaxConnections: s.run.plan.MaxConnections()}, to, by)
	if err != nil {
		return c, nil, err
	}
	s.run.sc.Workload, s.pool, s.userChanged = c.Workload, c.Connections, true
	c.Event = scaling.WithEventID(c.Event)
	workers := s.run.ActiveWorkers()
	s.distribute(now, workers, s.sharedLoad(now))
	return c, workers, nil
}
