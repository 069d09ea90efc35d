package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	baseclock "github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/params"
	"github.com/loadstone-db/loadstone/engine/target"
	loadarrival "github.com/loadstone-db/loadstone/engine/worker/load/arrival"
	"github.com/loadstone-db/loadstone/engine/worker/load/record"
)

// Config is what a group needs. The caller keeps ownership of Stream and
// Database, and closes them after Close.
type Config struct {
	Plan     *engine.Plan
	Workload engine.Workload
	// Share is the run worker's part of the rate and the stages, which are the
	// run's. The zero Share is all of it.
	Share    loadarrival.Share
	Stream   plugin.Stream
	Database target.Database
	Sink     record.Sink
	// Binds keeps parameters of executions that failed or were slow; nil keeps none.
	Binds *params.Sampler
	// Clock is the run's time line, which records are on; nil means one of the group's own.
	Clock *baseclock.Clock
	Log   zerolog.Logger

	// maxKeptBytes and maxBurst are the limits of the same name, less in tests.
	maxKeptBytes int64
	maxBurst     int
}

// Group drives the connections of one run worker. Its methods are safe for
// concurrent use.
type Group struct {
	cfg           Config
	clock         clock
	source        *Source
	pool          *record.Pool
	errors        *record.Dictionary
	thinkTimes    thinkTime
	retry         RetryPolicy
	failedInserts *FailedInserts
	kinds         []engine.Kind // of the frozen statements
	writes        []bool        // of the frozen statements, where the group reconnects
	io            ioEngine
	coll          *record.Collector
	// An open loop has both, a closed one neither.
	queue      *queue
	dispatcher *dispatcher
	ledger     *loadarrival.Ledger

	// ctx ends when operations in flight are given up.
	ctx     context.Context
	abandon context.CancelFunc
	// abandoned: an operation did not end although its connection was closed.
	abandoned atomic.Bool
	// dialing bounds how many connections are being opened at once.
	dialing chan struct{}

	begun        chan struct{}
	stopping     chan struct{}
	done         chan struct{}
	failed       chan error
	halted       atomic.Bool  // stopping is closed, or about to be
	measured     atomic.Int64 // what was due before is warm-up
	deadline     atomic.Int64 // nothing is issued from then on
	cut          atomic.Bool  // operations that fail from now on were cut off by us
	abandonedRun atomic.Bool  // stopped, and what has not begun is not wanted any more
	step         atomic.Uint32

	startOnce, stopOnce, doneOnce, failOnce sync.Once

	mu     sync.Mutex
	slots  []*slot // in the order of their ids
	nextID uint32
	target int
	open   int
	ended  bool // the stream has ended
	// connected is true once a connection has been open.
	connected bool
	// dispatching is true while arrivals may still come.
	dispatching bool
	past        engine.Totals
	// How the connections held, and why the last one was refused.
	reserved engine.ConnectionFigures
	refusal  string
	// The window of losses that is open, how many connections were open at its
	// beginning, and how many slots have lost theirs since.
	lossBegan        int64
	lossOpen, losses int
	// awaySince is since when a group that reconnects has had no answer on any connection, 0 while it has some.
	awaySince int64
	// sweeping: the idle connections are about to be looked at.
	sweeping atomic.Bool
	ramp     context.CancelFunc
	ramps    sync.WaitGroup
}

// So many connections are opened at once; by a group that reconnects more, since attempts may wait for a host that is
// gone.
const (
	maxDialing          = 16
	maxDialingReconnect = 64
)

func maxDials(w engine.Workload) int {
	if w.Reconnects() {
		return maxDialingReconnect
	}
	return maxDialing
}

