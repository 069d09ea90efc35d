package query

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
)

// detailPage is how many events and artifacts are shown with a run; the others are paged.
const detailPage = 200

// Detail gathers everything about a run, its parts in parallel. The run itself is
// read before them, so that its figures are never older than its status and phase. So is
// an enrichment under way: what is stored of one that ends meanwhile may be older than what it says itself.
func (r *Reader) Detail(ctx context.Context, runID string) (engine.RunDetail, error) {
	var (
		d       engine.RunDetail
		results []engine.RunResult
		polls   []engine.WarehousePoint
		errs    [5]error
		wg      sync.WaitGroup
		err     error
	)
	known, shown, live := r.live(runID)
	under := r.opts.Enrichments.Job(runID)
	if d.Run, err = r.Run(ctx, runID); err != nil {
		return engine.RunDetail{}, err
	}
	if live {
		// The loop knows better than a store that is behind.
		known.Scenario = d.Scenario
		d.Run = known
	}
	wg.Go(func() { results, errs[0] = r.opts.Store.Overviews(ctx, runID) })
	wg.Go(func() { d.Artifacts, d.ArtifactsTotal, errs[1] = r.opts.Store.ArtifactPage(ctx, runID, "", detailPage) })
	wg.Go(func() { d.Events, d.EventsTotal, errs[2] = r.opts.Store.EventPage(ctx, runID, 0, detailPage) })
	wg.Go(func() { d.LoadChanges, errs[4] = r.opts.Store.Events(ctx, runID, 0, engine.EventLoadChanged) })
	wg.Go(func() { polls, errs[3] = r.opts.Store.WarehouseChanges(ctx, runID) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return engine.RunDetail{}, StoreError(fmt.Errorf("reading the run: %w", err))
	}
	d.Live = shown
	if n := len(polls); n > 0 {
		last := polls[n-1].Warehouse
		last.PolledAt, last.Raw = polls[n-1].Timestamp, nil
		d.Warehouse = &last
	}
	d.Workers = []engine.RunResult{}
	var enriched *engine.Enrichment
	for _, row := range results {
		if row.ResultID != runID {
			d.Workers = append(d.Workers, row)
			continue
		}
		d.Plan, enriched = row.Plan.Shown(), row.Enrichment
		if row.Environment != nil {
			d.Simulated, d.Emulated = row.Environment.Simulated, row.Environment.Emulated
		}
		if d.Status.Terminal() {
			if d.Summary = finalize.Summarize(d.Run, row); d.Summary != nil {
				d.Summary.Cost = r.Cost(polls, d.Run, *row.Figures, d.Plan, row.Enrichment)
			}
		}
	}
	if d.Summary != nil {
		d.FindMax = lifecycle.FinishedSearchState(d.Summary.FindMax)
	}
	if under != nil {
		state := under.State()
		enriched = &state
	}
	d.Enrichment = r.opts.Enrichments.State(runID, enriched, d.Plan)
	if d.Artifacts == nil {
		d.Artifacts = []engine.Artifact{}
	}
	if d.Events == nil {
		d.Events = []engine.Event{}
	}
	if d.LoadChanges == nil {
		d.LoadChanges = []engine.Event{}
	}
	d.LoadChanges = d.LoadChanges[max(0, len(d.LoadChanges)-detailPage):]
	return d, nil
}

// Cost is what a run used of its warehouse, at the prices of now.
func (r *Reader) Cost(polls []engine.WarehousePoint, run engine.Run, f engine.Figures,
	plan *engine.Plan, enriched *engine.Enrichment) *engine.Cost {
	adapter, after := "", cost.Aftermath{}
	if plan != nil {
		adapter, after.Suspended = plan.Adapter.Name, plan.Suspends()
		// Its queries may run on another warehouse.
		if t := run.Scenario.Target; enriched != nil && (plan.Housekeeping(t) == t.Warehouse) {
			after.Until = enriched.EndedAt.Time
		}
	}
	return r.opts.Prices.Prices().RunCost(polls, run, f, adapter, after)
}
