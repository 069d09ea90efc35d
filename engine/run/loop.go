package run

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/guardrail"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	runlive "github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/run/observe"
	runclock "github.com/loadstone-db/loadstone/engine/run/recovery"
	"github.com/loadstone-db/loadstone/engine/run/runlog"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
)

// runLoop is a run with its loop. Fields below the line belong to the loop, which alone knows them all: its
// parts (search, scale, sender, …) have state of their own, and are told what they need and asked what follows.
type runLoop struct {
	svc    *Service
	clock  *clock.Clock
	log    zerolog.Logger
	writer *writer.Writer
	spans  *SpanTracker
	// inbox holds what the nodes say until the loop has time for it; linesLost counts the
	// lines of the log that it had to drop.
	inbox     *protocol.Mailbox[nodeMessage]
	linesLost atomic.Int64
	requests  chan request
	done      chan struct{} // closed when nothing is left to do
	// figuresReady is closed when the figures are there while the enrichment goes on.
	figuresReady chan struct{}

	startedBy string // who started it
	// deps are what its preparation needs, with the connection that was opened when it was started.
	deps prepare.Deps

	liveState atomic.Pointer[engine.LiveState]
	summary   atomic.Pointer[engine.Summary]
	// observer looks at the target's server; nil before the target is prepared.
	observer  atomic.Pointer[observe.Observer]
	published atomic.Pointer[engine.Run]
	// plugins holds what plugins have said, until the loop writes it down.
	plugins runlog.Plugins

	// ----

	// facts are what its parts may read of it; the id of the run never changes.
	*facts

	// onStart is the first thing that the loop does.
	onStart func(ctx context.Context)

	runlog.Writer
	search   searcher
	scale    scaler
	sender   sender
	poller   poller
	finisher finisher
	// watch notices that the time of this process jumps, line when the run workers have begun.
	watch runclock.Monitor
	line  clock.StartReport

	run      engine.Run
	epoch    int64
	agg      *runlive.Aggregator
	validity *runlive.Validity
	// savedFindings is how many causes and notes have been stored.
	savedFindings int
	guard         *guardrail.Watch
	rules         *rules.Set
	second        *runlive.Second

	// untrustedNodes are the nodes that spoke for run workers of others.
	untrustedNodes map[string]bool
	progress       *engine.PrepareProgress
	cancelPrepare  context.CancelFunc
	prepareDone    chan prepareResult
	prepareStep    chan engine.PrepareProgress
	preparedAt     time.Time
}

type nodeMessage struct {
	node    nodes.Node
	message protocol.FromNode
}

// request is what the loop is to do for others; stored receives the end of its write.
type request struct {
	do     func(context.Context)
	stored chan struct{}
}

type prepareResult struct {
	plan *prepare.Prepared
	err  error
}

// newLive is a run with the run workers that it begins with, or goes on with.
func newLive(s *Service, run engine.Run, clock *clock.Clock, workers []*Worker, life *lifecycle.Machine,
	by string,
) *runLoop {
	run.Owner = s.opts.Owner
	l := &runLoop{facts: &facts{runID: run.RunID, sc: run.Scenario, life: life},
		svc: s, clock: clock, run: run, startedBy: by, deps: s.deps(), epoch: run.OwnerEpoch,
		log:    s.opts.Log.With().Str("run_id", run.RunID).Logger(),
		writer: writer.New(s.opts.Store, run.RunID, run.OwnerEpoch, s.opts.Log), spans: NewSpanTracker(s.opts.Traces, run),
		requests: make(chan request, 16), done: make(chan struct{}), figuresReady: make(chan struct{}),
		agg: runlive.New(), validity: runlive.NewValidity(), guard: guardrail.New(run.Scenario.Guardrails),
		rules:         s.opts.Rules.Start(run),
		cancelPrepare: func() {}, prepareDone: make(chan prepareResult, 1), prepareStep: make(chan engine.PrepareProgress, 1)}
	l.inbox = protocol.NewMailbox(
		func(f nodeMessage) (protocol.Policy, protocol.Subject) { return protocol.PolicyFromNode(f.message) },
		func(f nodeMessage) {
			if _, ok := f.message.(protocol.Log); ok {
				l.linesLost.Add(1)
			}
		},
	)
	for _, w := range workers {
		l.Register(w)
	}
	l.onStart = func(ctx context.Context) { l.apply(ctx, lifecycle.RunStarted{}) }
	l.Writer = runlog.Writer{RunID: run.RunID, StartedAt: run.StartTime.Time, Clock: clock, Life: l.life}
	l.search, l.scale, l.poller, l.finisher = newSearcher(l.facts), newScaler(l.facts), newPoller(), newFinisher()
	l.second = l.agg.Tick(engine.PhasePreparing, nil)
	l.validity.StartObserving(clock.Now())
	shown := run
	l.published.Store(&shown)
	return l
}