// Open opens all connections, or none: on an error those that were open are
// closed again and the error is the target's, for the user. progress may be
// nil; it is called from several goroutines, one at a time.
func Open(ctx context.Context, cfg Config, connections int, progress func(open, want int)) (*Group, error) {
	if connections < 0 {
		return nil, engine.InvalidField("workload.concurrent_connections", "it is negative", "")
	}
	if cfg.Share == (loadarrival.Share{}) {
		cfg.Share.Of = 1
	}
	if !cfg.Share.Valid() {
		return nil, fmt.Errorf("opening a load group: share %d of %d", cfg.Share.Index, cfg.Share.Of)
	}
	g := &Group{
		cfg:           cfg,
		clock:         newClock(cfg.Clock),
		source:        NewSource(cfg.Stream, cfg.Plan.Workload, cmp.Or(cfg.maxKeptBytes, MaxKeptBytes), connections),
		pool:          record.NewPool(),
		errors:        record.NewDictionary(cfg.Plan.ErrorClasses),
		thinkTimes:    thinkTime{think: cfg.Workload.ThinkTime()},
		retry:         NewRetryPolicy(cfg.Workload.Retry),
		failedInserts: NewFailedInserts(cfg.Plan),
		kinds:         make([]engine.Kind, len(cfg.Plan.Statements)),
		dialing:       make(chan struct{}, maxDials(cfg.Workload)),
		begun:         make(chan struct{}),
		stopping:      make(chan struct{}),
		done:          make(chan struct{}),
		failed:        make(chan error, 1),
		target:        connections,
	}
	for i, s := range cfg.Plan.Statements {
		g.kinds[i] = s.Kind
		if g.reconnects() {
			g.writes = append(g.writes, s.Writes || s.Kind.Write())
		}
	}
	g.measured.Store(math.MaxInt64)
	g.deadline.Store(math.MaxInt64)
	if cfg.Workload.OpenLoop() {
		g.openLoop()
	}
	conns, err := g.openAll(ctx, connections, progress)
	if err != nil {
		return nil, err
	}
	opened := g.clock.now()
	g.ctx, g.abandon = context.WithCancel(context.Background())
	g.io = newIOEngine(g)
	for _, conn := range conns {
		s := g.newSlot()
		s.conn = conn
		g.slots = append(g.slots, s)
	}
	g.open, g.connected = len(conns), len(conns) > 0
	if g.queue == nil {
		stock := g.source.Stocker(g.stopping)
		g.ramps.Add(1)
		go func() {
			defer g.ramps.Done()
			stock()
		}()
	}
	for _, s := range g.currentSlots() {
		g.io.add(s) // none begins before Start
	}
	g.pool.Resize(g.io.recorders(connections))
	g.coll = record.NewCollector(record.Options{Pool: g.pool, Errors: g.errors, Sink: cfg.Sink, Recorders: g.recorders,
		Failed: g.fail, OpenLoop: g.queue != nil, Now: opened})
	return g, nil
}

func (g *Group) openAll(ctx context.Context, n int, progress func(open, want int)) ([]target.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		conns []target.Conn
		first error
		wg    sync.WaitGroup
	)
	for range n {
		select {
		case g.dialing <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-g.dialing }()
			conn, err := g.cfg.Database.Connect(ctx, g.cfg.Plan.Statements)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if first == nil {
					first = err
				}
				cancel()
				return
			}
			conns = append(conns, conn)
			if progress != nil {
				progress(len(conns), n)
			}
		})
	}
	wg.Wait()
	if first == nil && len(conns) < n {
		first = ctx.Err()
	}
	if first == nil {
		return conns, nil
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	if errors.Is(first, context.Canceled) || errors.Is(first, context.DeadlineExceeded) {
		var known *engine.Error
		if !errors.As(first, &known) {
			return nil, first
		}
	}
	return nil, g.targetError("Opening the connections failed", first)
}

// newSlot needs mu, or a group that nobody else knows yet.
func (g *Group) newSlot() *slot {
	s := &slot{id: g.nextID, batch: &OpBatch{}, retire: make(chan struct{}), handed: make(chan bool, 1)}
	s.books, s.res, s.own.rec.Pool = &s.own.counters, &s.own.res, g.pool
	g.nextID++
	return s
}

// Start begins to issue operations.
func (g *Group) Start(phase engine.Phase) {
	g.startOnce.Do(func() {
		// The schedule begins with the phase, not before it: what is due first belongs to it.
		now := g.clock.now()
		g.enter(phase, now)
		g.startDispatcher(now)
		if phase == engine.PhaseMeasurement {
			g.beginStages(now)
		}
		close(g.begun)
	})
}

