package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// failureDrainTimeout bounds the drain after a failure: the run is lost anyway.
const failureDrainTimeout = 5 * time.Second

// runWorker is one worker of a run. Its loop is the only goroutine that decides;
// connecting, draining and closing happen beside it and report back, so that it
// hears events, and is heard, all the time.
type runWorker struct {
	node *Node
	a    protocol.AssignRun
	// server compares the clocks of the server that has assigned it; line is the run's time line.
	server *clockSync
	line   atomic.Pointer[clock.Clock]
	inbox  *protocol.Mailbox[protocol.ToNode]

	mu    sync.Mutex
	state protocol.WorkerState
	ahead time.Duration // what line is ahead of the node's clock, by the server's

	// What follows belongs to the loop.
	epoch int64 // the latest that was heard of
	// contact is when the node sent the last Status that the run's owner acknowledged, or
	// without one (touchedOnce is false then) when the worker was assigned.
	contact    time.Time
	hadContact bool

	started     bool
	startAt     time.Time   // when the load is to begin, by the owner's clock; zero is at once
	startsAt    *time.Timer // until then
	endTimer    *time.Timer // when the planned end is due
	endsAt      time.Time   // when the load ends by plan, by the monotonic clock; zero while that is not known
	loadStarted bool        // the load
	stopping    bool
	stoppedAt   time.Time // when it was told to stop
	// acknowledged: a server knows of its end. The node's mu guards it.
	acknowledged bool
	abandoned    bool // stopped before its time: what is due and not begun is dropped
	drain        time.Duration
	phase        engine.Phase
	loadPhase    engine.Phase // what the load was told
	entered      time.Time    // when loadPhase began
	target       int
	rate         *float64 // its own; nil: as the workload says
	// reached is when it has what it was told last, and rateReached its rate.
	reached, rateReached time.Time

	step          stepping
	ticker        *time.Ticker
	tick          int64
	sequence      int64
	load          Load
	res           *resources
	err           *engine.Error
	readyAt       time.Time
	loadStartedAt time.Time // when its load began
	drainedAt     time.Time // when nothing was in flight any more

	cancelSetup context.CancelFunc
	setup       chan setupDone
	drained     chan error
	closed      chan closeDone
	cut         context.CancelFunc // ends a drain early
}

// resources are what a run worker must close, in reverse order.
type resources struct {
	stream     plugin.Stream
	database   target.Database
	writer     *record.Writer
	observed   *observedSink // nil where executions are told to nobody
	parameters *parameterFile
	load       Load
	dir        string
}

type setupDone struct {
	res *resources
	err error
}

type closeDone struct {
	parts []engine.Artifact
	err   error
}

func newRunWorker(n *Node, server *clockSync, a protocol.AssignRun) *runWorker {
	w := &runWorker{node: n, server: server, a: a, inbox: protocol.NewMailbox(protocol.PolicyToNode, nil),
		target: a.Connections, drain: protocol.DrainTimeout, epoch: a.Epoch, contact: time.Now(),
		setup: make(chan setupDone, 1), drained: make(chan error, 1), closed: make(chan closeDone, 1)}
	// Until the load is opened the node's own is good enough.
	if w.line.Store(a.Clock); a.Clock == nil {
		w.line.Store(n.clock)
	}
	w.state = protocol.WorkerState{RunID: a.RunID, ResultID: a.ResultID, WorkerID: a.WorkerID, Epoch: a.Epoch,
		WorkerGroupID: a.WorkerGroupID,
		NodeID:        n.opts.NodeID, Status: engine.WorkerStarting, WantConnections: a.Connections}
	return w
}

// report returns the current state.
func (w *runWorker) report() protocol.WorkerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.LogsDropped = w.node.out.linesDropped(w.a.RunID)
	s.At, s.ClockError = w.line.Load().Now(), w.clockError()
	s.LineAhead, s.LineError = w.node.runClockAhead(w.a.RunID, s.At)
	return s
}

func (w *runWorker) change(f func(*protocol.WorkerState)) {
	w.mu.Lock()
	f(&w.state)
	w.mu.Unlock()
	w.node.out.Put(w.report())
}