// Current is the run as its loop last showed it.
func (l *runLoop) Current() engine.Run { return *l.published.Load() }

// LiveState is its latest state for pages.
func (l *runLoop) LiveState() *engine.LiveState { return l.liveState.Load() }

// StartedBy is who started it.
func (l *runLoop) StartedBy() string { return l.startedBy }

// OwnedEpoch is the epoch in which this process owns it, leased: with a lease that has not expired. Where another
// server may take it over this process's own node needs that too: that server ends it, or gives its load to others.
func (l *runLoop) OwnedEpoch(leased bool) (epoch int64, owned bool) {
	return l.epoch, l.writer.Owns(leased || l.svc.opts.Shared)
}

// submit hands the loop an event. The channel closes when its consequences are stored.
func (l *runLoop) submit(h lifecycle.Event) <-chan struct{} {
	return l.enqueue(func(ctx context.Context) { l.apply(ctx, h) })
}

// enqueue has the loop do something.
func (l *runLoop) enqueue(do func(context.Context)) <-chan struct{} {
	r := request{do, make(chan struct{})}
	select {
	case l.requests <- r:
	case <-l.done:
		close(r.stored)
	}
	return r.stored
}

// loop is the run's life. When ctx ends it leaves everything as it is: the next
// process recovers the run.
func (l *runLoop) loop(ctx context.Context) {
	defer l.release()
	defer func() { l.cancelPrepare(); l.poller.stop(); l.observer.Load().Stop() }()
	defer func() {
		// What the preparation started is set back at the end of all, and also when this process ends before it.
		if l.plan != nil && l.life.Status().Terminal() {
			if failed := l.svc.restoreTarget(l.run, l.plan.Plan); failed != "" {
				l.writeLog(engine.LogError, nil, "%s", failed)
				l.writer.SaveTick(l.logOnlyTick())
			}
		}
	}()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	l.onStart(ctx)
	for {
		due, stopTimer := l.timer()
		// The run is over when its end is stored too.
		var over <-chan struct{}
		if l.life.Ended() {
			over = l.sender.lastStore.Done()
		}
		var enriched <-chan struct{}
		if !l.life.Ended() {
			enriched = l.finisher.enrichmentDone()
		}
		select {
		case <-ctx.Done():
			stopTimer()
			return
		case <-l.writer.Fenced():
			l.abandon()
			stopTimer()
			return
		case <-over:
			stopTimer()
			l.publish(true)
			return
		case <-l.inbox.Ready():
			if m, ok := l.inbox.Take(); ok {
				l.receive(ctx, m)
			}
		case r := <-l.requests:
			r.do(ctx)
			l.failExpired(ctx, l.clock.Now())
			l.sender.whenStored(l.svc.lifetime, r.stored)
		case <-l.scale.pendingStarts.FirstStored():
			l.startStored(ctx)
		case r := <-l.scale.reservations:
			l.onReserved(ctx, r)
		case p := <-l.prepareStep:
			l.progress = &p
			l.publish(false)
		case r := <-l.prepareDone:
			l.prepared(ctx, r)
		case o := <-l.finisher.results:
			l.onFigures(ctx, o)
		case p := <-l.poller.polls:
			l.onPoll(p)
		case <-l.rules.Ready():
			l.applyRuleResults(ctx)
		case o := <-l.writer.Outages():
			l.WriteStoreOutage(o)
		case <-enriched:
			if l.finisher.enriching.Interrupted() {
				stopTimer()
				return // the next process goes on with it
			}
			l.onEnriched(ctx)
		case <-l.sender.stored():
			l.flush(l.clock.Now())
		case <-due:
			l.flush(l.clock.Now())
			l.apply(ctx, lifecycle.Tick{})
		case due := <-ticker.C:
			l.everySecond(ctx)
			l.svc.ticks.Ticked(l.runID, time.Since(due))
		}
		stopTimer()
	}
}

