package report

import (
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

// levelOf names the level of a step.
func levelOf(unit engine.FindMaxUnit, level float64) string {
	switch {
	case unit == engine.FindMaxRate:
		return terminal.Rate(level) + " op/s"
	case level == 1:
		return "1 connection"
	default:
		return terminal.Count(int64(level)) + " connections"
	}
}

// unitOf is what a step varied.
func unitOf(s engine.FindMaxStep) engine.FindMaxUnit {
	if s.TargetQPS != nil {
		return engine.FindMaxRate
	}
	return engine.FindMaxConnections
}

// stepLine is a judged step in a line of at most columns characters.
func stepLine(s engine.FindMaxStep, columns int) string {
	over := ""
	if s.P95VsBaselinePct != nil && s.StepNumber > 1 {
		over = fmt.Sprintf(" (%+.0f %%)", *s.P95VsBaselinePct)
	}
	parts := []linePart{
		{0, fmt.Sprintf("step %-3d %-16s", s.StepNumber, levelOf(unitOf(s), s.Level()))},
		{1, fmt.Sprintf("%8s op/s", terminal.Rate(s.QPS))},
		{3, fmt.Sprintf("P95 %-9s%-9s", terminal.MillisOrNone(s.P95LatencyMs), over)},
		{2, strings.ToLower(string(s.Outcome))},
	}
	if s.Stage == engine.StageConfirming {
		parts = append(parts, linePart{4, "repeated"})
	}
	return fitParts(columns, parts)
}

// searching says where a search is.
func searching(f *engine.FindMaxState, columns int) string {
	level := float64(f.TargetWorkers)
	if f.TargetQPS != nil {
		level = *f.TargetQPS
	}
	if f.CurrentStep == 0 {
		return "searching    " + levelOf(f.Unit, level)
	}
	bounds := ""
	switch {
	case f.LastStable != nil && f.FirstUnstable != nil:
		bounds = fmt.Sprintf("between %s and %s", levelNumber(f.Unit, *f.LastStable), levelNumber(f.Unit, *f.FirstUnstable))
	case f.FirstUnstable != nil:
		bounds = "below " + levelNumber(f.Unit, *f.FirstUnstable)
	}
	step := "step"
	if f.Repeat > 1 {
		step = fmt.Sprintf("search %d of %d, step", f.Repetition, f.Repeat)
	}
	return fitParts(columns, []linePart{
		{0, fmt.Sprintf("searching    %s %d: %s  %s / %s", step, f.CurrentStep, levelOf(f.Unit, level),
			terminal.Duration(f.StepElapsed), terminal.Duration(f.StepDuration))},
		{1, fmt.Sprintf("%s op/s", terminal.RateOrNone(f.QPS))},
		{2, "P95 " + terminal.MillisOrNone(f.CurrentP95Ms)},
		{3, bounds},
	})
}

func levelNumber(unit engine.FindMaxUnit, level float64) string {
	if unit == engine.FindMaxRate {
		return terminal.Rate(level)
	}
	return terminal.Count(int64(level))
}

// confirmationText says how often the answer's level held of the steps that were made at it, and how many of repeated
// searches reach it.
func confirmationText(r *engine.FindMaxResult) string {
	level, _ := r.Level()
	held, tried := 0, 0
	for _, s := range r.History {
		if s.Level() != level {
			continue
		}
		tried++
		if s.Held() {
			held++
		}
	}
	words := fmt.Sprintf("held %d of %d times", held, tried)
	if tried == 1 && held == 1 {
		words = "held once, not repeated"
	}
	if r.Spread == nil {
		return words
	}
	reach := 0
	for _, x := range r.Repetitions {
		if x.Level != nil && *x.Level >= level {
			reach++
		}
	}
	return fmt.Sprintf("%s, %d of %d searches reach it", words, reach, r.Spread.Requested)
}

// printSearch writes the answer of a search and its steps.
func printSearch(p func(string, ...any), r *engine.FindMaxResult) {
	answer := "none"
	if level, ok := r.Level(); ok {
		answer = levelOf(r.Unit, level) + ", " + confirmationText(r)
		if !r.Confirmed && !strings.HasSuffix(answer, "not repeated") {
			answer += ", not confirmed"
		}
	}
	p("limit\t%s", answer)
	p("\t%s", r.Reason)
	if r.LateSteps > 0 && r.Found {
		p("\tSteps that were measured again because the generator was late: %d.", r.LateSteps)
	}
	if r.Found && r.P95LatencyMs != nil {
		p("\t%s op/s there   P50 %s   P95 %s   P99 %s   errors %s", terminal.RateOrNone(r.QPS),
			terminal.MillisOrNone(r.P50LatencyMs), terminal.MillisOrNone(r.P95LatencyMs),
			terminal.MillisOrNone(r.P99LatencyMs), percentOrNone(r.ErrorRate))
	}
	p("")
	if len(r.History) == 0 {
		return
	}
	printRepetitions(p, r)
	p("step\tlevel\top/s\tP50\tP95\tP99\terrors\toutcome\t")
	for _, s := range r.History {
		outcome := strings.ToLower(string(s.Outcome))
		if s.Stage == engine.StageConfirming {
			outcome += ", repeated"
		}
		if r.Spread != nil {
			outcome += fmt.Sprintf(", search %d", s.Repetition)
		}
		p("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", s.StepNumber, levelOf(r.Unit, s.Level()), terminal.Rate(s.QPS),
			terminal.MillisOrNone(s.P50LatencyMs),
			terminal.MillisOrNone(s.P95LatencyMs), terminal.MillisOrNone(s.P99LatencyMs), terminal.Count(s.ErrorCount), outcome)
	}
	p("")
}

// percentOrNone is a fraction in percent, a dash where nobody knows it.
func percentOrNone(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.3g %%", 100**v)
}

// printRepetitions writes the answers of a repeated search and how far they lie apart.
func printRepetitions(p func(string, ...any), r *engine.FindMaxResult) {
	if r.Spread == nil {
		return
	}
	p("search\tlimit\top/s\tP50\tP95\tP99\tsteps\t")
	for _, x := range r.Repetitions {
		answer := "none"
		if x.Level != nil {
			answer = levelOf(r.Unit, *x.Level)
			if !x.Confirmed {
				answer += ", not confirmed"
			}
		}
		p(
			"%d\t%s\t%s\t%s\t%s\t%s\t%d\t",
			x.Repetition,
			answer,
			terminal.RateOrNone(x.QPS),
			terminal.MillisOrNone(x.P50LatencyMs),
			terminal.MillisOrNone(x.P95LatencyMs),
			terminal.MillisOrNone(x.P99LatencyMs),
			x.Steps,
		)
	}
	p("")
	tell := func(what string, d *engine.Dispersion, show func(float64) string) {
		if d == nil {
			return
		}
		text := fmt.Sprintf("%s median %s   min %s   max %s", what, show(d.Median), show(d.Min), show(d.Max))
		if d.CVPct != nil {
			text += fmt.Sprintf("   coefficient of variation %.3g %%", *d.CVPct)
		}
		p("spread\t%s", text)
	}
	// A median may lie between two levels.
	tell("limit", r.Spread.Level, func(v float64) string { return fmt.Sprintf("%.6g", v) })
	tell("op/s", r.Spread.QPS, terminal.Rate)
	p("")
}