func (w *runWorker) status() engine.WorkerStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Status
}

func (w *runWorker) log(level engine.LogLevel, format string, args ...any) {
	w.logWith(map[string]any{}, level, fmt.Sprintf(format, args...))
}

// logWith writes a line with what it is about into the run's log.
func (w *runWorker) logWith(about map[string]any, level engine.LogLevel, message string) {
	about["node_id"] = w.node.opts.NodeID
	text, _ := json.Marshal(about) // names and numbers
	w.node.out.Put(protocol.Log{LogEntry: engine.LogEntry{RunID: w.a.RunID, ResultID: w.a.ResultID, WorkerID: w.a.WorkerID,
		Level:   level,
		Message: message, Details: text, Timestamp: engine.At(w.line.Load().Now())}})
}

// logPlugin takes a line of the workload plugin into the run's log, where its rate is limited already;
// dropped are the lines before it that the limit left out.
func (w *runWorker) logPlugin(level engine.LogLevel, text string, dropped int) {
	about := map[string]any{"plugin": w.a.Plan.Workload.Name}
	if dropped > 0 {
		about["dropped"] = dropped
		w.node.out.dropLines(w.a.RunID, dropped)
	}
	w.logWith(about, level, "The plugin "+w.a.Plan.Workload.Name+" says: "+text)
}

// run is the life of the worker; it returns when the worker has left the run.
func (w *runWorker) run(ctx context.Context) {
	var setupCtx context.Context
	setupCtx, w.cancelSetup = context.WithCancel(ctx)
	defer w.cancelSetup()
	w.change(func(*protocol.WorkerState) {})
	go func() {
		res, err := w.open(setupCtx)
		w.setup <- setupDone{res, err} // room: a worker opens once
	}()
	w.ticker = time.NewTicker(protocol.FirstReportDelay(w.a.WorkerGroupID))
	defer w.ticker.Stop()
	w.endTimer = time.NewTimer(protocol.StartTimeout)
	defer w.endTimer.Stop()
	var inBeat sync.Once
	defer w.step.halt()
	defer w.clearBegin()
	over, left := ctx.Done(), w.node.left
	for {
		var failed <-chan error
		var done <-chan struct{}
		if w.load != nil && !w.stopping {
			failed, done = w.load.Failed(), w.load.Done()
		}
		select {
		case <-over:
			over = nil
			w.fail(&engine.Error{Code: engine.CodeUnavailable, Message: "The node is shutting down."})
			if w.cut != nil {
				w.cut()
			}
		case <-left:
			left = nil
			w.endWithNode()
		case <-w.inbox.Ready():
			if m, ok := w.inbox.Take(); ok {
				w.handle(m)
			}
		case s := <-w.setup:
			if !w.ready(s) {
				w.leave()
				return
			}
		case err := <-failed:
			w.loadFailed(err)
		case <-done:
			// A group that failed is done too; its error says more.
			select {
			case err := <-failed:
				w.loadFailed(err)
			default:
				w.log(engine.LogInfo, "the workload's stream has ended")
				w.stop(w.drain)
			}
		case err := <-w.drained:
			if err != nil && w.err == nil {
				w.err = engine.AsError(err)
			}
			w.drainedAt = time.Now()
			w.collect()
			go func() { w.closed <- w.res.close() }() // room: a worker closes once
		case c := <-w.closed:
			w.finish(c)
			w.leave()
			return
		case <-w.beginDue():
			w.tryBegin()
		case <-w.endTimer.C:
			w.tryEnd()
		case <-w.step.due():
			w.stepDue(w.line.Load().Now())
		case <-w.ticker.C:
			inBeat.Do(func() { w.ticker.Reset(protocol.HeartbeatInterval) })
			w.heartbeat()
		}
	}
}

