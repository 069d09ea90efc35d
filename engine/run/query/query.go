// Package query reads what there is to know of a run: from the store, and from who
// carries it while it is live.
package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Store reads runs, and what belongs to them.
type Store interface {
	Pages
	// Run returns the run. The scenario's inline DSN comes back sealed and redacted.
	Run(ctx context.Context, runID string) (engine.Run, error)
	// Results returns the parent's row first, then the run workers' by group.
	Results(ctx context.Context, runID string) ([]engine.RunResult, error)
	// Overviews are the Results with little more of each run worker than a table shows:
	// its figures without parts, distributions and executions.
	Overviews(ctx context.Context, runID string) ([]engine.RunResult, error)
	// Events returns the control events after a sequence, those of the given types alone where some are given.
	Events(ctx context.Context, runID string, afterSequence int64, only ...engine.EventType) ([]engine.Event, error)
}

// Pages are parts of what belongs to a run, and summaries of it.
type Pages interface {
	// Series returns the parent's points in the window, oldest first. Where there are
	// more than Most, each point stands for the seconds of one phase in a stretch of
	// resolution seconds: rates, the median and the mean are their means, P95, P99 and
	// the maximum the highest of any of them, and the rest is that of the last one;
	// the histogram, which would be its own only, is left out. resolution is 1 otherwise.
	Series(ctx context.Context, runID string, w store.Window) (points []engine.Point, resolution float64, err error)
	// EventPage returns limit events after a sequence, in their order, and how many the run has.
	EventPage(ctx context.Context, runID string, after int64, limit int) (events []engine.Event, total int64, err error)
	// ArtifactPage returns limit artifacts whose names come after a name, in the order of names,
	// and how many the run has.
	ArtifactPage(ctx context.Context, runID, after string, limit int) (artifacts []engine.Artifact, total int64, err error)
	// WarehouseChanges returns the polls at which the warehouse was another than at the poll
	// before, whatever it had to do, and the latest: a week of polls is thousands of equal ones.
	WarehouseChanges(ctx context.Context, runID string) ([]engine.WarehousePoint, error)
}

// Options are what a reader is made of; all of them are needed.
type Options struct {
	Store       Store
	Results     record.Results
	Enrichments *enrichment.Service
	Prices      PriceList
	// Admission, Live and Servers are nil in a process that carries no runs.
	Admission Admission
	Live      LiveRuns
	Servers   ObservedServers
}

// ObservedServers are the servers of the runs that this process carries, as they are seen now.
type ObservedServers interface {
	ServerView(runID string) (v engine.ServerView, ok bool)
}

// PriceList is what costs are reckoned with, as it is now.
type PriceList interface {
	Prices() cost.Prices
}

// Admission lets runs in.
type Admission interface {
	// Waiting says what a run waits for, nil when it does not.
	Waiting(ctx context.Context, runID string) (*engine.Waiting, error)
}

// LiveRuns are the runs that this process carries.
type LiveRuns interface {
	// Current returns one as it is now, with its latest payload.
	Current(runID string) (run engine.Run, p *engine.LiveState, ok bool)
}

// Reader answers questions about runs. Its methods are safe for concurrent use. Errors
// that users may see are *engine.Error.
type Reader struct{ opts Options }

// live returns a run that this process carries.
func (r *Reader) live(runID string) (run engine.Run, p *engine.LiveState, ok bool) {
	if r.opts.Live == nil {
		return engine.Run{}, nil, false
	}
	return r.opts.Live.Current(runID)
}

// New returns a reader.
func New(o Options) *Reader { return &Reader{opts: o} }

// Run reads a run for the caller.
func (r *Reader) Run(ctx context.Context, runID string) (engine.Run, error) {
	run, err := r.opts.Store.Run(ctx, runID)
	if errors.Is(err, store.ErrNotFound) {
		return engine.Run{}, &engine.Error{Code: engine.CodeNotFound, Message: "There is no such run.",
			Hint: "it may have been deleted", Cause: err}
	}
	if err != nil {
		return engine.Run{}, StoreError(fmt.Errorf("reading the run: %w", err))
	}
	if run.Status == engine.StatusPrepared && r.opts.Admission != nil {
		if run.Waiting, err = r.opts.Admission.Waiting(ctx, runID); err != nil {
			return engine.Run{}, StoreError(err)
		}
	}
	return run, nil
}

// StoreError gives errors of the control store a sentence.
func StoreError(err error) error {
	var e *engine.Error
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.Is(err, store.ErrUnavailable):
		return &engine.Error{Code: engine.CodeUnavailable, Message: "The control store cannot be reached now.",
			Hint: "try again in a moment", Cause: err}
	case errors.Is(err, store.ErrConflict):
		return &engine.Error{Code: engine.CodeConflict, Message: "The run has changed meanwhile.", Hint: "look at it again",
			Cause: err}
	case errors.Is(err, store.ErrNotFound):
		return &engine.Error{Code: engine.CodeNotFound, Message: "There is no such run.", Cause: err}
	}
	return err
}

// Price adds what a run has cost to a summary that is fresh from its loop. Without the store
// nobody knows the warehouse's polls, and the summary stays without it.
func (r *Reader) Price(ctx context.Context, sum *engine.Summary, run engine.Run, plan *engine.Plan) error {
	polls, err := r.opts.Store.WarehouseChanges(ctx, sum.RunID)
	if err != nil {
		return fmt.Errorf("reading the polls of the warehouse: %w", err)
	}
	sum.Cost = r.Cost(polls, run, sum.Figures, plan, nil)
	return nil
}
