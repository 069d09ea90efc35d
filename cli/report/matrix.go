package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/matrix"
)

// Matrix writes the result for a person: a table, then what failed.
func Matrix(out io.Writer, r matrix.Report) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	p := terminal.LinePrinter(w)
	p("")
	p("%s  %s", r.Name, strings.ToLower(string(r.Status)))
	p("  matrix %s", r.MatrixID)
	if note := standInsNotice(r); note != "" {
		p("  %s", note)
	}
	p("")
	searched := slices.ContainsFunc(r.Targets, func(t matrix.TargetReport) bool {
		return t.Summary != nil &&
			t.Summary.FindMax != nil
	})
	head := "target\tresult\t"
	if searched {
		head += "limit\t"
	}
	paid := slices.ContainsFunc(r.Targets, func(t matrix.TargetReport) bool { return perMillion(t.Summary) != "" })
	cost := ""
	if paid {
		cost = "cost of a million\t"
	}
	p("%sop/s\tP50\tP95\tP99\terrors\tvalidity\t%sagainst %s", head, cost, r.Labels[0])
	for _, t := range r.Targets {
		label := terminal.Shown(labelOf(t))
		s := t.Summary
		if s == nil || s.LatencyMs == nil {
			p("%s\t%s%s", label, strings.ToLower(string(t.Status)), strings.Repeat("\t", strings.Count(head+cost, "\t")+5))
			continue
		}
		line := fmt.Sprintf("%s\t%s\t", label, resultOf(t))
		if searched {
			limit := "none"
			if level, ok := s.FindMax.Level(); ok {
				limit = levelOf(s.FindMax.Unit, level)
			}
			line += limit + "\t"
		}
		if paid {
			cost = cmp.Or(perMillion(s), "–") + "\t"
		}
		p("%s%s\t%s\t%s\t%s\t%s\t%s\t%s%s", line, terminal.RateOrNone(s.QPS), terminal.Millis(s.LatencyMs.P50),
			terminal.Millis(s.LatencyMs.P95),
			terminal.Millis(s.LatencyMs.P99), terminal.Count(s.Errors.Count),
			s.VerdictText(), cost, againstOf(t))
	}
	p("")
	if err := flush(w); err != nil {
		return err
	}
	say := terminal.LinePrinter(out)
	for _, t := range r.Targets {
		s := t.Summary
		if s == nil {
			say("%s: %s, without figures", labelOf(t), strings.ToLower(string(t.Status)))
			continue
		}
		if s.CancellationReason != nil && *s.CancellationReason != "" {
			say("%s: %s", t.Label, *s.CancellationReason)
		}
		if t.Status == engine.StatusCompleted && !s.HasSuccess() {
			say("%s: %s", t.Label, allFailedReason(s))
		}
		for _, th := range s.Thresholds {
			if !th.Passed && t.Status == engine.StatusCompleted {
				say("%s: threshold %s FAILED: %s", t.Label, th.Threshold, th.Reason)
			}
		}
		for _, cause := range s.ValidityDetail.Causes {
			say("%s: %s: %s", t.Label, cause.Cause, cause.Detail)
		}
		if s.Cost != nil {
			printCost(func(format string, args ...any) {
				line := strings.ReplaceAll(strings.TrimPrefix(fmt.Sprintf(format, args...), "\t"), "\t", ": ")
				say("%s: %s", t.Label, line)
			}, s.Cost, s.StandInLabel())
		}
	}
	return nil
}

// labelOf names a target, and the stand-in that answered in its place.
func labelOf(t matrix.TargetReport) string {
	if word := engine.StandInLabel(t.Simulated, t.Emulated); word != "" {
		return fmt.Sprintf("%s (%s)", t.Label, word)
	}
	return t.Label
}

// standInsNotice says before the table whose figures are no database's, empty when all are.
func standInsNotice(r matrix.Report) string {
	var of []string
	for _, t := range r.Targets {
		if word := engine.StandInLabel(t.Simulated, t.Emulated); word != "" {
			of = append(of, fmt.Sprintf("%s (%s)", t.Label, word))
		}
	}
	switch {
	case len(of) == 0:
		return ""
	case len(of) == len(r.Targets):
		return "All figures are a stand-in's: they say nothing about the real database."
	}
	return "Simulated figures stand beside real ones: those of " + strings.Join(of, ", ") +
		" are a stand-in's, so the differences say nothing."
}

// perMillion is the price of a million operations, empty where nobody knows it.
func perMillion(s *engine.Summary) string {
	if s == nil || s.Cost == nil || s.Cost.PricePerMillion == nil {
		return ""
	}
	return fmt.Sprintf("%.3g %s", *s.Cost.PricePerMillion, s.Cost.Currency)
}

func resultOf(t matrix.TargetReport) string {
	text := strings.ToLower(string(t.Status))
	if t.Status == engine.StatusCompleted && len(t.Summary.Thresholds) > 0 {
		text = "passed"
		if !t.Summary.HasSuccess() {
			text = "nothing worked"
		} else if !t.Summary.Passed {
			text = "thresholds failed"
		}
	}
	return text
}

// againstOf is the comparison with the first target in a few words.
func againstOf(t matrix.TargetReport) string {
	if t.Comparison == nil {
		if t.Problem != "" {
			return "–"
		}
		return "baseline"
	}
	verdict := string(t.Comparison.Verdict)
	if t.Comparison.StandIn.Mixed() {
		verdict += ", but " + cmp.Or(t.Comparison.StandIn.B, "real") + " against " + cmp.Or(t.Comparison.StandIn.A, "real")
	}
	var parts []string
	for _, m := range t.Comparison.Metrics {
		if m.Difference != nil && (m.Name == "qps" || m.Name == "p95_ms") {
			parts = append(parts, fmt.Sprintf("%s %+.1f %%", strings.TrimSuffix(m.Name, "_ms"), *m.Difference))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%s (too short to compare)", verdict)
	}
	return fmt.Sprintf("%s (%s)", verdict, strings.Join(parts, ", "))
}
