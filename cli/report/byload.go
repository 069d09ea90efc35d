package report

import (
	"fmt"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// printByLoad tells the parts of a measurement apart whose load was changed: the lines before are of all of them
// together, and so of none.
func printByLoad(p func(string, ...any), s *engine.Summary) {
	for i, l := range s.ByLoad {
		what := ""
		if i == 0 {
			what = "by load"
		}
		load := fmt.Sprintf("%.0f connections", l.Load)
		if l.Load == 1 {
			load = "1 connection"
		}
		if s.TargetQPS != nil {
			load = fmt.Sprintf("%.6g/s asked for", l.Load)
		}
		ms := func(v *float64) string {
			if v == nil {
				return "–"
			}
			return terminal.Millis(*v)
		}
		rate := func(v *float64) string {
			if v == nil {
				return "–"
			}
			return fmt.Sprintf("%.1f/s", *v)
		}
		p(
			"%s\t%s–%s s: %s, %s operations, %s, P50 %s   P95 %s   P99 %s, %s errors",
			what,
			terminal.Seconds(l.From.Sub(s.MeasuredFrom.Time).Seconds()),
			terminal.Seconds(
				l.To.Sub(s.MeasuredFrom.Time).Seconds(),
			),
			load,
			terminal.Count(l.Operations),
			rate(l.QPS),
			ms(l.P50Ms),
			ms(l.P95Ms),
			ms(l.P99Ms),
			terminal.Count(l.Errors),
		)
	}
}