// timer fires at the next decision by time.
func (l *runLoop) timer() (<-chan time.Time, func()) {
	next := l.life.Due()
	if send := l.sender.deadline(); !send.IsZero() && (next.IsZero() || send.Before(next)) {
		next = send
	}
	if next.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(next.Sub(l.clock.Now()))
	return t.C, func() { t.Stop() }
}

// release ends the bookkeeping of the run. Parts that were not stored are kept for who
// finishes it.
func (l *runLoop) release() {
	l.svc.runs.Remove(l.runID)
	if l.life.Status().Terminal() {
		// Otherwise the process ends, and whoever finishes the run asks about its run workers.
		l.svc.nodes.ReleaseRun(l.runID)
	}
	for _, p := range l.finisher.unstored() {
		l.svc.recovery.AddPart(p)
	}
	l.forwardUnprocessed()
	l.svc.hub.End(l.runID)
	l.endRules()
	l.writer.Close()
	close(l.done)
}

// abandon leaves a run to the server that has taken it over. Its workers in this process are
// stopped; those of other nodes are that server's, or stop by themselves when nobody asks.
func (l *runLoop) abandon() {
	l.log.Error().Msg("another server has taken the run over; its workers in this process are stopped")
	for _, w := range l.Workers {
		if w.Node != nil && w.Node.ID() == protocol.OwnNode && !w.State.Status.Ended() {
			_ = w.Node.Send(protocol.RunState{RunID: l.runID, Epoch: l.epoch, Status: engine.StatusCancelling,
				StopReason: engine.StopWorkerFailure, LastSequence: l.sender.sequence})
		}
	}
	l.svc.nodes.HandOffRun(l.runID)
}

// markLost gives a run worker up. Others may have its load from free on.
func (l *runLoop) markLost(w *Worker, why string, free time.Time) {
	w.Dead, w.DeadReason = true, why
	if l.sc.Scaling.Elastic() && l.life.Started() {
		l.LostWorkers.MarkLost(w.ID, free)
	}
	w.State.Status = engine.WorkerDead
	if !l.life.Status().Terminal() {
		w.left = true
		row := l.workerRow(w)
		row.Status, row.StartTime, row.EndTime, row.FailureReason = engine.StatusFailed, engine.Time{}, engine.At(
			w.LastSeen,
		), why
		l.writer.SaveResults("the loss of a run worker", []engine.RunResult{row}, nil)
	}
	l.validity.LostWorker(w.ID, why, w.LastSeen, l.clock.Now())
	l.writeLogWith(
		runlog.Details{"last_heard": engine.At(w.LastSeen), "silent_seconds": l.clock.Now().Sub(w.LastSeen).Seconds()},
		engine.LogCritical,
		w,
		"%s %s",
		w.ID,
		why,
	)
}

// applyChange applies a transition to the run in memory.
func (l *runLoop) applyChange(t store.Transition) {
	t.ApplyTo(&l.run, l.clock.Now())
	l.rules.Transition(t, l.clock.Now())
	shown := l.run
	l.published.Store(&shown)
}

// prepare runs beside the loop.
func (l *runLoop) prepare(ctx context.Context) {
	ctx, l.cancelPrepare = context.WithCancel(ctx)
	l.logNote(engine.LogInfo, engine.Note{Code: engine.NoteRunStarted, User: cmp.Or(l.startedBy, "the server")})
	l.publish(false)
	l.svc.routines.Go(func() {
		plan, err := l.svc.opts.Plan(l.svc.LogContext(ctx, l.runID), l.deps, l.sc, func(p engine.PrepareProgress) {
			// The latest progress is enough.
			select {
			case <-l.prepareStep:
			default:
			}
			select {
			case l.prepareStep <- p:
			default:
			}
		})
		l.prepareDone <- prepareResult{plan, err} // room: a run is prepared once
	})
}

