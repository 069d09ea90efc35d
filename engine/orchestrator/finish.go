package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/aggregate"
	"github.com/loadstone-db/loadstone/engine/fleet"
	"github.com/loadstone-db/loadstone/engine/keeper"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/threshold"
)

// child is a run worker as its results are computed.
type child struct {
	workerID string
	testID   string
	group    int
	failure  string
	// totals are nil when the worker's process ended without telling them.
	totals *engine.Totals
}

// ending is everything that the results of a run are computed from.
type ending struct {
	run         engine.Run
	keeper      *keeper.Keeper
	plan        *engine.Plan
	environment engine.Environment
	children    []child
	parts       []fleet.Part
	validity    *aggregate.Validity
	search      *engine.FindMaxResult // nil without a search
	// measureAt is when the run workers were told to measure; zero when only the store remembers.
	measureAt time.Time
	// lost is the interval of which no record exists, when the process was killed.
	lostFrom, lostTo time.Time
	// shown are the percentiles of the measurement as they were shown last.
	shown shownLatency
	// elsewhere: another server carried the run, in whose data directory its record lies.
	elsewhere bool
	// known is the parent's row as an earlier process left it.
	known engine.TestResult
}

const recordElsewhere = "The record of the run lies in the data directory of the server that carried it. It is " +
	"taken in, and the figures are computed again, when that server is started there."

const serverWasDown = "The server was down: executions after the last complete part are not recorded"

// outcome is what processing gave.
type outcome struct {
	summary *engine.Summary
	// problems are sentences for the run's log.
	problems []string
	// stored are the work ids of the parts that are safe.
	stored []string
}

