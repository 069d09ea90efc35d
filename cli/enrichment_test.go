package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/cli/report"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// TestTheWaitForAnEnrichmentEnds with its end, at its limit, or with an interrupt.
func TestTheWaitForAnEnrichmentEnds(t *testing.T) {
	running := engine.Enrichment{Status: engine.EnrichmentRunning, Executions: 1200, Matched: 30}
	for _, c := range []struct {
		name               string
		limit, over, press time.Duration
		took               time.Duration
	}{
		{"it ends", time.Minute, 7 * time.Second, time.Hour, 7 * time.Second},
		{"it takes longer", time.Minute, time.Hour, time.Hour, time.Minute},
		{"the user does not wait", time.Minute, time.Hour, 3 * time.Second, 3 * time.Second},
		{"the run was interrupted", time.Minute, time.Hour, 0, 0},
		{"no wait", 0, time.Hour, time.Hour, 0},
		{"there is none", time.Minute, 0, time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.press == 0 {
				cancel()
			} else {
				time.AfterFunc(c.press, cancel)
			}
			var out bytes.Buffer
			e := &terminal.Env{Ctx: ctx, Stderr: &out, Forget: func() {}}
			begin := time.Now()
			states, err := (&runCommand{WaitEnrichment: c.limit}).awaitEnrichment(e,
				func(ctx context.Context) ([]engine.Enrichment, error) {
					if ctx.Err() != nil {
						t.Errorf("%s: the look is cut off", c.name)
					}
					if time.Since(begin) >= c.over {
						return []engine.Enrichment{{Status: engine.EnrichmentSkipped}, {Status: engine.EnrichmentPartial}}, nil
					}
					return []engine.Enrichment{{Status: engine.EnrichmentSkipped}, running}, nil
				})
			if took := time.Since(
				begin,
			); err != nil || took < c.took || took > c.took+enrichmentPollInterval ||
				len(states) != 2 {
				t.Errorf("%s: %v, %v", c.name, took, err)
			}
			if shown := strings.Contains(out.String(), "30 of 1 200 executions"); shown != (c.took > 0) {
				t.Errorf("%s: %q", c.name, out.String())
			}
		})
	}
	failed := errors.New("the store is away")
	_, err := (&runCommand{}).awaitEnrichment(&terminal.Env{Ctx: t.Context(), Stderr: &bytes.Buffer{}},
		func(context.Context) ([]engine.Enrichment, error) { return nil, failed })
	if !errors.Is(err, failed) {
		t.Error(err)
	}
	var out bytes.Buffer
	for _, s := range []engine.Enrichment{{}, {Status: engine.EnrichmentSkipped}, running,
		{Status: engine.EnrichmentFailed, Reason: "No rights."},
		{Status: engine.EnrichmentPartial, Executions: 2, Matched: 1, Reason: "It took too long."}} {
		report.Enrichment(&out, "enrichment", s, continuesLocally)
	}
	if want := `enrichment  not over: 30 of 1 200 executions found in the target's query history; the next server on this data directory goes on
enrichment  failed: No rights.
enrichment  partial: 1 of 2 executions found in the target's query history. It took too long.
`; out.String() != want {
		t.Errorf("%s", out.String())
	}
}