// ready takes the result of open. It reports false when the worker is over.
func (w *runWorker) ready(s setupDone) bool {
	if s.err != nil {
		if !w.stopping {
			w.err = engine.AsError(s.err)
			w.node.opts.Log.Warn().Err(s.err).Str("run_id", w.a.RunID).Str("worker_id", w.a.WorkerID).
				Msg("a run worker could not be set up")
		}
		w.finish(closeDone{})
		return false
	}
	w.res, w.load = s.res, s.res.load
	if w.stopping {
		w.beginDrain()
		return true
	}
	w.readyAt = time.Now()
	w.change(func(st *protocol.WorkerState) {
		st.Status = engine.WorkerReady
		st.OpenConnections = w.a.Connections
	})
	w.load.SetDeadline(w.deadline())
	w.tryBegin()
	return true
}

func (w *runWorker) handle(m protocol.ToNode) {
	switch m := m.(type) {
	case protocol.RunEvent:
		if w.acceptsEpoch(m.Epoch) {
			w.apply(m)
		}
	case protocol.RunState:
		if w.acceptsEpoch(m.Epoch) {
			w.applyState(m)
		}
	case protocol.StatusAck:
		w.recordContact(m)
	}
}

// apply follows one event, at most once and in order.
func (w *runWorker) apply(m protocol.RunEvent) {
	e := m.Event
	mine := e.For(w.a.WorkerID, w.a.WorkerGroupID)
	// The end of another run worker that nobody asks about is behind all events: it says nothing of them.
	if e.SequenceID <= w.sequence || !mine && e.SequenceID == math.MaxInt64 {
		return
	}
	w.recordApplied(e.SequenceID, 0)
	if !mine {
		return
	}
	switch e.Type {
	case engine.EventStart:
		w.enterPhase(e.Data.Phase)
		if at := e.Data.EffectiveAt; at != nil {
			w.startAt = at.Round(0)
		}
		w.start()
	case engine.EventSetPhase:
		w.enterPhase(e.Data.Phase)
	case engine.EventSetWorkerTarget:
		w.enterStep(stepOf(e.Data))
		ramp := time.Duration(e.Data.RampSeconds * float64(time.Second))
		// Who retires keeps its connections until the STOP that follows has drained them.
		if n := e.Data.TargetConnections; n != nil && e.Data.Reason != engine.TargetRetire {
			w.setTarget(*n, ramp, m.AtMost)
		}
		if rate := e.Data.TargetQPS; rate != nil {
			w.setRate(*rate, ramp, m.AtMost)
		}
		w.node.out.Put(w.report()) // others may have more once this one has less
	case engine.EventStop:
		limit := protocol.DrainTimeout
		if s := e.Data.DrainTimeoutSeconds; s > 0 {
			limit = time.Duration(s * float64(time.Second))
		}
		w.abandoned = w.abandoned || e.Data.Reason != string(engine.StopDurationElapsed)
		w.stop(limit)
	}
}

// applyState follows the absolute state, which says no less than the events up to its sequence.
func (w *runWorker) applyState(s protocol.RunState) {
	if s.LastSequence < w.sequence {
		return
	}
	before := w.report().Epoch
	w.recordApplied(s.LastSequence, s.Epoch)
	if s.StopReason != "" || s.Status.Terminal() || s.Status == engine.StatusStopping ||
		s.Status == engine.StatusCancelling {
		limit := s.DrainTimeout
		if limit <= 0 {
			limit = protocol.DrainTimeout
		}
		w.abandoned = w.abandoned || s.StopReason != engine.StopDurationElapsed
		w.stop(limit)
		return
	}
	w.setEnd(s.EndAt, s.Epoch)
	w.enterPhase(s.Phase)
	w.enterStep(s.Step)
	if t, ok := s.Targets[w.a.WorkerID]; ok {
		w.setTarget(t.TargetConnections, 0, s.AtMost)
		if t.TargetQPS != nil {
			w.setRate(*t.TargetQPS, 0, s.AtMost)
		}
	}
	if s.Started {
		if !w.started {
			w.startAt = s.StartAt.Round(0)
		}
		w.start()
	}
	if before < s.Epoch {
		w.node.out.Put(w.report()) // a new owner waits for it
	}
}

// recordApplied takes note of an event that was followed, or with an epoch of a state of its owner. Of an owner whose
// state it has not followed yet it says nothing: its events may have come without what was before them.
func (w *runWorker) recordApplied(sequence, epoch int64) {
	w.sequence = sequence
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Epoch = max(w.state.Epoch, epoch)
	if w.state.Epoch == w.epoch {
		w.state.LastSequence = sequence
	}
}

