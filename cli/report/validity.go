package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// maxCauses is how many causes of a verdict are listed; of the others their number is told. The JSON has all.
const maxCauses = 8

// printVerdict writes whether the figures are valid, and what makes them doubtful, by its time.
func printVerdict(p func(string, ...any), s *engine.Summary) {
	p("validity\t%s", s.VerdictText())
	causes := slices.SortedStableFunc(slices.Values(s.ValidityDetail.Causes), func(a, b engine.ValidityCause) int {
		return cmp.Or(a.From.Compare(b.From.Time), a.To.Compare(b.To.Time))
	})
	for _, c := range causes[:min(len(causes), maxCauses)] {
		p("\t%s%s: %s", causeInterval(s, c), c.Cause, c.Detail)
	}
	if more := len(causes) - maxCauses; more > 0 {
		p("\tand %d more", more)
	}
	details := s.ValidityDetail.NoteDetails
	for i, n := range s.ValidityDetail.Notes {
		if i < len(details) && details[i].Code == engine.NoteOutage {
			continue // told with the figures
		}
		p("\tnote: %s", n)
	}
}

// causeInterval is the interval of a cause on the clock of the measurement, as the progress shows it; "" of one that
// has none, or that lies before it.
func causeInterval(s *engine.Summary, c engine.ValidityCause) string {
	if s.MeasuredFrom.IsZero() || c.From.IsZero() || c.To.Before(s.MeasuredFrom.Time) {
		return ""
	}
	from := terminal.Duration(max(0, c.From.Sub(s.MeasuredFrom.Time).Seconds()))
	to := terminal.Duration(c.To.Sub(s.MeasuredFrom.Time).Seconds())
	if from == to {
		return from + "  "
	}
	return fmt.Sprintf("%s–%s  ", from, to)
}
