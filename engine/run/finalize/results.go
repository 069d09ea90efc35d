package finalize

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/threshold"
)

func (s *Service) parentResult(e Evidence, f *engine.Figures) engine.RunResult {
	verdict := e.Validity.Verdict()
	judged := threshold.Evaluate(e.Run.Scenario.Thresholds, f, e.Search)
	if e.Search == nil {
		judged = append(judged, threshold.Implied(e.Run.Scenario.Thresholds, f)...)
	}
	if e.Run.Status != engine.StatusCompleted {
		covered, planned := f.DurationSeconds, e.Run.Scenario.Workload.Duration().Seconds()
		if f.RecordPartial {
			covered = 0
			if f.CoveredSeconds != nil {
				covered = *f.CoveredSeconds
			}
		}
		if e.Run.Scenario.Workload.IsSearch() {
			planned = 0
		}
		threshold.AddCoverage(judged, covered, planned)
	}
	passed := threshold.Passed(judged) && e.Run.Status == engine.StatusCompleted && f.HasSuccess()
	r := engine.RunResult{ResultID: e.Run.RunID, RunID: e.Run.RunID, RunName: e.Run.RunName, Status: e.Run.Status,
		StartTime: e.Run.StartTime, EndTime: e.Run.EndTime,
		Figures: f, FindMax: e.Search, Validity: &verdict, Thresholds: judged, Passed: &passed, Plan: e.Plan,
		Environment: &e.Environment}
	r.Enrichment = s.opts.Enrichments.Skipped(e.Plan)
	if e.Run.Status != engine.StatusCompleted && e.Run.CancellationReason != nil {
		r.FailureReason = *e.Run.CancellationReason
	}
	return r
}

// saveResults writes the workers first: a parent with figures means that all is there.
func (s *Service) saveResults(ctx context.Context, e Evidence, parent engine.RunResult,
	workers []*engine.Figures) error {
	var rows []engine.RunResult
	for i, c := range e.Workers {
		group := c.Group
		if workers[i] != nil {
			workers[i].LoadStart = c.LoadStart
		}
		status, end := e.Run.Status, e.Run.EndTime
		switch {
		case c.Left:
			status, end = "", engine.Time{}
		case c.Failure != "":
			status = engine.StatusFailed
		}
		rows = append(rows, engine.RunResult{ResultID: c.ResultID, RunID: e.Run.RunID, WorkerID: c.ID,
			WorkerGroupID: &group, RunName: e.Run.RunName, Status: status,
			EndTime: end, Figures: workers[i], FailureReason: c.Failure})
	}
	rows = append(rows, parent)
	j := e.Writer.SaveResults("the results", rows, nil)
	select {
	case <-j.Done():
		return j.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CountedResult is a run worker's row of the results with what it has counted, which is known.
func (w Worker) CountedResult(run engine.Run) engine.RunResult {
	f := &engine.Figures{CountsOnly: true}
	f.Accounting, f.LoadStart = w.Totals.Accounting, w.LoadStart
	f.Operations = f.Accounting.Started - f.Accounting.Warmup
	f.Connections, f.KeysReplaced = &w.Totals.Connections, w.Totals.KeysReplaced
	r := engine.RunResult{ResultID: w.ResultID, RunID: run.RunID, WorkerID: w.ID, WorkerGroupID: &w.Group,
		RunName: run.RunName, Status: run.Status, Figures: f}
	if w.Left {
		r.Status = ""
	}
	return r
}

// Summarize is the result of a run as users read it.
func Summarize(run engine.Run, parent engine.RunResult) *engine.Summary {
	if parent.Figures == nil {
		return nil
	}
	s := &engine.Summary{RunID: run.RunID, RunName: run.RunName, Status: run.Status,
		CancellationReason: run.CancellationReason,
		StartTime:          run.StartTime, EndTime: run.EndTime, Figures: *parent.Figures, FindMax: parent.FindMax,
		Thresholds: parent.Thresholds, Tags: run.Scenario.Tags, Setup: engine.SetupOf(run.Scenario, parent.Plan),
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
