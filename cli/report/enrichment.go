package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// Enriching shows how far an enrichment is: on a terminal in a line that is
// rewritten, elsewhere every few seconds.
func (p *Progress) Enriching(s *engine.Enrichment) {
	text := "enriching    " + enrichedShare(s)
	if p.w.Terminal {
		p.w.Status(text + "; Ctrl-C does not wait for the rest")
		return
	}
	if time.Since(p.last) >= 5*time.Second {
		p.last = time.Now()
		p.Line("%s", text)
	}
}

func enrichedShare(s *engine.Enrichment) string {
	if s.Executions == 0 {
		return "the target's query history is asked"
	}
	return fmt.Sprintf("%s of %s executions found in the target's query history", terminal.Count(s.Matched),
		terminal.Count(s.Executions))
}

// Enrichment tells a person what the history knew. Targets without one are not mentioned.
func Enrichment(out io.Writer, label string, s engine.Enrichment, goesOn string) {
	var text string
	switch s.Status {
	case "", engine.EnrichmentSkipped:
		return
	case engine.EnrichmentPending, engine.EnrichmentRunning:
		text = "not over: " + enrichedShare(&s) + "; " + goesOn
	case engine.EnrichmentFailed:
		text = "failed: " + s.Reason
	default:
		text = strings.ToLower(string(s.Status)) + ": " + enrichedShare(&s)
		if s.Status == engine.EnrichmentPartial && s.Reason != "" {
			text += ". " + s.Reason
		}
	}
	_, _ = fmt.Fprintf(out, "%s  %s\n", label, terminal.StripControls(text))
	if a := s.Aggregate; a != nil && !a.NextPollAt.IsZero() {
		_, _ = fmt.Fprintf(out, "%s  the account's aggregates hold %s of %s executions; they are asked for again at %s; %s\n",
			label, terminal.Count(a.Calls), terminal.Count(a.Expected), a.NextPollAt.Local().Format("15:04"), goesOn)
	}
}