// order of the phases; a worker never goes back.
func order(p engine.Phase) int {
	switch p {
	case engine.PhaseWarmup:
		return 1
	case engine.PhaseMeasurement:
		return 2
	case engine.PhaseCooldown:
		return 3
	case engine.PhaseProcessing:
		return 4
	default:
		return 0
	}
}

func (w *runWorker) enterPhase(p engine.Phase) {
	if order(p) <= order(w.phase) {
		return
	}
	w.phase = p
	w.mu.Lock()
	w.state.Phase = p
	w.mu.Unlock()
	if p == engine.PhaseMeasurement && !w.endsAt.IsZero() {
		w.followEnd()
	}
	if w.status() == engine.WorkerRunning {
		w.follow()
	}
}

// follow tells the load which phase it is in. COOLDOWN changes nothing for it:
// what was issued in the measurement belongs there.
func (w *runWorker) follow() {
	p := engine.PhaseWarmup
	if order(w.phase) >= order(engine.PhaseMeasurement) {
		p = engine.PhaseMeasurement
	}
	if p == w.loadPhase {
		return
	}
	if w.loadPhase == "" {
		// The time since connecting is not part of the first tick.
		w.load.Collect(&engine.WorkerSnapshot{})
		w.load.Start(p)
	} else {
		// What the warm-up has counted since the last tick is the warm-up's: the counters begin anew with the phase.
		w.collect()
		w.load.SetPhase(p)
	}
	w.loadPhase, w.entered = p, w.line.Load().Now()
	if p == engine.PhaseMeasurement {
		w.mu.Lock()
		w.state.MeasuresSince = w.entered
		w.mu.Unlock()
	}
}

func (w *runWorker) start() {
	if w.started || w.stopping {
		return
	}
	w.started = true
	w.tryBegin()
}

func (w *runWorker) startLoad() {
	if w.target != w.a.Connections {
		w.load.SetTarget(w.target, 0)
	}
	if w.rate != nil {
		w.load.SetRate(w.wholeRunRate(*w.rate), 0)
	}
	w.follow()
	w.loadStartedAt = time.Now()
	w.beginStep(w.line.Load().Now())
	at, late := w.began()
	w.change(func(s *protocol.WorkerState) { s.Status, s.BeganAt, s.BeganLate = engine.WorkerRunning, at, late })
	w.tryEnd()
}

// follows reports whether the worker follows the stages of its workload by
// itself. The targets that it is told then say what it does anyway.
func (w *runWorker) follows() bool { return len(w.a.Workload.Stages) > 0 }

// setTarget changes how many connections the load has; atMost: never to more, and at once, also if it is on its way
// there.
func (w *runWorker) setTarget(connections int, ramp time.Duration, atMost bool) {
	cut := atMost && time.Now().Before(w.reached)
	if atMost {
		connections, ramp = min(connections, w.target), 0
	}
	if connections == w.target && !cut || connections < 0 || w.follows() || w.stopping {
		return
	}
	w.target, w.reached = connections, time.Now().Add(ramp)
	if w.loadStarted {
		w.load.SetTarget(connections, ramp)
	}
}

// stop ends the load in order. A second STOP may only shorten the drain, and a run
// given up while it drains executes nothing more that has not begun.
func (w *runWorker) stop(limit time.Duration) {
	if w.stopping {
		if w.abandoned && w.load != nil {
			w.load.DropQueued()
		}
		// A run that was ending by itself and is cancelled ends sooner.
		if limit < w.drain {
			w.drain = limit
			if w.cut != nil {
				time.AfterFunc(limit, w.cut)
			}
		}
		return
	}
	w.stopping, w.drain, w.stoppedAt = true, limit, time.Now()
	w.step.halt()
	w.clearBegin()
	w.cancelSetup()
	if w.load == nil {
		// ready follows as soon as connecting has given up.
		w.change(func(s *protocol.WorkerState) { s.Status = engine.WorkerDraining })
		return
	}
	w.beginDrain()
}

