package compare

import (
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// MeasuredRun is a run with its figures.
type MeasuredRun struct {
	Summary engine.Summary
	Seconds Run
}

// Between compares the runs of side B with those of side A, at least one each, with
// notes on what else differs. Where each side is one run, A and B and their differences are those of
// the summaries, which is what people see elsewhere. A run is the same as itself, however it was measured.
func Between(a, b []MeasuredRun, o Options) (Comparison, error) {
	if sameRuns(a, b) {
		return compareWithItself(a, b)
	}
	for _, m := range slices.Concat(a, b) {
		if len(m.Seconds) == 0 {
			return Comparison{}, &engine.Error{Code: engine.CodeConflict,
				Message: fmt.Sprintf("Run %s has no whole second of measurement to compare.", m.Summary.RunID),
				Hint:    "it may have failed before its load, been stopped in its warm-up, or lost its record"}
		}
	}
	c, err := compareSides(seconds(a), seconds(b), begun(a, b), summaryFigures(a, b), o)
	if err != nil {
		return c, fmt.Errorf("comparing runs: %w", err)
	}
	for _, m := range a {
		if slices.ContainsFunc(b, func(n MeasuredRun) bool {
			return n.Summary.RunID != "" &&
				n.Summary.RunID == m.Summary.RunID
		}) {
			c.Notes = append(c.Notes, fmt.Sprintf("Run %s is on both sides: what differs is shown smaller than it is.",
				m.Summary.RunID))
		}
	}
	c.AddNotes(summaries(a), summaries(b))
	c.dropRates(append(slices.Clone(a), b...))
	if tooShort(seconds(a)) || tooShort(seconds(b)) {
		c.clearVerdicts(fmt.Sprintf("a side was measured for less than %d s", MinSeconds))
	}
	c.addUnlike(unlike(summaries(a), summaries(b)))
	return c, nil
}

// begun is when the runs began, in seconds.
func begun(a, b []MeasuredRun) (times [2][]float64) {
	for i, side := range [][]MeasuredRun{a, b} {
		for _, m := range side {
			times[i] = append(times[i], float64(m.Summary.StartTime.UnixMilli())/1e3)
		}
	}
	return times
}

// tooShort reports that the runs of a side were together measured for too short a time to judge by.
func tooShort(runs []Run) bool {
	total := 0.0
	for _, run := range runs {
		for _, second := range run {
			total += second.Length()
		}
	}
	return TooShort(total)
}

// clearVerdicts takes back the verdicts of a comparison that are not to be given, and leaves the differences with their
// intervals: they are what was seen, and a reader may think their part.
func (c *Comparison) clearVerdicts(why string) {
	for i := range c.Metrics {
		if m := &c.Metrics[i]; m.Verdict != Unclear {
			m.Verdict = Unclear
			m.Reason += fmt.Sprintf(" It is not judged: %s.", why)
		}
	}
	c.Verdict = Unclear
}

// dropRates takes the rates out of a comparison with a run whose record is lost: it has
// none, which is not a rate of 0, and its seconds are those that happen to be there.
func (c *Comparison) dropRates(all []MeasuredRun) {
	if !slices.ContainsFunc(all, func(m MeasuredRun) bool { return m.Summary.RecordLost() }) {
		return
	}
	for i := range c.Metrics {
		if m := &c.Metrics[i]; m.Name == "qps" {
			*m = Metric{Name: m.Name, Unit: m.Unit, Verdict: Unclear,
				Reason: "Parts of a record are lost, and of no time is all of it there: there is no rate to compare."}
		}
	}
}

// SameRuns reports whether two sides name the same runs, in any order.
func SameRuns(a, b []string) bool {
	if len(a) != len(b) || slices.Contains(a, "") {
		return false
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// sameRuns reports whether both sides are the same runs. Files may claim what they are not: the figures count too.
func sameRuns(a, b []MeasuredRun) bool {
	if !SameRuns(ids(a), ids(b)) {
		return false
	}
	for _, m := range a {
		for _, n := range b {
			if m.Summary.RunID == n.Summary.RunID &&
				(m.Summary.Operations != n.Summary.Operations || !equal(m.Summary.QPS, n.Summary.QPS)) {
				return false
			}
		}
	}
	return true
}

func equal(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// compareWithItself is the comparison of runs with themselves.
func compareWithItself(a, b []MeasuredRun) (Comparison, error) {
	note := "A and B are the same run: there is nothing to compare."
	if len(a) > 1 {
		note = "A and B are the same runs: there is nothing to compare."
	}
	c := Comparison{Metrics: []Metric{}, Unlike: []Unlike{}, Verdict: Same, SameRun: true, Notes: []string{note}}
	word := standIn(summaries(a))
	c.addNotes(StandIn{word, word}, Notes(summaries(a), nil)) // a doubt about a run is said once
	if slices.ContainsFunc(a, func(m MeasuredRun) bool { return len(m.Seconds) == 0 }) {
		return c, nil
	}
	full, err := compareSides(seconds(a), seconds(b), begun(a, b), summaryFigures(a, b), Defaults())
	if err != nil {
		return c, fmt.Errorf("comparing a run with itself: %w", err)
	}
	c.SlowerProbability = full.SlowerProbability
	for _, m := range full.Metrics {
		zero, low, high := 0.0, 0.0, 0.0
		c.Metrics = append(c.Metrics,
			Metric{Name: m.Name, Unit: m.Unit, A: m.A, B: m.B, Difference: &zero, Low: &low, High: &high, Verdict: Same,
				Reason: "The same run."})
	}
	return c, nil
}

func ids(side []MeasuredRun) (list []string) {
	for _, m := range side {
		list = append(list, m.Summary.RunID)
	}
	return list
}

func seconds(side []MeasuredRun) (list []Run) {
	for _, m := range side {
		list = append(list, m.Seconds)
	}
	return list
}

func summaries(side []MeasuredRun) (list []engine.Summary) {
	for _, m := range side {
		if m.Summary.Validity != "" { // else it has no figures
			list = append(list, m.Summary)
		}
	}
	return list
}

// summaryFigures are the figures of the two summaries where each side is one run that has them.
func summaryFigures(a, b []MeasuredRun) map[string][2]float64 {
	if len(a) != 1 || len(b) != 1 {
		return nil
	}
	x, y := a[0].Summary, b[0].Summary
	figures := map[string][2]float64{}
	if x.Operations == 0 || y.Operations == 0 {
		return nil
	}
	both := func(name string, a, b *float64) {
		if a != nil && b != nil {
			figures[name] = [2]float64{*a, *b}
		}
	}
	both("qps", x.QPS, y.QPS)
	both("error_rate", x.Errors.Rate, y.Errors.Rate)
	if p, q := x.LatencyMs, y.LatencyMs; p != nil && q != nil {
		figures["avg_ms"] = [2]float64{p.Avg, q.Avg}
		figures["p50_ms"] = [2]float64{p.P50, q.P50}
		figures["p95_ms"] = [2]float64{p.P95, q.P95}
		figures["p99_ms"] = [2]float64{p.P99, q.P99}
	}
	return figures
}
