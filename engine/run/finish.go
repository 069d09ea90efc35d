package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// finisher keeps what the figures of a run are made of until it is over: which parts of the record are where, and
// which ends of run workers are known.
type finisher struct {
	// livePercentiles are the percentiles of the measurement so far.
	livePercentiles finalize.LivePercentiles
	// parts are finished ones that nodes hold, by work id; storing are those that are being stored for the figures.
	// Who announces one of these again is among parts too: it has not heard that it is stored.
	parts      map[string]nodes.Part
	storing    []nodes.Part
	earlyStore finalize.EarlyStore
	// endAcks tell nodes that the ends of their run workers are known.
	endAcks []endAck
	results chan *finalize.Result
	// enriching is nil before the figures are there, and where there is no history.
	enriching *enrichment.Job
}

func newFinisher() finisher {
	return finisher{parts: map[string]nodes.Part{}, results: make(chan *finalize.Result, 1)}
}

// endAck tells a node that the end of a run worker is stored: until then the node says it again, also to a server
// that takes the run over.
type endAck struct {
	node nodes.Node
	ack  protocol.WorkerAck
}

func (a endAck) send() { _ = a.node.Send(a.ack) }

// collect takes all parts that are not stored out of those that nodes hold: they are being stored from now on, and
// nothing more is stored beside the load.
func (f *finisher) collect() []nodes.Part {
	f.storing = f.earlyStore.Stop(f.parts)
	for _, p := range f.storing {
		delete(f.parts, p.WorkID)
	}
	return f.storing
}

// markStored takes that parts are stored.
func (f *finisher) markStored(workIDs []string) {
	f.storing = slices.DeleteFunc(f.storing, func(p nodes.Part) bool { return slices.Contains(workIDs, p.WorkID) })
}

// unstored are the parts that are not known to be stored, in the order of their ids: who finishes the run needs them.
func (f *finisher) unstored() []nodes.Part {
	left := maps.Clone(f.parts)
	for _, p := range f.storing {
		left[p.WorkID] = p
	}
	out := make([]nodes.Part, 0, len(left))
	for _, id := range slices.Sorted(maps.Keys(left)) {
		out = append(out, left[id])
	}
	return out
}

// enrichmentDone is closed when the enrichment has ended; nil where none is under way.
func (f *finisher) enrichmentDone() <-chan struct{} {
	if f.enriching == nil {
		return nil
	}
	return f.enriching.Done()
}

// environmentOf is where a run takes place, the target once it is prepared.
func environmentOf(version string, calibration *engine.Calibration, workerTable *WorkerTable,
	plan *prepare.Prepared) engine.Environment {
	e := host.Environment(version)
	e.Calibration = calibration
	e.Nodes = len(workerTable.Nodes())
	if plan != nil {
		e.Driver, e.ServerVersion, e.TargetIsLocal = plan.Plan.Driver, plan.Server.Version, plan.Server.Local
		e.TargetMaxConnections = plan.Server.MaxConnections
		e.Simulated, e.Emulated = plan.Server.Simulated, plan.Server.Emulated
	}
	for _, w := range workerTable.Workers {
		if w.State.IOEngine != "" {
			e.IOEngine, e.IOEngineReason = w.State.IOEngine, w.State.IOReason
		}
	}
	return e
}

// otherEngine notes that an I/O engine was asked for, and another drove the connections.
func otherEngine(asked engine.IOEngine, e engine.Environment) engine.Note {
	drove := engine.IOEngine(e.IOEngine)
	if asked == "" || asked == engine.IOAuto || drove == "" || drove == asked {
		return engine.Note{}
	}
	return engine.Note{Code: engine.NoteIOEngine, Text: string(asked), Part: string(drove), Cause: e.IOEngineReason}
}

// evidenceOf are the run workers as their results are computed.
func evidenceOf(workers []*Worker) []finalize.Worker {
	out := make([]finalize.Worker, len(workers))
	for i, w := range workers {
		out[i] = finalize.Worker{ID: w.ID, ResultID: w.ResultID, Group: w.Group, Totals: w.State.Totals,
			Failure: w.DeadReason, Left: w.left, LoadStart: w.State.LoadStart()}
		if w.State.Err != nil {
			out[i].Failure = w.State.Err.Message
		}
	}
	return out
}

// countsOf are the rows of the run workers that have told what they counted.
func countsOf(run engine.Run, workers []finalize.Worker) (rows []engine.RunResult) {
	for _, w := range workers {
		if w.Totals != nil {
			rows = append(rows, w.CountedResult(run))
		}
	}
	return rows
}

// saveStart stores the plan, the environment and a row for each run worker.
func (l *runLoop) saveStart() *writer.Write {
	env := l.environment()
	parent := engine.RunResult{ResultID: l.runID, RunID: l.runID, RunName: l.run.RunName, Status: engine.StatusRunning,
		StartTime: l.run.StartTime, Plan: l.plan.Plan, Environment: &env}
	rows := []engine.RunResult{parent}
	for _, w := range l.Workers {
		rows = append(rows, l.workerRow(w))
	}
	return l.writer.SaveResults("the plan", rows, nil)
}