// SetPhase enters a phase. WARMUP and MEASUREMENT reset the counters and
// distributions that Collect reports for the phase (Totals go on); operations
// that were due before MEASUREMENT keep Warmup = true. The workload's stages
// begin with MEASUREMENT; before it the load is level.
func (g *Group) SetPhase(p engine.Phase) {
	now := g.clock.now()
	g.enter(p, now)
	if p == engine.PhaseMeasurement {
		g.beginStages(now)
	}
}

func (g *Group) enter(p engine.Phase, now int64) {
	// The collector first: a record of the new phase must not meet figures of the old one.
	g.coll.Enter(p)
	switch p {
	case engine.PhaseWarmup:
		now = math.MaxInt64
	case engine.PhaseMeasurement:
	default:
		return
	}
	g.measured.Store(now)
	if g.ledger != nil {
		g.ledger.Enter(now)
	}
}

// SetStep names the step of a search: operations that begin from now on are recorded with it.
func (g *Group) SetStep(n uint16) { g.step.Store(uint32(n)) }

// Connections returns how many connections are open and how many are wanted.
func (g *Group) Connections() (open, target int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.target
}

// Collect fills the counters, distributions, connections and stall time of s.
// It covers completed operations. The tick_* fields cover the time since the
// last call, across a change of phase. After Drain it covers everything.
func (g *Group) Collect(s *engine.WorkerSnapshot) {
	g.coll.CatchUp()
	now := g.clock.now()
	warm := g.coll.Snapshot(s, now)
	if g.queue != nil {
		if rate, ok := g.dispatcher.rate(now); ok && !g.stopped() {
			s.TargetQPS = &rate
		}
		g.queue.countDropped(s, now, warm)
	}
	g.mu.Lock()
	s.ActiveConnections, s.TargetConnections = g.open, g.target
	s.Missing, s.Refusal = g.missing(now), g.refusal
	g.reserved.MaxMissing = max(g.reserved.MaxMissing, s.Missing)
	s.Connections = g.reserved
	g.mu.Unlock()
	s.StalledMs = engine.Milliseconds(g.pool.TakeStalled())
}

// CatchUp has the Sink given what was recorded before the call, and reports whether that was done soon.
func (g *Group) CatchUp() bool { return g.coll.CatchUp() }

// Totals returns the counts so far, of warm-up and measurement together. Once nothing
// is in flight, Scheduled = Started + Dropped and Started = Succeeded + Failed, and
// after Drain Recorded = Started; statements of transactions are in Statements alone.
//
// The two sides of an equation are counted in different places: Scheduled where the
// schedule makes an arrival (in a closed loop: where the workload's operation is
// taken for a connection), Started where an operation begins, Succeeded and Failed where it
// ends, Recorded behind the Sink.
func (g *Group) Totals() engine.Totals {
	g.mu.Lock()
	t := g.past
	t.Connections = g.reserved
	t.KeysReplaced = g.failedInserts.Count()
	for _, s := range g.slots {
		s.own.addTo(&t)
	}
	for _, b := range g.io.books() {
		b.addTo(&t)
	}
	g.mu.Unlock()
	if g.queue != nil {
		warm, measured := g.queue.drops()
		t.WarmupDropped, t.DroppedByReason = warm.Total(), warm.Plus(measured)
		t.Dropped = t.DroppedByReason.Total()
		t.Scheduled, t.WarmupScheduled = g.ledger.Scheduled(g.dispatcher.horizon(g.clock.now()))
	} else {
		t.WarmupScheduled = t.Warmup
	}
	t.Recorded, t.Statements = g.coll.Counted()
	return t
}

// Error returns an entry of the error dictionary.
func (g *Group) Error(id uint32) engine.ExecutionError { return g.errors.Get(id) }

// IOEngine names what drives the connections.
func (g *Group) IOEngine() string { return g.io.name() }

// IOReason says why it is that one: a clause, "" where that is not known.
func (g *Group) IOReason() string { return g.io.reason() }