// saveStart stores the plan, the environment and a row for each run worker.
func (l *live) saveStart() {
	env := l.environment()
	parent := engine.TestResult{TestID: l.runID, RunID: l.runID, TestName: l.run.TestName, Status: engine.StatusRunning,
		StartTime: l.run.StartTime, Plan: l.plan.Plan, Environment: &env}
	rows := []engine.TestResult{parent}
	for _, w := range l.workers {
		rows = append(rows, l.row(w))
	}
	l.keeper.Add("the plan", func(ctx context.Context) error {
		for _, r := range rows {
			if err := l.svc.opts.Store.SaveResult(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *live) environment() engine.Environment {
	e := environment(l.svc.opts.Version)
	if read := l.svc.opts.Calibration; read != nil {
		e.Calibration = read()
	}
	e.Nodes = len(l.nodes())
	if l.plan != nil {
		e.Driver, e.ServerVersion, e.TargetIsLocal = l.plan.Plan.Driver, l.plan.Server.Version, l.plan.Server.Local
		e.Simulated, e.Emulated = l.plan.Server.Simulated, l.plan.Server.Emulated
	}
	for _, w := range l.workers {
		if w.state.IOEngine != "" {
			e.IOEngine = w.state.IOEngine
		}
	}
	return e
}

// finish computes the results beside the loop.
func (l *live) finish(ctx context.Context) {
	l.stopPolling()
	l.endLosses(l.clock.Now(), true)
	environment := l.environment()
	if l.run.Scenario.Workload.IOEngine == engine.IOEvents && environment.IOEngine == string(engine.IOGoroutines) {
		l.validity.Note("workload.io_engine asks for event loops, but goroutines drove the connections: event loops need " +
			"Linux and connections without TLS.")
	}
	if text := endedEarly(l.run); text != "" {
		l.validity.Note(text)
	}
	e := ending{run: l.run, keeper: l.keeper, environment: environment, validity: l.validity.Clone(),
		shown: l.shownLatency, measureAt: l.life.MeasureAt()}
	if l.plan != nil {
		e.plan = l.plan.Plan
	}
	if s := l.life.Search(); s != nil {
		e.search = s.Series().Result()
		l.saveSearch(nil)
	}
	if l.life.Placed() {
		for _, w := range l.workers {
			c := child{workerID: w.id, testID: w.testID, group: w.group, totals: w.state.Totals, failure: w.why}
			if w.state.Err != nil {
				c.failure = w.state.Err.Message
			}
			e.children = append(e.children, c)
		}
	}
	for _, p := range l.parts {
		e.parts = append(e.parts, p)
	}
	l.saveCounts(e)
	l.svc.routines.Go(func() { l.finishDone <- l.svc.process(ctx, e) })
}

// saveCounts stores what the workers counted, so that a restart while figures
// are computed does not lose it.
func (l *live) saveCounts(e ending) {
	l.keeper.Add("the counts", func(ctx context.Context) error {
		for _, c := range e.children {
			if c.totals == nil {
				continue
			}
			group := c.group
			f := &engine.Figures{ByKind: map[engine.Kind]*engine.KindFigures{}}
			f.Accounting = c.totals.Accounting
			f.Connections, f.KeysReplaced = &c.totals.Connections, c.totals.KeysReplaced
			if err := l.svc.opts.Store.SaveResult(ctx,
				engine.TestResult{TestID: c.testID, RunID: e.run.RunID, WorkerID: c.workerID, WorkerGroupID: &group,
					TestName: e.run.TestName,
					Status:   e.run.Status, Figures: f}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *live) finished(ctx context.Context, o *outcome) {
	if o.summary == nil {
		return // the process ends; the next one finishes the run
	}
	for _, text := range o.problems {
		l.note(engine.LogError, nil, "%s", text)
	}
	for _, id := range o.stored {
		delete(l.parts, id)
	}
	l.summary.Store(o.summary)
	verdict := fmt.Sprintf("The figures are there: %d operations, %.0f per second, %s", o.summary.Operations,
		o.summary.QPS, o.summary.Validity)
	l.note(engine.LogInfo, nil, "%s", verdict)
	l.keeper.SaveTick(&store.Tick{RunID: l.runID, Epoch: l.epoch, Logs: l.logbook.Take(), TotalOps: l.run.TotalOps,
		ErrorCount:        l.run.ErrorCount,
		WorkersRegistered: l.run.WorkersRegistered, WorkersCompleted: l.run.WorkersCompleted})
	l.happen(ctx, lifecycle.Finished{Enrich: l.plan != nil && l.svc.enrichable(l.plan.Plan)})
}

// enriched tells the log how the enrichment ended, and ends the run.
func (l *live) enriched(ctx context.Context) {
	l.noteSaid()
	e := l.enriching.State()
	level := engine.LogInfo
	if e.Status == engine.EnrichmentFailed {
		level = engine.LogWarning
	}
	l.note(level, nil, "The enrichment is %s. %s", e.Status, e.Reason)
	l.keeper.SaveTick(&store.Tick{RunID: l.runID, Epoch: l.epoch, Logs: l.logbook.Take(), TotalOps: l.run.TotalOps,
		ErrorCount:        l.run.ErrorCount,
		WorkersRegistered: l.run.WorkersRegistered, WorkersCompleted: l.run.WorkersCompleted})
	l.happen(ctx, lifecycle.Enriched{})
}

// process stores the parts, computes the exact figures and saves the results.
// It returns an outcome without summary only when ctx ends before.
func (s *Service) process(ctx context.Context, e ending) *outcome {
	o := &outcome{}
	v := e.validity
	incomplete := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		o.problems = append(o.problems, text)
		from, to := e.run.WarmupEndTime.Time, e.run.EndTime.Time
		if from.IsZero() {
			from = e.run.StartTime.Time
		}
		v.Add(aggregate.CauseIncompleteRecord, text, from, to)
	}
	for _, p := range e.parts {
		if err := s.keepPart(ctx, e.keeper, p); err != nil {
			if ctx.Err() != nil {
				return o
			}
			s.opts.Log.Error().Err(err).Str("run_id", e.run.RunID).Str("part", p.Artifact.Name).
				Msg("a part of the record cannot be stored")
			incomplete("The part %s of the record could not be stored: %s", p.Artifact.Name, engine.AsError(err).Message)
			continue
		}
		o.stored = append(o.stored, p.WorkID)
	}
	totals, known := e.totals()
	parent, children, err := s.figures(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			return o
		}
		s.opts.Log.Error().Err(err).Str("run_id", e.run.RunID).Msg("the figures cannot be computed")
		incomplete("The figures could not be computed: %s", engine.AsError(err).Message)
		none := 0.0
		parent = &engine.Figures{ByKind: map[engine.Kind]*engine.KindFigures{}, CoveredSeconds: &none}
		children = make([]*engine.Figures, len(e.children))
		account(parent, totals, known)
	}
	parent.LivePercentiles = e.shown.against(parent)
	if rate := e.run.Scenario.Workload.MeanRate(); rate > 0 && parent.Operations > 0 {
		parent.TargetQPS = &rate
	}
	if !parent.Accounting.Balanced {
		incomplete("The accounting does not add up: %s", strings.Join(parent.Accounting.Problems, "; "))
	}
	if e.elsewhere {
		v.Remark(recordElsewhere)
	}
	if !e.lostTo.IsZero() {
		v.Add(aggregate.CauseIncompleteRecord, serverWasDown, e.lostFrom, e.lostTo)
	}
	end := e.run.MeasurementEndTime.Time
	if end.IsZero() {
		end = e.run.EndTime.Time
	}
	scheduled, dropped := parent.Accounting.Measured()
	v.Outcome(aggregate.Outcome{From: e.run.WarmupEndTime.Time, To: end, Operations: parent.Operations,
		Errors:    parent.Errors.Count,
		Scheduled: scheduled, Dropped: dropped, Over: true, Search: e.run.Scenario.Workload.Searches()})
	s.judgeFallback(ctx, e, parent)
	remark(v, parent)
	if e.search == nil {
		doubt(v, parent, e.run.WarmupEndTime.Time, end)
	}
	if e.run.WarmupEndTime.IsZero() {
		v.Unmeasured()
	}
	if err := s.saveResults(ctx, e, parent, children); err != nil {
		if ctx.Err() != nil {
			return o
		}
		o.problems = append(o.problems, "The results could not be stored: "+engine.AsError(err).Message)
	}
	o.summary = summarize(e.run, s.parentResult(e, parent))
	return o
}

// keepPart fetches, verifies, stores and indexes one part, then acknowledges it.
func (s *Service) keepPart(ctx context.Context, k *keeper.Keeper, p fleet.Part) error {
	path, ok := strings.CutPrefix(p.ArtifactURL, "file://")
	if !ok {
		return fmt.Errorf("fetching %s: the address %s is not supported", p.Artifact.Name, p.ArtifactURL)
	}
	// Put takes the file away. The node keeps its own until the part is indexed too:
	// after a kill in between it is announced again. A node sweeps this name.
	given := path + ".tmp"
	if err := os.Link(path, given); err != nil && !errors.Is(err, os.ErrExist) {
		given = path
	}
	if err := s.opts.Results.Put(ctx, p.Artifact, given); err != nil {
		if given != path {
			_ = os.Remove(given)
		}
		return fmt.Errorf("storing %s: %w", p.Artifact.Name, err)
	}
	j := k.Add("a part of the record",
		func(ctx context.Context) error { return s.opts.Store.SaveArtifact(ctx, p.Artifact) })
	select {
	case <-j.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	if j.Err() != nil {
		return j.Err()
	}
	p.Acknowledge()
	return nil
}

// account completes the identity with what the workers counted and checks it.
func account(f *engine.Figures, t engine.Totals, known bool) {
	a := &f.Accounting
	counted := t.Accounting
	counted.Recorded, counted.Warmup, counted.Statements = a.Recorded, a.Warmup, a.Statements
	*a = counted
	if known {
		held := t.Connections
		f.Connections, f.KeysReplaced = &held, t.KeysReplaced
	}
	a.Check()
	if !known {
		a.Balanced = false
		a.Problems = append(a.Problems, "a run worker ended without telling its counts")
	}
}

func (s *Service) parentResult(e ending, f *engine.Figures) engine.TestResult {
	verdict := e.validity.Verdict()
	judged := threshold.Judge(e.run.Scenario.Thresholds, f, e.search)
	if e.search == nil {
		judged = append(judged, threshold.Implied(e.run.Scenario.Thresholds, f)...)
	}
	passed := threshold.Passed(judged) && e.run.Status == engine.StatusCompleted && f.Worked()
	r := engine.TestResult{TestID: e.run.RunID, RunID: e.run.RunID, TestName: e.run.TestName, Status: e.run.Status,
		StartTime: e.run.StartTime, EndTime: e.run.EndTime,
		Figures: f, FindMax: e.search, Validity: &verdict, Thresholds: judged, Passed: &passed, Plan: e.plan,
		Environment: &e.environment}
	if !s.enrichable(e.plan) {
		skipped := s.enrichmentSkipped(e.plan)
		r.Enrichment = &skipped
	}
	if e.run.Status != engine.StatusCompleted && e.run.CancellationReason != nil {
		r.FailureReason = *e.run.CancellationReason
	}
	return r
}

// saveResults writes the children first: a parent with figures means that all is there.
func (s *Service) saveResults(ctx context.Context, e ending, parent *engine.Figures, children []*engine.Figures) error {
	var rows []engine.TestResult
	for i, c := range e.children {
		group := c.group
		status := e.run.Status
		if c.failure != "" {
			status = engine.StatusFailed
		}
		rows = append(rows, engine.TestResult{TestID: c.testID, RunID: e.run.RunID, WorkerID: c.workerID,
			WorkerGroupID: &group, TestName: e.run.TestName, Status: status,
			EndTime: e.run.EndTime, Figures: children[i], FailureReason: c.failure})
	}
	rows = append(rows, s.parentResult(e, parent))
	j := e.keeper.Add("the results", func(ctx context.Context) error {
		for _, r := range rows {
			if err := s.opts.Store.SaveResult(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
	select {
	case <-j.Done():
		return j.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// summarize is the result of a run as users read it.
func summarize(run engine.Run, parent engine.TestResult) *engine.Summary {
	if parent.Figures == nil {
		return nil
	}
	s := &engine.Summary{RunID: run.RunID, TestName: run.TestName, Status: run.Status,
		CancellationReason: run.CancellationReason,
		StartTime:          run.StartTime, EndTime: run.EndTime, Figures: *parent.Figures, FindMax: parent.FindMax,
		Thresholds: parent.Thresholds, Tags: run.Scenario.Tags,
		Validity:       engine.VerdictValid,
		ValidityDetail: engine.Validity{Verdict: engine.VerdictValid, Causes: []engine.ValidityCause{}, Notes: []string{}}}
	if parent.Validity != nil {
		s.Validity, s.ValidityDetail = parent.Validity.Verdict, *parent.Validity
	}
	if s.Thresholds == nil {
		s.Thresholds = []engine.ThresholdResult{}
	}
	if parent.Passed != nil {
		s.Passed = *parent.Passed
	}
	if parent.Plan != nil {
		s.Plugins = []engine.PluginRef{parent.Plan.Workload, parent.Plan.Adapter}
	} else {
		s.Plugins = []engine.PluginRef{}
	}
	if parent.Environment != nil {
		s.Environment, s.Simulated, s.Emulated = *parent.Environment, parent.Environment.Simulated,
			parent.Environment.Emulated
	}
	s.Verdict = s.VerdictText()
	return s
}
