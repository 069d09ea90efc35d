package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
)

// Detail gathers everything about a run, its parts in parallel.
func (s *Service) Detail(ctx context.Context, runID string) (engine.RunDetail, error) {
	var (
		d       engine.RunDetail
		results []engine.TestResult
		errs    [4]error
		wg      sync.WaitGroup
	)
	wg.Go(func() { d.Run, errs[0] = s.run(ctx, runID) })
	wg.Go(func() { results, errs[1] = s.opts.Store.Results(ctx, runID) })
	wg.Go(func() { d.Artifacts, errs[2] = s.opts.Store.Artifacts(ctx, runID) })
	wg.Go(func() { d.Events, errs[3] = s.opts.Store.Events(ctx, runID, 0) })
	wg.Wait()
	if errs[0] != nil {
		return engine.RunDetail{}, errs[0]
	}
	if err := errors.Join(errs[1:]...); err != nil {
		return engine.RunDetail{}, storeError(fmt.Errorf("reading the run: %w", err))
	}
	d.Live = s.Live(runID)
	if l := s.liveRun(runID); l != nil {
		// The loop knows better than a store that is behind.
		l.Scenario = d.Scenario
		d.Run = *l
	}
	d.Enrichment = enrichmentSkipped()
	d.Workers = []engine.TestResult{}
	for _, r := range results {
		if r.TestID != runID {
			d.Workers = append(d.Workers, r)
			continue
		}
		d.Plan = r.Plan
		if d.Status.Terminal() {
			d.Summary = summarize(d.Run, r)
		}
	}
	if d.Artifacts == nil {
		d.Artifacts = []engine.Artifact{}
	}
	if d.Events == nil {
		d.Events = []engine.Event{}
	}
	return d, nil
}

func (s *Service) liveRun(runID string) *engine.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.live[runID]
	if l == nil {
		return nil
	}
	run := l.current()
	return &run
}