// Failed delivers at most one error, a user-facing one: the plugin failed,
// every connection was lost at the same time, or the Sink failed. The group takes no new
// operation from then on; Drain and Close it as usual.
func (g *Group) Failed() <-chan error { return g.failed }

// Done is closed when no slot is left and none will come: after Stop, or when
// the workload's stream has ended and its last operation too.
func (g *Group) Done() <-chan struct{} { return g.done }

func (g *Group) fail(err error) {
	g.failOnce.Do(func() {
		var known *engine.Error
		if !errors.As(err, &known) {
			err = &engine.Error{Code: engine.CodeInternal, Cause: err,
				Message: "Recording the executions failed: " + err.Error() + ".",
				Hint:    "The run cannot go on when executions are not recorded."}
		}
		g.cfg.Log.Error().Err(err).Msg("load group failed")
		g.failed <- err
	})
	g.Stop()
	g.DropQueued()
}

// Stop takes no new operation; those in flight go on. Think time and pauses end at once.
// In an open loop what was due before is in flight too, whether a connection
// was free for it or not: leaving it out would hide the slowest operations.
func (g *Group) Stop() {
	g.stopOnce.Do(func() {
		if g.dispatcher != nil {
			g.dispatcher.stop()
		}
		g.halted.Store(true)
		close(g.stopping)
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.checkDone()
}

func (g *Group) stopped() bool {
	select {
	case <-g.stopping:
		return true
	default:
		return false
	}
}

// checkDone needs mu.
func (g *Group) checkDone() {
	if len(g.slots) == 0 && !g.dispatching && (g.ended || g.stopped()) {
		if g.queue != nil {
			g.queue.clear() // nobody is left to execute it
		}
		g.doneOnce.Do(func() { close(g.done) })
	}
}

func (g *Group) currentSlots() []*slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.slots)
}

// recorders are those that write now.
func (g *Group) recorders() []*record.Recorder {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*record.Recorder
	for _, b := range g.io.books() {
		all = append(all, &b.rec)
	}
	for _, s := range g.slots {
		all = append(all, &s.own.rec)
	}
	return all
}

// left is called by a slot's driver as its last act.
func (g *Group) left(s *slot) {
	g.source.GiveBack(s.batch)
	s.own.rec.Flush()
	had := s.connection() != nil
	s.drop()
	g.mu.Lock()
	defer g.mu.Unlock()
	if had {
		g.open--
	}
	s.own.addTo(&g.past)
	g.slots = slices.DeleteFunc(g.slots, func(x *slot) bool { return x == s })
	g.checkDone()
}

// streamEnded notes that no operation will come any more.
func (g *Group) streamEnded() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
}

// missingTimeout is how long a connection may take to be opened before it counts as missing.
const missingTimeout = time.Second

// missing counts the connections that are asked for and have not been open for a while. It needs mu.
func (g *Group) missing(now int64) (n int) {
	if g.stopped() || g.ended {
		return 0
	}
	for _, s := range g.slots {
		if since := s.without.Load(); since != 0 && now-since > int64(missingTimeout) && !s.retired {
			n++
		}
	}
	return n
}

func (g *Group) connectionOpened() {
	g.mu.Lock()
	g.open++
	g.reserved.Reopened++
	g.connected = true
	g.mu.Unlock()
}

// lossWindow is what "at the same time" means for lost connections: a server
// that goes down needs a moment to end all sessions, and one that comes up again
// at once may take the first back before it has ended the last.
const lossWindow = 500 * time.Millisecond

// connectionLost notes a broken connection. Losing all of them to the server
// at the same time is fatal unless the group reconnects: figures over a restart of the server cannot be
// defended. One that we gave up after a timeout was not lost to the server.
func (g *Group) connectionLost(s *slot) { g.lostOne(s, g.errors.Get(s.lastError)) }

