package recovery

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
)

// orphanedRun is a run that was found without its owner.
type orphanedRun struct {
	finalize.Evidence
	// result is its row of the results as the earlier process left it.
	result engine.RunResult
}

// loadResult reads what the earlier process had stored of the run's results.
func (s *Service) loadResult(ctx context.Context, e *orphanedRun) error {
	rows, err := s.opts.Store.Results(ctx, e.Run.RunID)
	if err != nil {
		return err
	}
	e.Environment = host.Environment(s.opts.Version)
	if e.Run.Scenario.Workload.IsSearch() {
		state, err := s.opts.Store.FindMax(ctx, e.Run.RunID)
		if err != nil {
			return err
		}
		e.Search = lifecycle.RecoverResult(e.Run.Scenario, state)
	}
	for _, r := range rows {
		if r.ResultID == e.Run.RunID {
			e.takeResult(r)
		} else {
			e.Workers = append(e.Workers, storedWorker(r))
		}
	}
	for i := range e.Workers {
		c := &e.Workers[i]
		if c.Totals == nil {
			c.Totals = s.countedTotals(e.Run.RunID, c.ID)
		}
		for _, p := range e.Parts {
			if c.Totals == nil && p.Artifact.ResultID == c.ResultID {
				c.Totals = p.Totals
			}
		}
	}
	return nil
}

// takeResult takes the run's own row of the results: its notes of the load, and the causes that are not found again.
func (e *orphanedRun) takeResult(r engine.RunResult) {
	e.Plan, e.result = r.Plan, r
	if r.FindMax != nil {
		e.Search = r.FindMax
	}
	if r.Environment != nil {
		e.Environment = *r.Environment
	}
	if r.Figures != nil {
		e.MeasureAt = r.Figures.MeasuredFrom.Time
	}
	if r.Validity == nil {
		return
	}
	for _, n := range r.Validity.ReadNotes() {
		if n.Live {
			e.Validity.AddNote(n)
		}
	}
	for _, c := range r.Validity.Causes {
		if !isRecomputed(c) {
			e.Validity.Add(c.Cause, c.ReadAbout(), c.From.Time, c.To.Time)
		}
	}
}

// storedWorker is a run worker as its row of the results has it.
func storedWorker(r engine.RunResult) finalize.Worker {
	c := finalize.Worker{ID: r.WorkerID, ResultID: r.ResultID, Left: r.Status.Terminal()}
	if r.WorkerGroupID != nil {
		c.Group = *r.WorkerGroupID
	}
	if r.Figures != nil {
		c.LoadStart = r.Figures.LoadStart
		c.Totals = &engine.Totals{Accounting: r.Figures.Accounting, KeysReplaced: r.Figures.KeysReplaced}
		if held := r.Figures.Connections; held != nil {
			c.Totals.Connections = *held
		}
	}
	return c
}

// isRecomputed reports whether processing finds a stored cause again, if it still holds.
func isRecomputed(c engine.ValidityCause) bool {
	switch c.Cause {
	case engine.CauseErrors, engine.CauseNothingMeasured, engine.CauseKindFailed:
		return true
	case engine.CauseIncompleteRecord:
		return c.ReadAbout().Code != engine.AboutServerDown
	}
	return false
}
