package cli

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/engine"
)

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// printSummary writes a result for a person.
func printSummary(out io.Writer, s *engine.Summary) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	p := printer(w)
	p("")
	p("%s  %s", s.RunName, strings.ToLower(string(s.Status)))
	if word := s.StandIn(); word != "" {
		p("  %s: %s", word, aboutStandIn(s))
	}
	if s.CancellationReason != nil && *s.CancellationReason != "" {
		p("  %s", *s.CancellationReason)
	}
	if s.Status == engine.StatusCompleted && !s.Worked() {
		p("  %s", nothingWorked(s))
	}
	p("  run %s", s.RunID)
	p("")
	if s.FindMax != nil {
		printSearch(p, s.FindMax)
	}
	if s.LatencyMs != nil {
		l := s.LatencyMs
		p("throughput\t%s", throughput(s))
		if s.FinishedLate > 0 {
			p("\t%s of them ended after it, up to %s s later, and are in no rate", count(s.FinishedLate), length(s.DrainSeconds))
		}
		if s.ServiceMs != nil {
			printOpenLoop(p, s)
		}
		p("latency\tP50 %s   P95 %s   P99 %s   P99.9 %s   max %s", millis(l.P50), millis(l.P95), millis(l.P99),
			millis(l.P999), millis(l.Max))
		p("errors\t%s (%.3g %%)", count(s.Errors.Count), s.Errors.Rate*100)
		for _, class := range slices.Sorted(maps.Keys(s.Errors.ByClass)) {
			p("\t%s: %s%s", class, count(s.Errors.ByClass[class]), example(s.Errors.Top, class))
		}
		if c := s.Connections; c != nil && (c.Lost > 0 || c.Refused > 0 || c.MostMissing > 0) {
			p("connections\t%s lost, %s attempts to open one refused; up to %d at once were missing for over a second",
				count(c.Lost), count(c.Refused), c.MostMissing)
		}
		if s.Retries > 0 {
			p("retries\t%s repetitions of failed operations", count(s.Retries))
		}
		if t := s.Transactions; t != nil {
			p("transactions\t%s committed, %s rolled back as asked, %s failed", count(t.Committed), count(t.RolledBack),
				count(t.Failed))
		}
		p("")
		p("kind\toperations\top/s\tP50\tP95\tP99\terrors")
		for _, kind := range engine.Kinds() {
			k := s.ByKind[kind]
			if k == nil || k.Count == 0 || k.LatencyMs == nil {
				continue
			}
			p("%s\t%s\t%s\t%s\t%s\t%s\t%s", kind, count(k.Count), rated(s, k.QPS), millis(k.LatencyMs.P50),
				millis(k.LatencyMs.P95), millis(k.LatencyMs.P99), count(k.Errors))
		}
		p("")
	}
	a := s.Accounting
	if a.Scheduled == 0 && s.Status != engine.StatusCompleted {
		// Nothing was executed: there is nothing to account for or to doubt.
		return flush(w)
	}
	balance := "balanced"
	if !a.Balanced {
		balance = "NOT balanced: " + strings.Join(a.Problems, "; ")
	}
	p("accounting\tscheduled %s = started %s + dropped %s", count(a.Scheduled), count(a.Started), count(a.Dropped))
	if d := a.DroppedByReason; a.Dropped > 0 {
		p(
			"\tdropped: %s beyond max_in_flight, %s waiting when the run was given up, %s not dispatched; %s of them in the "+
				"warm-up",
			count(d.MaxInFlight), count(d.Stopped), count(d.NotDispatched), count(a.WarmupDropped))
	}
	p("\tstarted %s = succeeded %s + failed %s", count(a.Started), count(a.Succeeded), count(a.Failed))
	p("\trecorded %s: %s", count(a.Recorded), balance)
	if a.Statements > 0 {
		p("\tbeside them %s statements inside transactions", count(a.Statements))
	}
	if s.Cost != nil {
		printCost(p, s.Cost, s.StandIn())
	}
	printAccuracy(p, s)
	p("validity\t%s", s.VerdictText())
	for _, c := range s.ValidityDetail.Causes {
		p("\t%s: %s", c.Cause, c.Detail)
	}
	for _, n := range s.ValidityDetail.Notes {
		p("\tnote: %s", n)
	}
	for _, t := range s.Thresholds {
		verdict := "passed"
		if !t.Passed {
			verdict = "FAILED: " + t.Reason
		}
		p("threshold\t%s  %s", t.Threshold, verdict)
	}
	return flush(w)
}

// aboutStandIn says whose figures those of a stand-in are.
func aboutStandIn(s *engine.Summary) string {
	if s.Emulated {
		return "another engine answered in the database's place; these figures are its own"
	}
	return "a stand-in that models the database answered; these figures say nothing about the real one"
}

// rated is a rate of the run, where it has any.
func rated(s *engine.Summary, qps float64) string {
	if !s.Rated() {
		return "-"
	}
	return rate(qps)
}

// throughput says how many operations were done, and over which time.
func throughput(s *engine.Summary) string {
	switch {
	case !s.Rated():
		return fmt.Sprintf("unknown, because the record is incomplete; %s operations are recorded", count(s.Operations))
	case s.CoveredSeconds != nil:
		return fmt.Sprintf("%s op/s over the %s s that the record covers, %s operations", rate(s.QPS),
			length(s.DurationSeconds), count(s.Operations))
	}
	return fmt.Sprintf("%s op/s over %s s, %s operations", rate(s.QPS), length(s.DurationSeconds), count(s.Operations))
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
	p("\t%s %s, %s at %.3g credits an hour, %.3g %s each (%s)", kind, c.WarehouseSize, clusters, c.CreditsPerHour,
		c.CreditPrice, c.Currency, c.PriceList)
}