func (l *runLoop) prepared(ctx context.Context, r prepareResult) {
	l.preparedAt = l.clock.Now()
	l.progress = nil
	l.WritePluginLines(l.plugins.Take())
	if r.err != nil {
		if !errors.Is(r.err, context.Canceled) {
			l.log.Warn().Err(r.err).Msg("preparing a run failed")
		}
		l.apply(ctx, lifecycle.PrepareFailed{Message: engine.ErrorText(r.err)})
		return
	}
	l.plan = r.plan
	l.agg.CountOwn(r.plan.Plan)
	for _, n := range r.plan.Notes {
		l.writeLog(engine.LogInfo, nil, "%s", n)
	}
	for _, n := range r.plan.Remarks {
		l.validity.AddNote(engine.TextNote(n))
	}
	if r.plan.Server.Local {
		l.validity.AddNote(engine.Note{Code: engine.NoteTargetLocal})
	}
	l.watchWarehouse(ctx)
	most := 0.0
	if l.life.Search() != nil {
		var why string
		most, why = scaling.MaxLevel(l.sc, r.plan.Server.MaxConnections)
		l.writeLog(engine.LogInfo, nil, "The search goes up to %.6g %s: %s", most, scaling.UnitName(l.sc.FindMax.Unit), why)
	}
	l.apply(ctx, lifecycle.Prepared{MaxLevel: most})
}

// assignWorkers assigns the run workers to nodes, evenly.
func (l *runLoop) assignWorkers() {
	begin := func(ctx context.Context) {
		l.assign(ctx, l.scale.reservedNodes, l.Workers...)
		l.publish(false)
	}
	// Before the run gives them up as not ready: nobody has asked them.
	deadline := l.clock.Now().Add(protocol.StartTimeout - 2*time.Second)
	l.scale.pendingStarts.Add(l.clock.Now(),
		PendingStart{Row: l.saveStart(), Workers: l.Workers, Start: begin, Deadline: deadline})
	l.publish(false)
}

// receive takes one message of a node.
func (l *runLoop) receive(ctx context.Context, f nodeMessage) {
	_, state := f.message.(protocol.WorkerState)
	worker, result := protocol.WorkerOf(f.message)
	// What nobody here knows of is told to end, see report.
	toEnd := state && l.Worker(worker) == nil
	if !toEnd && !l.IsAuthoritative(f.node, worker, result) {
		l.rejectMessage(f, worker)
		return
	}
	switch m := f.message.(type) {
	case protocol.Snapshot:
		if w := l.Worker(m.WorkerID); w != nil && w.ResultID == m.ResultID {
			w.LastSeen = l.clock.Now()
			if l.agg.Add(&m.WorkerSnapshot) {
				l.ObserveLosses(w.LogWorker(), &m.WorkerSnapshot)
				if l.search.add(&m.WorkerSnapshot) {
					l.measure(ctx)
				}
			}
		}
	case protocol.Log:
		l.Buffer.Add(m.LogEntry)
		l.Buffer.RecordDropped("the server", l.linesLost.Load())
	case protocol.WorkReady:
		p := nodes.Part{WorkReady: m, Node: f.node}
		l.finisher.parts[m.WorkID] = p
		if m.Pressing {
			l.finisher.earlyStore.Store(ctx, l.svc.routines.Go, l.svc.finalizer, l.writer, l.log, p)
		}
	case protocol.RunRejected:
		if w := l.Worker(m.WorkerID); w != nil {
			w.State.Status, w.State.Err = engine.WorkerFailed, m.Err
			l.scale.pauseJoins(l.clock.Now())
			l.apply(ctx, lifecycle.WorkerChanged{ID: w.ID, Status: engine.WorkerFailed, Message: engine.ErrorText(m.Err)})
			l.settleLoad()
		}
	case protocol.WorkerState:
		l.report(ctx, f.node, m)
	}
}