func (w *runWorker) beginDrain() {
	w.load.Stop()
	if w.abandoned {
		w.load.DropQueued()
	}
	w.change(func(s *protocol.WorkerState) { s.Status = engine.WorkerDraining })
	var ctx context.Context
	ctx, w.cut = context.WithTimeout(context.Background(), w.drain)
	go func() {
		err := w.load.Drain(ctx)
		w.cut()
		w.drained <- err // room: a worker drains once
	}()
}

// fail stops the worker because of an error; the first one is kept.
func (w *runWorker) fail(err *engine.Error) { w.failWithin(failureDrainTimeout, err) }

// failWithin is fail with another time for what is in flight.
func (w *runWorker) failWithin(drain time.Duration, err *engine.Error) {
	w.abandoned = true
	if w.err == nil {
		w.err = err
		w.log(engine.LogError, "%s", err.Message)
	}
	w.stop(drain)
}

// loadFailed stops the worker because its load has ended with an error.
func (w *runWorker) loadFailed(err error) {
	if errors.Is(err, load.ErrDeadlinePassed) {
		w.outOfContact(time.Since(w.contact))
		return
	}
	w.fail(engine.AsError(err))
}

// heartbeat is the heartbeat, the snapshot, and the watchdog.
func (w *runWorker) heartbeat() {
	w.watch()
	if w.status() == engine.WorkerReady && !w.started && time.Since(w.readyAt) > protocol.StartTimeout {
		w.fail(&engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("%s was ready, and heard no START for %.0f s.", w.a.WorkerID, protocol.StartTimeout.Seconds())})
	}
	if why := w.node.disk.pressedBy(w.a.RunID); why != nil && !w.stopping {
		w.mu.Lock()
		w.state.RecordEnded = true
		w.mu.Unlock()
		w.fail(why) // while what is in flight still has its room
	}
	w.collect()
	w.node.out.Put(w.report())
}

// collect sends a snapshot once there is load.
func (w *runWorker) collect() {
	if w.load == nil || w.loadPhase == "" {
		return
	}
	w.tick++
	s := engine.WorkerSnapshot{RunID: w.a.RunID, ResultID: w.a.ResultID, WorkerID: w.a.WorkerID,
		WorkerGroupID: w.a.WorkerGroupID,
		NodeID:        w.node.opts.NodeID, Tick: w.tick, Phase: w.loadPhase, Status: w.status(),
		Resources: *w.node.resources.Load()}
	w.load.Collect(&s)
	w.step.tag(&s)
	now := w.line.Load().Now()
	s.Timestamp, s.PhaseSeconds = engine.At(now), now.Sub(w.entered).Seconds()
	w.node.out.Put(protocol.Snapshot{WorkerSnapshot: s})
}

// finish announces the parts and the final state, in this order.
func (w *runWorker) finish(c closeDone) {
	if c.err != nil && w.err == nil {
		w.err = engine.AsError(c.err)
	}
	var totals engine.Totals
	if w.load != nil {
		totals = w.load.Totals()
	}
	if len(c.parts) > 0 {
		if err := writeCounts(w.res.dir, counts{w.a.ResultID, &totals}); err != nil {
			w.node.opts.Log.Warn().Err(err).Str("run_id", w.a.RunID).Str("worker_id", w.a.WorkerID).
				Msg("a kill before they are stored would lose the counts of a run worker")
		}
		w.node.ready(c.parts, w.res.dir, false)
	} else {
		removeEmptyDirs(w.node.spool(w.a.RunID, w.a.WorkerID))
	}
	w.change(func(s *protocol.WorkerState) {
		s.Status = engine.WorkerCompleted
		if w.err != nil {
			s.Status, s.Err = engine.WorkerFailed, w.err
		}
		s.Totals, s.Parts, s.OpenConnections = &totals, len(c.parts), 0
		if io, ok := w.load.(interface {
			IOEngine() string
			IOReason() string
		}); ok {
			s.IOEngine, s.IOReason = io.IOEngine(), io.IOReason()
		}
	})
}

// leave is the last act; nothing of the worker runs afterwards.
func (w *runWorker) leave() {
	if w.cut != nil {
		w.cut()
	}
}