// printOpenLoop says how an open loop kept its schedule.
func printOpenLoop(p func(string, ...any), s *engine.Summary) {
	due, n := s.Accounting.Measured()
	dropped := fmt.Sprintf("dropped %s", count(n))
	if n > 0 && due > 0 {
		dropped += fmt.Sprintf(" (%.3g %%)", 100*float64(n)/float64(due))
	}
	lag := ""
	if s.ScheduleLagMs != nil {
		lag = fmt.Sprintf("   start lag P99 %s", millis(s.ScheduleLagMs.P99))
	}
	switch {
	case s.TargetQPS != nil && s.Rated():
		p("open loop\ttarget %s op/s, achieved %.2f %%   %s%s", rate(*s.TargetQPS), 100*s.QPS / *s.TargetQPS, dropped, lag)
	case s.TargetQPS != nil:
		p("open loop\ttarget %s op/s   %s%s", rate(*s.TargetQPS), dropped, lag)
	default:
		p("open loop\tas the workload paces itself   %s%s", dropped, lag)
	}
	p("service\tP50 %s   P95 %s   P99 %s   from when an operation was begun; latency counts from when it was due",
		millis(s.ServiceMs.P50), millis(s.ServiceMs.P95), millis(s.ServiceMs.P99))
}

func flush(w *tabwriter.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the summary: %w", err)
	}
	return nil
}

// nothingWorked says why a run that was completed has failed all the same.
func nothingWorked(s *engine.Summary) string {
	if s.Operations == 0 {
		return "No operation was begun in the measurement: there are no figures."
	}
	text := fmt.Sprintf("None of the %s operations succeeded", count(s.Operations))
	for _, g := range s.Errors.Top {
		return text + ": " + shorten(oneLine(g.Message), 160)
	}
	return text + "."
}

// judge maps a result onto the exit code.
func judge(s *engine.Summary, setupFailed, requireValid bool) int {
	switch {
	case s.Status == engine.StatusFailed && setupFailed:
		return exitUsage
	case s.Status != engine.StatusCompleted:
		return exitFailed
	case !s.Accounting.Balanced:
		// Records are missing: whatever the figures say, they do not say it of the whole run.
		return exitFailed
	}
	for _, t := range s.Thresholds {
		if !t.Passed {
			return exitThresholds
		}
	}
	if !s.Worked() {
		return exitFailed
	}
	if requireValid && s.Validity != engine.VerdictValid {
		return exitInvalid
	}
	return exitPassed
}

type junitSuite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Time     float64  `xml:"time,attr"`
	Time0    string   `xml:"timestamp,attr,omitempty"`
	// Properties come before the cases in the schema that CI systems check against.
	Properties *junitProperties `xml:"properties,omitempty"`
	Cases      []junitCase      `xml:"testcase"`
}

type junitProperties struct {
	Properties []junitProperty `xml:"property"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    float64       `xml:"time,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// writeJUnit writes a result as CI systems read it: one case for the run, one
// for the accounting, one for each threshold, and one for the verdict when it is required.
func writeJUnit(w io.Writer, s *engine.Summary, requireValid bool) error {
	return writeXML(w, suiteOf(s, requireValid))
}

func suiteOf(s *engine.Summary, requireValid bool) junitSuite {
	suite := junitSuite{Name: printable(s.RunName), Time: s.DurationSeconds}
	if !s.StartTime.IsZero() {
		suite.Time0 = s.StartTime.Format("2006-01-02T15:04:05")
	}
	word := s.StandIn()
	if word != "" {
		suite.Properties = &junitProperties{[]junitProperty{{"simulated", "true"}, {"stand_in", word},
			{"verdict", s.VerdictText()}}}
		suite.Name += " (" + word + ")"
	}
	add := func(name string, passed bool, kind, message string) {
		if word != "" {
			name += " (" + word + ")"
		}
		c := junitCase{Class: printable("loadstone." + s.RunName), Name: printable(name), Time: s.DurationSeconds}
		if !passed {
			c.Failure = &junitFailure{Message: printable(message), Type: kind}
			suite.Failures++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	reason := string(s.Status)
	if s.CancellationReason != nil {
		reason += ": " + *s.CancellationReason
	}
	add("run completes", s.Status == engine.StatusCompleted, "run", reason)
	add("accounting balances", s.Accounting.Balanced, "accounting", strings.Join(s.Accounting.Problems, "; "))
	add("operations succeed", s.Worked(), "errors", nothingWorked(s))
	for _, t := range s.Thresholds {
		add(t.Threshold, t.Passed, "threshold", t.Reason)
	}
	if requireValid {
		var causes []string
		for _, c := range s.ValidityDetail.Causes {
			causes = append(causes, c.Detail)
		}
		add("figures are valid", s.Validity == engine.VerdictValid, "validity", strings.Join(causes, "; "))
	}
	return suite
}

func writeXML(w io.Writer, v any) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// length is a time in seconds: tenths, or three digits of what is shorter than one.
func length(seconds float64) string {
	if seconds < 1 {
		return strconv.FormatFloat(seconds, 'g', 3, 64)
	}
	return strconv.FormatFloat(seconds, 'f', 1, 64)
}

// example is the most frequent message of a class of errors.
func example(top []engine.ErrorGroup, class engine.ErrorClass) string {
	for _, g := range top {
		if g.Class != class || g.Message == "" {
			continue
		}
		return ", most often: " + shorten(oneLine(g.Message), 160)
	}
	return ""
}

// shorten cuts a text after so many characters.
func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// printable is a text of others as XML 1.0 and a terminal can show it, cut.
func printable(s string) string { return shorten(harmless(s), 4*mostShown) }
