package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// enrichmentLook is how often the state of an enrichment is asked for.
const enrichmentLook = 500 * time.Millisecond

// awaitEnrichment waits until the enrichment of each finished run is over, for
// --wait-enrichment at most, and returns their states. An interrupt, also one of
// before, ends the wait and nothing else. What is missing then is no failure: the
// server of the data directory goes on with it.
func (c *runCommand) awaitEnrichment(e *env, look func(context.Context) ([]engine.Enrichment, error)) (
	[]engine.Enrichment, error) {
	background := context.WithoutCancel(e.ctx)
	show := newProgress(e.stderr)
	defer show.end()
	limit := time.NewTimer(c.WaitEnrichment)
	defer limit.Stop()
	ticker := time.NewTicker(enrichmentLook)
	defer ticker.Stop()
	for {
		states, err := look(background)
		if err != nil {
			return nil, err
		}
		under := underWay(states)
		if under == nil || c.WaitEnrichment <= 0 || e.ctx.Err() != nil {
			return states, nil
		}
		if !c.Quiet {
			show.enriching(under)
		}
		select {
		case <-ticker.C:
		case <-limit.C:
			return states, nil
		case <-e.ctx.Done():
			e.forget()
			return states, nil
		}
	}
}

// underWay is the first enrichment that is not over, nil when all are.
func underWay(states []engine.Enrichment) *engine.Enrichment {
	for i := range states {
		if s := &states[i]; s.Status != "" && !s.Status.Over() {
			return s
		}
	}
	return nil
}

// enriching shows how far an enrichment is: on a terminal in a line that is
// rewritten, elsewhere every few seconds.
func (p *progress) enriching(s *engine.Enrichment) {
	text := "enriching    " + found(s)
	if p.w.terminal {
		p.w.status(text + "; Ctrl-C does not wait for the rest")
		return
	}
	if time.Since(p.last) >= 5*time.Second {
		p.last = time.Now()
		p.line("%s", text)
	}
}

func found(s *engine.Enrichment) string {
	if s.Executions == 0 {
		return "the target's query history is asked"
	}
	return fmt.Sprintf("%s of %s executions found in the target's query history", count(s.Matched), count(s.Executions))
}

// printEnrichment tells a person what the history knew. Targets without one are not mentioned.
func printEnrichment(out io.Writer, label string, s engine.Enrichment, goesOn string) {
	var text string
	switch s.Status {
	case "", engine.EnrichmentSkipped:
		return
	case engine.EnrichmentPending, engine.EnrichmentRunning:
		text = "not over: " + found(&s) + "; " + goesOn
	case engine.EnrichmentFailed:
		text = "failed: " + s.Reason
	default:
		text = strings.ToLower(string(s.Status)) + ": " + found(&s)
		if s.Status == engine.EnrichmentPartial && s.Reason != "" {
			text += ". " + s.Reason
		}
	}
	_, _ = fmt.Fprintf(out, "%s  %s\n", label, harmless(text))
	if a := s.Aggregate; a != nil && !a.NextPollAt.IsZero() {
		_, _ = fmt.Fprintf(out, "%s  the account's aggregates hold %s of %s executions; they are asked for again at %s; %s\n",
			label, count(a.Calls), count(a.Expected), a.NextPollAt.Local().Format("15:04"), goesOn)
	}
}

// enrichmentOf looks at a run of this process.
func (s *services) enrichmentOf(ctx context.Context, runID string) (engine.Enrichment, error) {
	d, err := s.runs.Detail(ctx, runID)
	if err != nil {
		return engine.Enrichment{}, fmt.Errorf("reading the enrichment of run %s: %w", runID, err)
	}
	return d.Enrichment, nil
}

// enrichmentOf looks at a run of a server. One that does not answer is not waited for.
func (c *client) enrichmentOf(ctx context.Context, runID string) (engine.Enrichment, error) {
	var d engine.RunDetail
	if err := c.do(ctx, "GET", "/api/runs/"+runID, nil, &d); err != nil {
		if engine.HasCode(err, engine.CodeUnavailable) {
			return engine.Enrichment{}, nil
		}
		return engine.Enrichment{}, err
	}
	return d.Enrichment, nil
}

// each looks at several runs.
func each(ctx context.Context, ids []string, of func(context.Context, string) (engine.Enrichment, error)) (
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
