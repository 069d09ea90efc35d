package query

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/live"
	"github.com/loadstone-db/loadstone/engine/store"
)

// maxLookback of a run are looked through for its last second.
const maxLookback = 10

// RemoteState reads a run that another server carries, as a page shows it: its newest stored
// second stands for what is live. p is nil while there is nothing new to show; last says
// that nothing follows, and over that this process shows the run itself.
func (r *Reader) RemoteState(runID string) func(ctx context.Context) (p *engine.LiveState, last, over bool) {
	return func(ctx context.Context) (p *engine.LiveState, last, over bool) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if _, _, here := r.live(runID); here {
			return nil, false, true
		}
		if run, err := r.Run(ctx, runID); err != nil || run.Status == engine.StatusPrepared {
			return nil, false, engine.HasCode(err, engine.CodeNotFound)
		}
		d, err := r.Detail(ctx, runID)
		if err != nil || d.Live != nil {
			return nil, false, false // asked again
		}
		now := time.Now()
		p = live.FinishedState(&d, now)
		if d.Status.Live() {
			since := max(now.Sub(d.StartTime.Time).Seconds()-maxLookback, 0)
			points, _, err := r.opts.Store.Series(ctx, runID, store.Window{From: since})
			if n := len(points); err == nil && n > 0 {
				live.ApplyPoint(p, points[n-1])
			}
		}
		return p, d.Status.Terminal() && d.Phase == engine.PhaseNone, false
	}
}

// pollInterval is how often it is looked whether a run that waits has been started.
const pollInterval = 500 * time.Millisecond

// AwaitStart returns when a run that waits for room has been started by this process, has its
// figures from another, or will have none.
func (r *Reader) AwaitStart(ctx context.Context, runID string) error {
	here := func() bool { _, _, live := r.live(runID); return live }
	if here() {
		return nil
	}
	run, err := r.Run(ctx, runID)
	if err != nil || run.Waiting == nil {
		return nil // who asks for the figures says so
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		d, err := r.Detail(ctx, runID)
		over := err == nil && (d.Summary != nil || d.Status.Terminal() && d.Phase == engine.PhaseNone)
		if here() || over || engine.HasCode(err, engine.CodeNotFound) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// NotStartedReason says of a run that has ended before it was started why it has no figures.
func NotStartedReason(r engine.Run) *engine.Error {
	e := &engine.Error{Code: engine.CodeUnavailable,
		Message: "The run was ended before it was started, and has no figures."}
	if r.CancellationReason != nil && *r.CancellationReason != "" {
		e.Message = "The run was ended before it was started: " + strings.TrimSuffix(*r.CancellationReason, ".") + "."
	}
	return e
}

// FinishedSummary is the summary of a run that is over. One that has none says why.
func (r *Reader) FinishedSummary(ctx context.Context, runID string) (*engine.Summary, error) {
	d, err := r.Detail(ctx, runID)
	if err != nil {
		return nil, err
	}
	if d.Summary == nil {
		if d.Status == engine.StatusPrepared {
			return nil, &engine.Error{Code: engine.CodeConflict, Message: "The run has not been started."}
		}
		if d.StartTime.IsZero() {
			return nil, NotStartedReason(d.Run)
		}
		return nil, &engine.Error{Code: engine.CodeUnavailable,
			Message: fmt.Sprintf("The run is %s and has no figures.", d.Status)}
	}
	return d.Summary, nil
}
