package report

import (
	"slices"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// maxStatements are listed in a terminal; the report of a run has all.
const maxStatements = 12

// printStatements lists the statements or transactions of kinds that have several, the most frequent first: the line
// of such a kind is of all of them together. The statements inside transactions are left to the report of the run.
func printStatements(p func(string, ...any), s *engine.Summary) {
	of := map[engine.Kind]int{}
	for _, f := range s.ByStatement {
		if !f.InTransaction {
			of[f.Kind]++
		}
	}
	var listed []engine.StatementFigures
	for _, f := range s.ByStatement {
		if !f.InTransaction && of[f.Kind] > 1 {
			listed = append(listed, f)
		}
	}
	if len(listed) == 0 {
		return
	}
	slices.SortStableFunc(listed, func(a, b engine.StatementFigures) int { return int(b.Count - a.Count) })
	p("statement\toperations\top/s\tP50\tP95\tP99\terrors")
	for _, f := range listed[:min(len(listed), maxStatements)] {
		p("%s\t%s\t%s\t%s\t%s", terminal.Shorten(terminal.OneLine(f.StatementID), 40), terminal.Count(f.Count),
			terminal.RateOrNone(f.QPS), percentiles(f.LatencyMs), terminal.Count(f.Errors))
	}
	if more := len(listed) - maxStatements; more > 0 {
		p("and %d more; loadstone report has all", more)
	}
	p("")
}

// percentiles are three cells, dashes where no operation has a latency.
func percentiles(l *engine.StatementLatencyMs) string {
	if l == nil {
		return "-\t-\t-"
	}
	return terminal.Millis(l.P50) + "\t" + terminal.Millis(l.P95) + "\t" + terminal.Millis(l.P99)
}
