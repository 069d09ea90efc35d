package cli

import (
	"context"
	"errors"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// enrichmentPollInterval is how often the state of an enrichment is asked for.
const enrichmentPollInterval = 500 * time.Millisecond

// awaitEnrichment waits until the enrichment of each finished run is over, for
// --wait-enrichment at most, and returns their states. An interrupt, also one of
// before, ends the wait and nothing else. What is missing then is no failure: the
// server of the data directory goes on with it.
func (c *runCommand) awaitEnrichment(e *terminal.Env, look func(context.Context) ([]engine.Enrichment, error)) (
	[]engine.Enrichment, error) {
	background := context.WithoutCancel(e.Ctx)
	show := report.NewProgress(e.Stderr)
	defer show.End()
	limit := time.NewTimer(c.WaitEnrichment)
	defer limit.Stop()
	ticker := time.NewTicker(enrichmentPollInterval)
	defer ticker.Stop()
	for {
		states, err := look(background)
		if err != nil {
			return nil, err
		}
		under := firstPendingEnrichment(states)
		if under == nil || c.WaitEnrichment <= 0 || e.Ctx.Err() != nil {
			return states, nil
		}
		if !c.Quiet {
			show.Enriching(under)
		}
		select {
		case <-ticker.C:
		case <-limit.C:
			return states, nil
		case <-e.Ctx.Done():
			e.Forget()
			return states, nil
		}
	}
}

// firstPendingEnrichment is the first enrichment that is not over, nil when all are.
func firstPendingEnrichment(states []engine.Enrichment) *engine.Enrichment {
	for i := range states {
		if s := &states[i]; s.Status != "" && !s.Status.Terminal() {
			return s
		}
	}
	return nil
}

// EnrichmentOf looks at a run of a server. One that does not answer is not waited for.
func (c *client) EnrichmentOf(ctx context.Context, runID string) (engine.Enrichment, error) {
	var d engine.RunDetail
	if err := c.do(ctx, "GET", "/api/runs/"+runID, nil, &d); err != nil {
		if engine.HasCode(err, engine.CodeUnavailable) {
			return engine.Enrichment{}, nil
		}
		return engine.Enrichment{}, err
	}
	return d.Enrichment, nil
}

// forEachRun looks at several runs.
func forEachRun(ctx context.Context, ids []string, of func(context.Context, string) (engine.Enrichment, error)) (
	[]engine.Enrichment, error) {
	states := make([]engine.Enrichment, len(ids))
	var errs error
	for i, id := range ids {
		var err error
		states[i], err = of(ctx, id)
		errs = errors.Join(errs, err)
	}
	return states, errs
}
