package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/results/executions"
)

// Seconds returns a run's measurement second by second, for comparisons. It
// reads every execution.
func (r *Reader) Seconds(ctx context.Context, runID string) ([]engine.MeasuredSecond, error) {
	run, err := r.Run(ctx, runID)
	if err != nil {
		return nil, err
	}
	if !run.Status.Terminal() {
		return nil, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("Run %s is %s; its executions are complete when it has ended.", runID, run.Status),
			Hint:    "wait for its end"}
	}
	if err := executions.CheckDeleted(run); err != nil {
		return nil, err
	}
	w, err := r.window(ctx, runID)
	if err != nil {
		return nil, err
	}
	seconds, err := r.opts.Results.SecondsIn(ctx, runID, w)
	if err != nil {
		return nil, fmt.Errorf("reading the executions of run %s: %w", runID, err)
	}
	return seconds, nil
}

// window is the window that a run's figures were taken over.
func (r *Reader) window(ctx context.Context, runID string) (w engine.Window, err error) {
	rows, err := r.opts.Store.Results(ctx, runID)
	if err != nil {
		return w, fmt.Errorf("reading the results of run %s: %w", runID, err)
	}
	for _, row := range rows {
		if f := row.Figures; row.ResultID == runID && f != nil {
			w.From, w.To = f.MeasuredFrom.Time, f.MeasuredTo.Time
		}
	}
	return w, nil
}

// Compare compares the runs of side b with those of side a.
func (r *Reader) Compare(ctx context.Context, a, b []string, o compare.Options) (compare.Comparison, error) {
	var sides [2][]compare.MeasuredRun
	for side, ids := range [2][]string{a, b} {
		if len(ids) == 0 {
			return compare.Comparison{},
				engine.InvalidField([]string{"a", "b"}[side], "names no run", "give one run id, or several with commas between")
		}
		for _, id := range ids {
			seconds, err := r.Seconds(ctx, id)
			if err != nil {
				return compare.Comparison{}, err
			}
			detail, err := r.Detail(ctx, id)
			if err != nil {
				return compare.Comparison{}, err
			}
			thin, err := compare.Run(seconds).Downsample(compare.MaxSeconds / (len(a) + len(b)))
			if err != nil {
				return compare.Comparison{}, fmt.Errorf("comparing run %s: %w", id, err)
			}
			m := compare.MeasuredRun{Seconds: thin}
			if detail.Summary != nil {
				m.Summary = *detail.Summary
			}
			m.Summary.RunID = id
			sides[side] = append(sides[side], m)
		}
	}
	c, err := compare.Between(sides[0], sides[1], o)
	if err != nil {
		return c, err
	}
	for _, id := range append(slices.Clone(a), b...) {
		note, err := r.changedNote(ctx, id)
		if err != nil {
			return c, err
		}
		if note != "" && !slices.Contains(c.Notes, note) {
			c.Notes = append(c.Notes, note)
		}
	}
	return c, nil
}

// changedNote says that the load of a run was changed while it went on, empty when it was not.
func (r *Reader) changedNote(ctx context.Context, runID string) (string, error) {
	events, err := r.opts.Store.Events(ctx, runID, 0, engine.EventLoadChanged)
	if err != nil {
		return "", StoreError(fmt.Errorf("reading the events of run %s: %w", runID, err))
	}
	n := len(events)
	if n == 0 {
		return "", nil
	}
	times := "once"
	if n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	return fmt.Sprintf("The load of run %s was changed while it ran, %s: its figures are of several loads.", runID,
		times), nil
}