func (g *Group) lostOne(s *slot, e engine.ExecutionError) {
	ours := e.Code == target.CodeTransactionState
	g.mu.Lock()
	all := false
	if e.Class != engine.ErrClassTimeout {
		all = g.countLoss(s) || g.open == 1
	}
	g.open--
	g.reserved.Lost++
	tooLong := g.away(g.open <= 0)
	g.mu.Unlock()
	if g.stopped() {
		return
	}
	g.sweepLater()
	g.cfg.Log.Warn().Str("error", e.Message).Msg("connection lost")
	switch {
	case all && ours:
		g.fail(&engine.Error{Code: engine.CodeTarget, Message: "Loadstone closed all connections: " + e.Message + ".",
			Hint: "Begin and end transactions by the workload's own means, and not in the text of a statement."})
	case g.reconnects():
		if tooLong {
			g.awayTooLong(e.Message, nil)
		}
	case all:
		g.lostAll("The target closed all connections", e.Message, nil)
	}
}

// idleLost notes that the server has closed a connection on which nothing was in
// flight. The next operation on it is going to meet that; where operations are rare, a
// restart of the server shows here and nowhere else.
func (g *Group) idleLost(s *slot, err error) {
	g.mu.Lock()
	all := g.countLoss(s)
	g.mu.Unlock()
	if all && !g.reconnects() && !g.stopped() {
		id, _ := g.errorID(err, false)
		g.lostAll("The target closed all connections", g.errors.Get(id).Message, nil)
	}
}

// countLoss reports whether all connections were lost at the same time. It needs mu.
func (g *Group) countLoss(s *slot) bool {
	now := g.clock.now()
	if g.lossBegan == 0 || now-g.lossBegan > int64(lossWindow) {
		g.lossBegan, g.lossOpen, g.losses = now, g.open, 0
	}
	if s.lostIn != g.lossBegan {
		s.lostIn = g.lossBegan
		g.losses++
	}
	return g.losses >= g.lossOpen
}

func (g *Group) reopenFailed(err error) {
	g.mu.Lock()
	// A group that began without connections has none to lose before its first.
	all := g.open == 0 && g.connected
	tooLong := g.away(all)
	g.reserved.Refused++
	g.refusal = g.targetError("Opening a connection failed", err).Message
	g.mu.Unlock()
	g.cfg.Log.Warn().Err(err).Msg("opening a connection failed, trying again")
	switch {
	case g.reconnects():
		if tooLong {
			g.awayTooLong(g.targetError("Reopening failed", err).Message, err)
		}
	case all:
		g.lostAll("All connections are lost, and no other can be opened", g.targetError("Reopening failed", err).Message, err)
	}
}

func (g *Group) lostAll(what, reason string, cause error) {
	if n := len(reason); n > 0 && reason[n-1] == '.' {
		reason = reason[:n-1]
	}
	g.fail(&engine.Error{Code: engine.CodeTarget, Cause: cause, Message: what + ": " + reason + ".",
		Hint: "Figures over a restart of the target cannot be defended; see that it stays up and run again."})
}

// targetError keeps a user-facing error and words any other by its class.
func (g *Group) targetError(what string, err error) *engine.Error {
	var known *engine.Error
	if errors.As(err, &known) {
		return known
	}
	return &engine.Error{Code: engine.CodeTarget, Cause: err, Message: what + ": " +
		executions.Mask(g.cfg.Database.Classify(err).Message) + "."}
}

// codeDrained is the code of the error that the load itself makes.
const codeDrained = "drain_timeout"

// errorID puts an execution's error into the dictionary, without the values in its message. said is the message as it
// came.
// unknown says that the operation may have been committed all the same.
func (g *Group) errorID(err error, unknown bool) (id uint32, said string) {
	e := g.cfg.Database.Classify(err)
	if g.cut.Load() {
		switch e.Class {
		case engine.ErrClassCancelled, engine.ErrClassConnection, engine.ErrClassTimeout:
			return g.errors.Add(engine.ExecutionError{Class: engine.ErrClassCancelled, Code: codeDrained,
				Message: "cut off: still running when the time to drain had passed"}), ""
		}
	}
	if unknown {
		e.Code, e.Message = engine.CodeUnknownOutcome, "whether it was committed is not known: "+e.Message
	}
	return g.errors.ID(e), e.Message
}
