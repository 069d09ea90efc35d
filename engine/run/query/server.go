package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/run/observe"
)

// ServerView is what the server of a run's target did, and what made operations slow: as it is seen now, or from what
// was kept.
func (r *Reader) ServerView(ctx context.Context, runID string) (engine.ServerView, error) {
	if r.opts.Servers != nil {
		if v, ok := r.opts.Servers.ServerView(runID); ok {
			return v, nil
		}
	}
	run, err := r.Run(ctx, runID)
	if err != nil {
		return engine.ServerView{}, err
	}
	from, able := r.opts.Results.(observe.Source)
	if !able || run.StartTime.IsZero() {
		return observe.NotObserved("The run has not begun."), nil
	}
	rows, err := r.opts.Store.Overviews(ctx, runID)
	if err != nil {
		return engine.ServerView{}, StoreError(fmt.Errorf("reading the run: %w", err))
	}
	var figures *engine.Figures
	var environment *engine.Environment
	for _, row := range rows {
		if row.ResultID == runID {
			figures, environment = row.Figures, row.Environment
		}
	}
	v, err := observe.Read(ctx, from, runID, observe.MeasuredOf(run, figures, environment))
	if err == nil && run.Status.Terminal() {
		v = concluded(v, run, figures)
	}
	return v, err
}

// concluded is the view of a run that ended with what its summary says: its record may be away since, in parts or
// all of it. Without executions nothing of the client's time can be computed.
func concluded(v engine.ServerView, run engine.Run, figures *engine.Figures) engine.ServerView {
	stored := figures != nil && (figures.Findings != nil || figures.ServerTime != nil)
	deleted := executions.DeletedNotice(run)
	if !stored && deleted == "" {
		return v
	}
	v.Observed = v.Observed || stored
	v.Time, v.Findings = nil, []engine.Finding{}
	if stored {
		v.Time, v.Findings = figures.ServerTime, append(v.Findings, figures.Findings...)
	}
	if deleted == "" {
		return v
	}
	v.Reason = deleted
	if !stored {
		v.Reason += " Findings were not stored, and cannot be computed without them."
	}
	v.Seconds = slices.Clone(v.Seconds)
	for i := range v.Seconds {
		v.Seconds[i].InFlight, v.Seconds[i].Slow = nil, false
	}
	return v
}
