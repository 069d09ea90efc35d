package query

import (
	"context"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
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
	return observe.Read(ctx, from, runID, observe.MeasuredOf(run, figures, environment))
}
