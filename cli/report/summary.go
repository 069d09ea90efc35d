// Package report says what becomes of a run: live in a line, at its end in tables for a person, and
// as JSON and JUnit for programs. What --out wrote it reads again.
package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/threshold"
)

// JSON writes a result for a program.
func JSON(w io.Writer, v any) error { return terminal.JSON(w, v) }

// Summary writes a result for a person.
func Summary(out io.Writer, s *engine.Summary) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	p := terminal.LinePrinter(w)
	p("")
	p("%s  %s", s.RunName, strings.ToLower(string(s.Status)))
	if word := s.StandInLabel(); word != "" {
		p("  %s: %s", word, standInNotice(s))
	}
	if s.CancellationReason != nil && *s.CancellationReason != "" {
		p("  %s", *s.CancellationReason)
	}
	if s.Status == engine.StatusCompleted && !s.HasSuccess() {
		p("  %s", allFailedReason(s))
	}
	p("  run %s", s.RunID)
	p("")
	if s.FindMax != nil {
		printSearch(p, s.FindMax)
	}
	if s.LatencyMs != nil {
		printMeasured(p, s)
	}
	if a := s.Accounting; a.Scheduled == 0 && a.Recorded == 0 && s.Operations == 0 && s.Status != engine.StatusCompleted {
		// Nothing was executed: there is nothing to account for or to doubt.
		return flush(w)
	}
	printAccounting(p, s.Accounting)
	if s.Cost != nil {
		printCost(p, s.Cost, s.StandInLabel())
	}
	printAccuracy(p, s)
	printVerdict(p, s)
	for i, line := range findingLines(s) {
		head := ""
		if i == 0 {
			head = "why"
		}
		p("%s\t%s", head, line)
	}
	for _, t := range s.Thresholds {
		verdict := cmp.Or(threshold.CoverageNote(s, t), "passed")
		if !t.Passed {
			verdict = "FAILED: " + t.Reason
		}
		p("threshold\t%s  %s", t.Threshold, verdict)
	}
	return flush(w)
}

// printMeasured writes what the measurement gave: rates, latencies, errors.
func printMeasured(p func(string, ...any), s *engine.Summary) {
	l := s.LatencyMs
	p("throughput\t%s", throughput(s))
	if s.FinishedLate > 0 {
		p("\t%s of them ended after it, up to %s s later, and are in no rate", terminal.Count(s.FinishedLate),
			terminal.Seconds(s.DrainSeconds))
	}
	if s.ServiceMs != nil {
		printOpenLoop(p, s)
	}
	p("latency\tP50 %s   P95 %s   P99 %s   P99.9 %s   max %s", terminal.Millis(l.P50), terminal.Millis(l.P95),
		terminal.Millis(l.P99),
		terminal.Millis(l.P999), terminal.Millis(l.Max))
	p("errors\t%s (%s)", terminal.Count(s.Errors.Count), percentOrNone(s.Errors.Rate))
	for _, class := range slices.Sorted(maps.Keys(s.Errors.ByClass)) {
		p("\t%s: %s%s", class, terminal.Count(s.Errors.ByClass[class]), commonMessage(s.Errors.Top, class))
	}
	for i := range s.Outages {
		p("outage\t%s", s.Outages[i].Text())
	}
	if n := s.UnknownOutcomes; n != nil && *n > 0 {
		p("unknown\t%s may have been committed, in the whole record", engine.Count(int(*n), "operation"))
	}
	printByLoad(p, s)
	if c := s.Connections; c != nil && (c.Lost > 0 || c.Refused > 0 || c.MaxMissing > 0) {
		p("connections\t%s lost, %s attempts to open one refused; up to %d at once were missing for over a second",
			terminal.Count(c.Lost), terminal.Count(c.Refused), c.MaxMissing)
	}
	if s.Retries > 0 {
		p("retries\t%s repetitions of failed operations", terminal.Count(s.Retries))
	}
	if t := s.Transactions; t != nil {
		p("transactions\t%s committed, %s rolled back as asked, %s failed", terminal.Count(t.Committed),
			terminal.Count(t.RolledBack),
			terminal.Count(t.Failed))
	}
	p("")
	p("kind\toperations\top/s\tP50\tP95\tP99\terrors")
	for _, kind := range engine.Kinds() {
		k := s.ByKind[kind]
		if k == nil || k.Count == 0 && k.CarriedOver == 0 {
			continue
		}
		var l *engine.StatementLatencyMs
		if k.LatencyMs != nil {
			l = &engine.StatementLatencyMs{P50: k.LatencyMs.P50, P95: k.LatencyMs.P95, P99: k.LatencyMs.P99}
		}
		p(
			"%s\t%s\t%s\t%s\t%s",
			kind,
			terminal.Count(k.Count),
			terminal.RateOrNone(k.QPS),
			percentiles(l),
			terminal.Count(k.Errors),
		)
	}
	p("")
	printStatements(p, s)
}

// printAccounting writes where every operation went.
func printAccounting(p func(string, ...any), a engine.Accounting) {
	balance := "balanced"
	if !a.Balanced {
		balance = "NOT balanced: " + strings.Join(a.Problems, "; ")
	}
	p("accounting\tscheduled %s = started %s + dropped %s", terminal.Count(a.Scheduled), terminal.Count(a.Started),
		terminal.Count(a.Dropped))
	if d := a.DroppedByReason; a.Dropped > 0 {
		p(
			"\tdropped: %s beyond max_in_flight, %s waiting when the run was given up, %s not dispatched; %s of them in the "+
				"warm-up",
			terminal.Count(d.MaxInFlight), terminal.Count(d.Stopped), terminal.Count(d.NotDispatched),
			terminal.Count(a.WarmupDropped))
	}
	p("\tstarted %s = succeeded %s + failed %s", terminal.Count(a.Started), terminal.Count(a.Succeeded),
		terminal.Count(a.Failed))
	p("\trecorded %s: %s", terminal.Count(a.Recorded), balance)
	if a.Statements > 0 {
		p("\tbeside them %s statements inside transactions", terminal.Count(a.Statements))
	}
}

