package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// finisher does what follows the end of a run: figures, enrichment.
type finisher struct {
	*live
	// shown are the percentiles of the measurement so far.
	shown finalize.Shown
	// parts are finished ones that nodes hold, by work id; storing are those that are being stored for the figures.
	// Who announces one of these again is among parts too: it has not heard that it is stored.
	parts   map[string]nodes.Part
	storing []nodes.Part
	beside  finalize.Beside
	// ends tell nodes that the ends of their run workers are known.
	ends    []func()
	results chan *finalize.Outcome
	// enriching is nil before the figures are there, and where there is no history.
	enriching *enrichment.Under
}

// saveStart stores the plan, the environment and a row for each run worker.
func (l *finisher) saveStart() *writer.Write {
	env := l.finisher.environment()
	parent := engine.RunResult{ResultID: l.runID, RunID: l.runID, RunName: l.run.RunName, Status: engine.StatusRunning,
		StartTime: l.run.StartTime, Plan: l.plan.Plan, Environment: &env}
	rows := []engine.RunResult{parent}
	for _, w := range l.Workers {
		rows = append(rows, l.finisher.row(w))
	}
	return l.keeper.SaveResults("the plan", rows, nil)
}

func (l *finisher) environment() engine.Environment {
	e := host.Environment(l.svc.opts.Version)
	if read := l.svc.opts.Calibration; read != nil {
		e.Calibration = read()
	}
	e.Nodes = len(l.Nodes())
	if l.plan != nil {
		e.Driver, e.ServerVersion, e.TargetIsLocal = l.plan.Plan.Driver, l.plan.Server.Version, l.plan.Server.Local
		e.TargetMaxConnections = l.plan.Server.MaxConnections
		e.Simulated, e.Emulated = l.plan.Server.Simulated, l.plan.Server.Emulated
	}
	for _, w := range l.Workers {
		if w.State.IOEngine != "" {
			e.IOEngine = w.State.IOEngine
		}
	}
	return e
}

// begin computes the results beside the loop.
func (l *finisher) begin(ctx context.Context) {
	l.poller.stop()
	l.endLosses(l.clock.Now(), true)
	environment := l.finisher.environment()
	if l.run.Scenario.Workload.IOEngine == engine.IOEvents && environment.IOEngine == string(engine.IOGoroutines) {
		l.validity.Note("workload.io_engine asks for event loops, but goroutines drove the connections: event loops need " +
			"Linux and connections without TLS.")
	}
	l.validity.Note(finalize.EndedEarly(l.run))
	l.validity.Note(l.line.Words())
	e := finalize.Evidence{Run: l.run, Keeper: l.keeper, Environment: environment, Validity: l.validity.Clone(),
		Shown: l.finisher.shown, MeasureAt: l.life.MeasureAt()}
	if l.plan != nil {
		e.Plan = l.plan.Plan
	}
	if s := l.life.Search(); s != nil {
		e.Search = s.Series().Result()
		l.search.save(nil)
	}
	if l.life.Placed() {
		for _, w := range l.Workers {
			c := finalize.Worker{ID: w.ID, ResultID: w.ResultID, Group: w.Group, Totals: w.State.Totals, Failure: w.Why,
				Beginning: w.State.Beginning()}
			if w.State.Err != nil {
				c.Failure = w.State.Err.Message
			}
			e.Workers = append(e.Workers, c)
		}
	}
	e.Parts = l.finisher.beside.End(l.finisher.parts)
	l.finisher.storing = e.Parts
	for _, p := range e.Parts {
		delete(l.finisher.parts, p.WorkID)
	}
	l.finisher.saveCounts(e)
	l.svc.routines.Go(func() { l.finisher.results <- l.svc.outcomes.Process(ctx, e) }) // room: begin runs once
}

// saveCounts stores what the workers counted, so that a restart while figures
// are computed does not lose it.
func (l *finisher) saveCounts(e finalize.Evidence) {
	ends := l.finisher.ends
	var rows []engine.RunResult
	for _, c := range e.Workers {
		if c.Totals != nil {
			rows = append(rows, c.Counted(e.Run))
		}
	}
	l.keeper.SaveResults("the counts", rows, func() {
		for _, acknowledge := range ends {
			acknowledge()
		}
	})
}

// keepEnd stores what a run worker has counted, and tells its node that the end is known:
// until then the node says it again, also to a server that takes the run over. Of a run
// that ends that is done for all together.
func (l *finisher) keepEnd(w *Worker, from nodes.Node, m protocol.WorkerState) {
	acknowledge := func() {
		_ = from.Send(protocol.WorkerAck{RunID: m.RunID, WorkerID: m.WorkerID, ResultID: m.ResultID})
	}
	switch {
	case m.Totals == nil || l.life.Status().Terminal():
		acknowledge() // there is nothing, or it is stored with the figures
	case l.life.Stopping():
		l.finisher.ends = append(l.finisher.ends, acknowledge)
	default:
		row := finalize.Worker{ID: w.ID, ResultID: w.ResultID, Group: w.Group, Totals: m.Totals,
			Beginning: m.Beginning()}.Counted(l.run)
		l.keeper.SaveResults("the counts of a run worker", []engine.RunResult{row}, acknowledge)
	}
}

func (l *finisher) take(ctx context.Context, o *finalize.Outcome) {
	if o.Summary == nil {
		return // the process ends; the next one finishes the run
	}
	for _, text := range o.Problems {
		l.note(engine.LogError, nil, "%s", text)
	}
	l.finisher.storing = slices.DeleteFunc(l.finisher.storing, func(p nodes.Part) bool {
		return slices.Contains(o.Stored, p.WorkID)
	})
	l.summary.Store(o.Summary)
	verdict := fmt.Sprintf("The figures are there: %d operations, %.0f per second, %s", o.Summary.Operations,
		o.Summary.QPS, o.Summary.Validity)
	l.note(engine.LogInfo, nil, "%s", verdict)
	l.keeper.SaveTick(l.lines())
	l.endRules() // before the last step: nobody looks at a run again that has taken it
	l.happen(ctx, lifecycle.Finished{Enrich: l.plan != nil && l.svc.enrichments.Keeps(l.plan.Plan)})
}

// enriched tells the log how the enrichment ended, and ends the run.
func (l *finisher) enriched(ctx context.Context) {
	l.Said(l.plugins.Take())
	e := l.finisher.enriching.State()
	level := engine.LogInfo
	if e.Status == engine.EnrichmentFailed {
		level = engine.LogWarning
	}
	l.note(level, nil, "The enrichment is %s. %s", e.Status, e.Reason)
	l.keeper.SaveTick(l.lines())
	l.happen(ctx, lifecycle.Enriched{})
}