// workerRow is a run worker's row of the results, before it has any.
func (l *runLoop) workerRow(w *Worker) engine.RunResult {
	group := w.Group
	return engine.RunResult{ResultID: w.ResultID, RunID: l.runID, WorkerID: w.ID, WorkerGroupID: &group,
		RunName: l.run.RunName, Status: engine.StatusRunning, StartTime: engine.At(l.clock.Now())}
}

func (l *runLoop) environment() engine.Environment {
	var calibration *engine.Calibration
	if measured := l.svc.opts.Calibration; measured != nil {
		calibration = measured.Current()
	}
	return environmentOf(l.svc.opts.Version, calibration, &l.WorkerTable, l.plan)
}

// observerLimit is how long figures wait for what the server was seen to do.
const observerLimit = 15 * time.Second

// computeFigures computes the results beside the loop.
func (l *runLoop) computeFigures(ctx context.Context) {
	l.poller.stop()
	observer := l.observer.Load()
	observer.Stop()
	l.endLosses(l.clock.Now(), true)
	environment := l.environment()
	l.validity.AddNote(otherEngine(l.run.Scenario.Workload.IOEngine, environment))
	l.validity.AddNote(finalize.EndedEarly(l.run))
	l.validity.AddNote(engine.TextNote(l.line.Summary()))
	e := finalize.Evidence{Run: l.run, Writer: l.writer, Environment: environment, Validity: l.validity.Clone(),
		LivePercentiles: l.finisher.livePercentiles, MeasureAt: l.life.MeasureAt()}
	if l.plan != nil {
		e.Plan = l.plan.Plan
	}
	if s := l.life.Search(); s != nil {
		e.Search = s.Series().Result()
		l.saveSearch(nil)
	}
	if l.life.Placed() {
		e.Workers = evidenceOf(l.Workers)
	}
	e.Parts = l.finisher.collect()
	// What was counted is stored first, so that a restart while figures are computed does not lose it.
	ends := l.finisher.endAcks
	l.writer.SaveResults("the counts", countsOf(e.Run, e.Workers), func() {
		for _, end := range ends {
			end.send()
		}
	})
	results := l.finisher.results
	l.svc.routines.Go(func() {
		kept, cancel := context.WithTimeout(ctx, observerLimit)
		observer.Wait(kept)
		cancel()
		results <- l.svc.finalizer.Process(ctx, e) // room: figures are computed once
	})
}

// saveEnd stores what a run worker has counted, and tells its node that the end is known. Of a run
// that ends that is done for all together.
func (l *runLoop) saveEnd(w *Worker, from nodes.Node, m protocol.WorkerState) {
	end := endAck{from, protocol.WorkerAck{RunID: m.RunID, WorkerID: m.WorkerID, ResultID: m.ResultID}}
	switch {
	case m.Totals == nil || l.life.Status().Terminal():
		end.send() // there is nothing, or it is stored with the figures
	case l.life.Stopping():
		l.finisher.endAcks = append(l.finisher.endAcks, end)
	default:
		row := finalize.Worker{ID: w.ID, ResultID: w.ResultID, Group: w.Group, Totals: m.Totals,
			LoadStart: m.LoadStart(), Left: w.left}.CountedResult(l.run)
		if !w.left {
			// It has ended, also where the run goes on without it.
			w.left = true
			row.Status, row.EndTime = engine.StatusCompleted, engine.At(l.clock.Now())
			if m.Status != engine.WorkerCompleted || w.Dead {
				row.Status = engine.StatusFailed
			}
			if row.FailureReason = w.DeadReason; m.Err != nil {
				row.FailureReason = engine.ErrorText(m.Err)
			}
		}
		l.writer.SaveResults("the counts of a run worker", []engine.RunResult{row}, end.send)
	}
}

// onFigures takes the figures in, and ends the run if nothing follows them.
func (l *runLoop) onFigures(ctx context.Context, o *finalize.Result) {
	if o.Summary == nil {
		return // the process ends; the next one finishes the run
	}
	for _, text := range o.Problems {
		l.writeLog(engine.LogError, nil, "%s", text)
	}
	l.finisher.markStored(o.Stored)
	l.summary.Store(o.Summary)
	rate := "the rate is not known"
	if qps := o.Summary.QPS; qps != nil {
		rate = fmt.Sprintf("%.0f per second", *qps)
	}
	verdict := fmt.Sprintf("The figures are there: %d operations, %s, %s", o.Summary.Operations, rate, o.Summary.Validity)
	l.writeLog(engine.LogInfo, nil, "%s", verdict)
	l.writer.SaveTick(l.logOnlyTick())
	l.endRules() // before the last step: nobody looks at a run again that has taken it
	l.apply(ctx, lifecycle.FiguresReady{Enrich: l.plan != nil && l.svc.enrichments.HasHistory(l.plan.Plan)})
}

// onEnriched tells the log how the enrichment ended, and ends the run.
func (l *runLoop) onEnriched(ctx context.Context) {
	l.WritePluginLines(l.plugins.Take())
	e := l.finisher.enriching.State()
	level := engine.LogInfo
	if e.Status == engine.EnrichmentFailed {
		level = engine.LogWarning
	}
	l.writeLog(level, nil, "The enrichment is %s. %s", e.Status, e.Reason)
	l.writer.SaveTick(l.logOnlyTick())
	l.apply(ctx, lifecycle.EnrichmentDone{})
}