// standInNotice says whose figures those of a stand-in are.
func standInNotice(s *engine.Summary) string {
	if s.Emulated {
		return "another engine answered in the database's place; these figures are its own"
	}
	return "a stand-in that models the database answered; these figures say nothing about the real one"
}

// throughput says how many operations were done, and over which time.
func throughput(s *engine.Summary) string {
	switch {
	case s.RecordLost():
		return fmt.Sprintf("unknown, because the record is incomplete; %s operations are recorded",
			terminal.Count(s.Operations))
	case !s.HasRates():
		return "unknown: no time was measured"
	case s.CoveredSeconds != nil:
		return fmt.Sprintf("%s op/s over the %s s that the record covers, %s operations", terminal.Rate(*s.QPS),
			terminal.Seconds(s.DurationSeconds), terminal.Count(s.Operations))
	}
	return fmt.Sprintf("%s op/s over %s s, %s operations", terminal.Rate(*s.QPS), terminal.Seconds(s.DurationSeconds),
		terminal.Count(s.Operations))
}

// printCost says what the measurement used of its warehouse.
func printCost(p func(string, ...any), c *engine.Cost, standIn string) {
	if c.CreditsPerHour == 0 {
		p("cost\tunknown: %s", strings.Join(c.Notes, " "))
		return
	}
	of := ""
	if standIn != "" {
		of = fmt.Sprintf(", of a warehouse that is %s", standIn)
	}
	line := fmt.Sprintf("%.3g credits, %.3g %s%s", c.Credits, c.Price, c.Currency, of)
	if c.PricePerMillion != nil {
		line = fmt.Sprintf("%.3g %s for a million operations; %s", *c.PricePerMillion, c.Currency, line)
	}
	p("cost\t%s", line)
	clusters := fmt.Sprintf("%.3g clusters", c.Clusters)
	if c.Clusters == 1 {
		clusters = "1 cluster"
	}
	kind := c.WarehouseType
	if c.WarehouseGeneration != "" && kind == "STANDARD" {
		kind += " of generation " + c.WarehouseGeneration
	}
	if c.CausedCredits > 0 {
		p("\twith all that the run caused until the warehouse suspended, %s s: %.3g credits, %.3g %s",
			terminal.Seconds(c.CausedSeconds), c.CausedCredits, c.CausedPrice, c.Currency)
	}
	p("\t%s %s, %s at %.3g credits an hour, %.3g %s each (%s)", kind, c.WarehouseSize, clusters, c.CreditsPerHour,
		c.CreditPrice, c.Currency, c.PriceList)
}

// printOpenLoop says how an open loop kept its schedule.
func printOpenLoop(p func(string, ...any), s *engine.Summary) {
	due, n := s.Accounting.Measured()
	dropped := fmt.Sprintf("dropped %s", terminal.Count(n))
	if n > 0 && due > 0 {
		dropped += fmt.Sprintf(" (%.3g %%)", 100*float64(n)/float64(due))
	}
	lag := ""
	if s.ScheduleLagMs != nil {
		lag = fmt.Sprintf("   start lag P99 %s", terminal.Millis(s.ScheduleLagMs.P99))
	}
	switch {
	case s.TargetQPS != nil && s.HasRates():
		p("open loop\ttarget %s op/s, achieved %.2f %%   %s%s", terminal.Rate(*s.TargetQPS), 100**s.QPS / *s.TargetQPS,
			dropped, lag)
	case s.TargetQPS != nil:
		p("open loop\ttarget %s op/s   %s%s", terminal.Rate(*s.TargetQPS), dropped, lag)
	default:
		p("open loop\tas the workload paces itself   %s%s", dropped, lag)
	}
	p("service\tP50 %s   P95 %s   P99 %s   from when an operation was begun; latency counts from when it was due",
		terminal.Millis(s.ServiceMs.P50), terminal.Millis(s.ServiceMs.P95), terminal.Millis(s.ServiceMs.P99))
}

func flush(w *tabwriter.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	return nil
}

// allFailedReason says why a run that was completed has failed all the same.
func allFailedReason(s *engine.Summary) string {
	if s.Operations == 0 {
		return "No operation was begun in the measurement: there are no figures."
	}
	text := fmt.Sprintf("None of the %s operations succeeded", terminal.Count(s.Operations))
	for _, g := range s.Errors.Top {
		return text + ": " + terminal.Shorten(terminal.OneLine(g.Message), 160)
	}
	return text + "."
}

// commonMessage is the most frequent message of a class of errors.
func commonMessage(top []engine.ErrorGroup, class engine.ErrorClass) string {
	for _, g := range top {
		if g.Class != class || g.Message == "" {
			continue
		}
		return ", most often: " + terminal.Shorten(terminal.OneLine(g.Message), 160)
	}
	return ""
}

// printable is a text of others as XML 1.0 and a terminal can show it, cut.
func printable(s string) string {
	return terminal.Shorten(terminal.StripControls(s), 4*terminal.MaxShown)
}
