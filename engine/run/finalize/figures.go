package finalize

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/scaling"
)

// totals adds up what the run workers counted; known is false when one of them did not tell.
func (e Evidence) totals() (sum engine.Totals, known bool) {
	known = true
	for _, c := range e.Workers {
		if c.Totals == nil {
			known = false
			continue
		}
		sum.Add(*c.Totals)
	}
	return sum, known
}

// figures reads the record once, as a whole and by run worker, and accounts for it.
// Where a part of it is lost it is read again: rates are then taken over what is left.
func (s *Service) figures(ctx context.Context, e Evidence) (*engine.Figures, []*engine.Figures, error) {
	w := e.window()
	ids := make([]string, len(e.Workers))
	for i, c := range e.Workers {
		ids[i] = c.ID
	}
	parent, workers, err := s.opts.Results.FiguresByWorker(ctx, e.Run.RunID, ids, w)
	if err != nil {
		return nil, nil, fmt.Errorf("computing the figures: %w", err)
	}
	if cut := endOfLoad(w, e.Run.StopReason, parent.LastEnded.Time); !cut.Equal(w.To) {
		w.To = cut
		if parent, workers, err = s.opts.Results.FiguresByWorker(ctx, e.Run.RunID, ids, w); err != nil {
			return nil, nil, fmt.Errorf("computing the figures: %w", err)
		}
	}
	var missing []string
	for i, c := range e.Workers {
		var t engine.Totals
		if c.Totals != nil {
			t = *c.Totals
		}
		if c.Totals == nil || workers[i].Accounting.Recorded < t.Started {
			missing = append(missing, c.ID)
			partial := w
			partial.Partial = true
			if workers[i], err = s.opts.Results.FiguresIn(ctx, e.Run.RunID, c.ID, partial); err != nil {
				return nil, nil, fmt.Errorf("computing the figures of %s: %w", c.ID, err)
			}
		}
		account(workers[i], t, c.Totals != nil)
	}
	switch {
	case len(missing) == 0:
	case len(workers) == 1:
		same := *workers[0]
		parent = &same
	default:
		w.Partial, w.Workers = true, missing
		if parent, err = s.opts.Results.FiguresIn(ctx, e.Run.RunID, "", w); err != nil {
			return nil, nil, fmt.Errorf("computing the figures: %w", err)
		}
	}
	totals, known := e.totals()
	account(parent, totals, known)
	return parent, workers, nil
}

// loadEndMargin is how long a load may be without an end before it is over: nobody measures to the instant.
const loadEndMargin = 2 * time.Second

// endOfLoad is the end of a measurement whose run workers are lost, or left because they had lost their servers: their
// load ended then, and not when a server came to look. last is when the last execution ended, by the record.
func endOfLoad(w engine.Window, reason engine.StopReason, last time.Time) time.Time {
	if reason != engine.StopWorkerFailure || w.To.IsZero() || !last.After(w.From) || w.To.Sub(last) <= loadEndMargin {
		return w.To
	}
	return last
}

// window is when the run was measured; without an end where only its executions can tell.
func (e Evidence) window() engine.Window {
	r := e.Run
	if r.WarmupEndTime.IsZero() || r.MeasurementEndTime.IsZero() {
		return engine.Window{}
	}
	// The time counts from when the run workers were told, which the store remembers a little early.
	w := engine.Window{From: e.MeasureAt, To: r.MeasurementEndTime.Time,
		Connections: r.Scenario.Workload.ConcurrentConnections, LostEnd: r.StopReason == engine.StopWorkerFailure}
	switch load := r.Scenario.Workload; {
	case len(load.Stages) > 0:
		w.Connections, w.Varies = load.MaxConnectionsBetween(0, load.Duration()), true
	case load.IsSearch():
		w.Connections, w.Varies = e.maxConnections(), true
	}
	length := measured(r)
	switch {
	case r.Scenario.Workload.IsSearch() || r.StopReason != engine.StopDurationElapsed:
		if w.From.IsZero() {
			w.From = r.WarmupEndTime.Time
		}
	case length == 0:
		return engine.Window{From: e.MeasureAt}
	case w.From.IsZero():
		w.From = w.To.Add(-length)
	default:
		w.To = w.From.Add(length)
	}
	if most, changed := scaling.MaxConnections(r.Scenario.Workload, e.changes, w.From, w.To); len(e.changes) > 0 {
		w.Connections, w.Varies = most, changed
	}
	return w
}

// maxConnections is how many connections a search has had at most, 0 for unknown.
func (e Evidence) maxConnections() (most int) {
	if e.Search == nil {
		return 0
	}
	for _, s := range e.Search.History {
		most = max(most, s.TotalTargetConnections)
	}
	return most
}

// measured is how long the run was measured, 0 when only its executions can tell:
// when there was no measurement, or the workload ended by itself, which is noticed later.
func measured(r engine.Run) time.Duration {
	if r.WarmupEndTime.IsZero() || r.MeasurementEndTime.IsZero() {
		return 0
	}
	took := r.MeasurementEndTime.Sub(r.WarmupEndTime.Time)
	if r.StopReason != engine.StopDurationElapsed {
		return took
	}
	planned := r.Scenario.Workload.Duration()
	if took < planned-5*time.Millisecond { // stored times are rounded
		return 0
	}
	return planned
}
