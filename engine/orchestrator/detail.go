package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/lifecycle"
	"github.com/loadstone-db/loadstone/engine/outcome"
)

// detailPage is how many events and artifacts are shown with a run; the others are paged.
const detailPage = 200

// Detail gathers everything about a run, its parts in parallel. The run itself is
// read before them, so that its figures are never older than its status and phase. So is
// an enrichment under way: what is stored of one that ends meanwhile may be older than what it says itself.
func (s *Service) Detail(ctx context.Context, runID string) (engine.RunDetail, error) {
	var (
		d       engine.RunDetail
		results []engine.TestResult
		polls   []engine.WarehousePoint
		errs    [4]error
		wg      sync.WaitGroup
		err     error
	)
	live, under := s.runs.find(runID), s.enrichments.Of(runID)
	if d.Run, err = s.run(ctx, runID); err != nil {
		return engine.RunDetail{}, err
	}
	if live != nil {
		// The loop knows better than a store that is behind.
		known := live.current()
		known.Scenario = d.Scenario
		d.Run = known
	}
	wg.Go(func() { results, errs[0] = s.opts.Store.Overviews(ctx, runID) })
	wg.Go(func() { d.Artifacts, d.ArtifactsTotal, errs[1] = s.opts.Store.ArtifactPage(ctx, runID, "", detailPage) })
	wg.Go(func() { d.Events, d.EventsTotal, errs[2] = s.opts.Store.EventPage(ctx, runID, 0, detailPage) })
	wg.Go(func() { polls, errs[3] = s.opts.Store.WarehouseChanges(ctx, runID) })
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return engine.RunDetail{}, storeError(fmt.Errorf("reading the run: %w", err))
	}
	d.Live = s.Live(runID)
	if n := len(polls); n > 0 {
		last := polls[n-1].Warehouse
		last.PolledAt, last.Raw = polls[n-1].Timestamp, nil
		d.Warehouse = &last
	}
	d.Workers = []engine.TestResult{}
	var enriched *engine.Enrichment
	for _, r := range results {
		if r.TestID != runID {
			d.Workers = append(d.Workers, r)
			continue
		}
		d.Plan, enriched = r.Plan, r.Enrichment
		if r.Environment != nil {
			d.Simulated, d.Emulated = r.Environment.Simulated, r.Environment.Emulated
		}
		if d.Status.Terminal() {
			if d.Summary = outcome.Summarize(d.Run, r); d.Summary != nil {
				d.Summary.Cost = s.costOf(polls, d.Run, *r.Figures, d.Plan)
			}
		}
	}
	if d.Summary != nil {
		d.FindMax = lifecycle.RestingSearch(d.Summary.FindMax)
	}
	if under != nil {
		state := under.State()
		enriched = &state
	}
	d.Enrichment = s.enrichments.State(runID, enriched, d.Plan)
	if d.Artifacts == nil {
		d.Artifacts = []engine.Artifact{}
	}
	if d.Events == nil {
		d.Events = []engine.Event{}
	}
	return d, nil
}

// costOf is what a run used of its warehouse, at the prices of now.
func (s *Service) costOf(polls []engine.WarehousePoint, run engine.Run, f engine.Figures,
	plan *engine.Plan) *engine.Cost {
	adapter := ""
	if plan != nil {
		adapter = plan.Adapter.Name
	}
	return s.opts.Prices().Of(polls, run, f, adapter)
}

// priced is a summary that is fresh from the run's loop with its cost. Without
// the store nobody knows the warehouse's polls, and the summary stays without it.
func (s *Service) priced(ctx context.Context, l *live, sum engine.Summary) *engine.Summary {
	polls, err := s.opts.Store.WarehouseChanges(ctx, sum.RunID)
	if err != nil {
		s.opts.Log.Warn().Err(err).Str("run_id", sum.RunID).
			Msg("the cost of a run is not reckoned: its warehouse's polls cannot be read")
		return &sum
	}
	var plan *engine.Plan
	if l.plan != nil {
		plan = l.plan.Plan
	}
	sum.Cost = s.costOf(polls, l.current(), sum.Figures, plan)
	return &sum
}
