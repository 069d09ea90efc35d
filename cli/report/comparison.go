package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// Comparison writes a comparison for a person.
func Comparison(out io.Writer, c compare.Comparison) {
	notes := c.Notes
	if c.Simulated && len(notes) > 0 {
		// The first note says whose figures these are not: nobody shall read a figure before it.
		_, _ = fmt.Fprintf(out, "%s\n\n", terminal.Shown(notes[0]))
		notes = notes[1:]
	}
	head := func(side, standIn string) string {
		if standIn == "" {
			return side
		}
		return fmt.Sprintf("%s (%s)", side, standIn)
	}
	if text := unlikeText(c.Unlike); text != "" {
		_, _ = fmt.Fprintf(out, "%s\n\n", terminal.Shown(text))
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "metric\t%s\t%s\tcan show\tverdict\t  \t\n", head("A", c.StandIn.A), head("B", c.StandIn.B))
	for _, m := range c.Metrics {
		_, _ = fmt.Fprintf(
			w,
			"%s\t%s\t%s\t%s\t%s\t  %s\n",
			m.Name,
			metricText(m.A, m.Unit),
			metricText(m.B, m.Unit),
			detectableText(m),
			m.Verdict,
			m.Reason,
		)
	}
	_ = w.Flush() // the terminal's trouble
	if c.SlowerProbability != nil {
		_, _ = fmt.Fprintf(out, "\nAn operation of B took longer than one of A with a probability of %.3f (0.5: neither).\n",
			*c.SlowerProbability)
	}
	for _, n := range notes {
		_, _ = fmt.Fprintf(out, "note: %s\n", terminal.Shown(n))
	}
	if c.SameRun {
		return // the note says it all
	}
	by := ""
	if c.Simulated {
		by = ", by figures of a stand-in"
	}
	_, _ = fmt.Fprintf(out, "\nB is %s%s.\n",
		map[compare.Verdict]string{compare.Better: "better", compare.Worse: "worse", compare.Same: "the same",
			compare.Unclear: "neither shown to be better nor worse"}[c.Verdict], by)
}

// unlikeText says in what the sides differ besides what is compared.
func unlikeText(list []compare.Unlike) string {
	var names []string
	for _, u := range list {
		names = append(names, u.What)
	}
	if len(names) == 0 {
		return ""
	}
	return "Not like with like: the runs differ in their " + strings.Join(names, ", ") + "."
}

// detectableText is the smallest difference that the runs can show.
func detectableText(m compare.Metric) string {
	switch {
	case m.Detectable == nil:
		return "–"
	case m.Unit == "fraction":
		return fmt.Sprintf("%.2g pp", *m.Detectable*100)
	}
	return fmt.Sprintf("%.3g %%", *m.Detectable)
}

// metricText writes what a run has of a metric as the summary of a run does; unit is the metric's.
func metricText(v *float64, unit string) string {
	switch {
	case v == nil:
		return "–"
	case unit == "ms":
		return terminal.Millis(*v)
	case unit == "fraction":
		return fmt.Sprintf("%.3g %%", *v*100)
	}
	return terminal.Rate(*v)
}

// ComparisonCSV writes the metrics of a comparison for spreadsheets, with all digits; what is not known is empty.
func ComparisonCSV(out io.Writer, c compare.Comparison) error {
	w := csv.NewWriter(out)
	w.UseCRLF = true
	digits := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	whole := func(v *int) string {
		if v == nil {
			return ""
		}
		return strconv.Itoa(*v)
	}
	rows := [][]string{{"metric", "unit", "a", "b", "difference", "low", "high", "detectable", "more_runs", "verdict",
		"reason"}}
	for _, m := range c.Metrics {
		rows = append(rows, []string{m.Name, m.Unit, digits(m.A), digits(m.B), digits(m.Difference), digits(m.Low),
			digits(m.High), digits(m.Detectable), whole(m.MoreRuns), string(m.Verdict), m.Reason})
	}
	return w.WriteAll(rows)
}