func (l *runLoop) report(ctx context.Context, from nodes.Node, m protocol.WorkerState) {
	w := l.Worker(m.WorkerID)
	if w == nil && !m.Status.Ended() && m.RunID == l.runID {
		// Another server has let it join, and lost the run before it could say so. Nobody counts its load.
		_ = from.Send(nodes.EndOrphan(l.runID, m.WorkerID, l.epoch))
	}
	if w == nil || w.ResultID != m.ResultID {
		return
	}
	if w.Node == nil {
		w.Node = from // it was placed by another server, and not stored where
	}
	if m.Status.Ended() {
		l.saveEnd(w, from, m)
	}
	said := w.RecordReport(m.At, l.clock.Now())
	l.Buffer.RecordDropped(m.NodeID, m.LogsDropped)
	if w.Dead {
		// It was given up, and its load may have run on; what it counted still counts.
		w.State.Totals = m.Totals
		if !m.Status.Ended() {
			_ = from.Send(nodes.EndOrphan(l.runID, w.ID, l.epoch)) // others have its load, or will; said until it has ended
		}
		return
	}
	if m.RecordEnded && !w.State.RecordEnded {
		// Known before anything of the record is missing, and whether or not anything will be.
		l.validity.Add(
			engine.CauseIncompleteRecord,
			engine.Note{Code: engine.AboutRecordNoRoom, Worker: w.ID, Node: m.NodeID},
			l.clock.Now(),
			l.clock.Now(),
		)
	}
	changed := w.State.Status != m.Status
	w.State = m
	if w.Acknowledge(m.Epoch, m.LastSequence, l.clock.Now()) {
		l.raise(ctx, l.clock.Now())
	}
	if !changed {
		return
	}
	message := l.failureOf(m)
	switch m.Status {
	case engine.WorkerReady:
		l.writeLogWith(runlog.Details{"connections": w.Connections}, engine.LogInfo, w,
			"%s is ready with %d connections on %s", w.ID, w.Connections, m.NodeID)
	case engine.WorkerFailed:
		goesOn := !l.life.Stopping() || l.life.StopReason() == engine.StopDurationElapsed
		if l.sc.Scaling.Elastic() && l.life.Started() && goesOn && m.Err != nil &&
			m.Err.Code == engine.CodeUnavailable && l.life.CarriedLoad(w.ID) {
			// Its node took it along, or it stopped by itself: nothing is wrong with the load, and the others go on.
			l.markLost(w, message, l.clock.Now())
			w.State.Totals = m.Totals
			l.replaceLost(ctx) // first: a run goes on that has lost its only run worker
			l.apply(ctx, lifecycle.WorkersLost{IDs: []string{w.ID}, Message: message})
			l.settleLoad()
			l.publish(false)
			return
		}
		l.writeLogWith(runlog.Details{"error": m.Err}, engine.LogError, w, "%s failed: %s", w.ID, message)
		l.scale.pauseJoins(l.clock.Now())
		if l.life.Started() {
			l.validity.LostWorker(w.ID, message, said, l.clock.Now())
		}
	}
	l.validity.SetTimeError(w.ID, m.NodeID, m.Status.Ended(), m.ClockError)
	if m.Status.Ended() && l.AllEnded() {
		// The last second belongs to the run before it turns terminal.
		l.aggregate(l.clock.Now())
	}
	l.validity.AddNote(engine.TextNote(l.line.Record(w.ID, m.NodeID, m.BeganAt, m.BeganLate, m.ClockError)))
	l.apply(ctx, lifecycle.WorkerChanged{ID: w.ID, Status: m.Status, Message: message, StartIn: l.startLead()})
	l.onJoined()
	l.publish(false)
}

// writeLog writes a line of the orchestrator into the run's log.
func (l *runLoop) writeLog(level engine.LogLevel, w *Worker, format string, args ...any) {
	l.writeLogWith(nil, level, w, format, args...)
}

// writeLogWith writes a line with what it is about.
func (l *runLoop) writeLogWith(about runlog.Details, level engine.LogLevel, w *Worker, format string, args ...any) {
	l.Write(about, level, w.LogWorker(), format, args...)
}

// logNote writes a note as a line, with what it is made of.
func (l *runLoop) logNote(level engine.LogLevel, n engine.Note) {
	l.writeLogWith(runlog.Details{"note": n}, level, nil, "%s", n)
}

// endLosses tells the rows of lost connections that are over; all of them when the run is.
func (l *runLoop) endLosses(now time.Time, end bool) {
	for _, w := range l.Workers {
		l.EndLosses(w.LogWorker(), now, end)
	}
}
