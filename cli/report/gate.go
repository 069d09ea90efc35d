package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// GateVerdict is what a gate says.
type GateVerdict string

// The verdicts of a gate.
const (
	GateBetter     GateVerdict = "better"
	GateSame       GateVerdict = "same"
	GateWorse      GateVerdict = "worse"
	GateCannotTell GateVerdict = "cannot_tell"
)

// GateResult is the result of a gate, as --out writes it.
type GateResult struct {
	Verdict  GateVerdict `json:"verdict"`
	Reason   string      `json:"reason"`
	Template string      `json:"test_name"`
	// Seed drew the order of the runs.
	Seed           uint64  `json:"seed"`
	MaxSlowdownPct float64 `json:"max_slowdown_pct"`
	BudgetSeconds  float64 `json:"budget_seconds"`
	TookSeconds    float64 `json:"took_seconds"`
	compare.Rounds
	// LeftOut says of each pair that was not counted why.
	LeftOut []string  `json:"left_out"`
	Runs    []GateRun `json:"runs"`
}

// GateRun is a run of a gate. Those of round 0 warm up.
type GateRun struct {
	Round    int            `json:"round"`
	Side     string         `json:"side"`
	RunID    string         `json:"run_id"`
	Validity engine.Verdict `json:"validity"`
	QPS      *float64       `json:"qps"`
	P50Ms    *float64       `json:"p50_ms"`
	P95Ms    *float64       `json:"p95_ms"`
	P99Ms    *float64       `json:"p99_ms"`
	Errors   int64          `json:"errors"`
}

// GateRunOf makes it of a run's summary; nil where it has none.
func GateRunOf(round int, side string, s *engine.Summary) GateRun {
	r := GateRun{Round: round, Side: side}
	if s == nil {
		return r
	}
	r.RunID, r.Validity, r.QPS, r.Errors = s.RunID, s.Validity, s.QPS, s.Errors.Count
	if l := s.LatencyMs; l != nil {
		r.P50Ms, r.P95Ms, r.P99Ms = &l.P50, &l.P95, &l.P99
	}
	return r
}

// GateRunLine is a run on the terminal.
func GateRunLine(round int, side string, s *engine.Summary) string {
	name := fmt.Sprintf("round %d", round)
	if round == 0 {
		name = "warm-up"
	}
	r := GateRunOf(round, side, s)
	return fmt.Sprintf("%-9s %-9s %12s/s   P50 %s   P95 %s   P99 %s", name, side, terminal.RateOrNone(r.QPS),
		terminal.MillisOrNone(r.P50Ms), terminal.MillisOrNone(r.P95Ms), terminal.MillisOrNone(r.P99Ms))
}

// GateSoFar writes the differences after a round, and how many more rounds the limit needs.
func GateSoFar(r compare.Rounds, o compare.RoundOptions) string {
	var parts []string
	for _, m := range r.Metrics {
		if m.Judged && m.Difference != nil {
			parts = append(parts, m.Name+" "+differenceText(m))
		}
	}
	text := fmt.Sprintf("%d rounds: %s", r.Count, strings.Join(parts, ", "))
	if more := moreRounds(r); r.Verdict == compare.Unclear && more != nil && *more > 0 {
		text += fmt.Sprintf("; %s would show %.3g %%", plural(*more, "more round", "more rounds"), o.LimitPct)
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// moreRounds is how many more rounds all judged metrics need, nil where that is not known.
func moreRounds(r compare.Rounds) (most *int) {
	for _, m := range r.Metrics {
		if !m.Judged || m.A == nil {
			continue
		}
		if m.MoreRounds == nil {
			return nil
		}
		if most == nil || *m.MoreRounds > *most {
			most = m.MoreRounds
		}
	}
	return most
}

// signed writes a difference: percent, or percentage points of an error rate.
func signed(m compare.RoundMetric, v *float64) string {
	switch {
	case v == nil:
		return "–"
	case m.Unit == "fraction":
		return strings.ReplaceAll(fmt.Sprintf("%+.2f pp", *v*100), "-", "−")
	}
	return strings.ReplaceAll(fmt.Sprintf("%+.1f %%", *v), "-", "−")
}

// differenceText is a difference with what encloses it.
func differenceText(m compare.RoundMetric) string {
	if m.Low == nil || m.High == nil {
		return signed(m, m.Difference)
	}
	return fmt.Sprintf("%s (%s to %s)", signed(m, m.Difference), signed(m, m.Low), signed(m, m.High))
}

// Conclude says what the rounds mean. failed is why a run of the candidate failed, ended why there were no more rounds.
func (r *GateResult) Conclude(failed, ended string) {
	switch {
	case failed != "":
		r.Verdict, r.Reason = GateWorse, "A run of the candidate failed: "+failed
	case r.Drift != "":
		r.Verdict, r.Reason = GateCannotTell, r.Drift
	case r.Rounds.Verdict == compare.Worse:
		r.Verdict, r.Reason = GateWorse, "The candidate is slower: "+r.which(compare.Worse)+"."
	case r.Rounds.Verdict == compare.Better:
		r.Verdict, r.Reason = GateBetter, "The candidate is faster: "+r.which(compare.Better)+"."
	case r.Rounds.Verdict == compare.Same:
		r.Verdict, r.Reason = GateSame, fmt.Sprintf("Both are the same within %.3g %%.", r.MaxSlowdownPct)
	default:
		r.Verdict = GateCannotTell
		r.Reason = fmt.Sprintf("Neither a difference nor its absence is sure after %s", plural(r.Count, "round", "rounds"))
		if ended != "" {
			r.Reason += ": " + ended
		}
		r.Reason += "." + r.couldSee()
	}
}

// which lists the metrics with a verdict.
func (r *GateResult) which(v compare.Verdict) string {
	var parts []string
	for _, m := range r.Metrics {
		if m.Verdict == v {
			parts = append(parts, m.Name+" "+differenceText(m))
		}
	}
	return strings.Join(parts, ", ")
}

// couldSee says what the rounds can show, and what more would.
func (r *GateResult) couldSee() string {
	var worst *compare.RoundMetric
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.Judged && m.Unit != "fraction" && m.Detectable != nil &&
			(worst == nil || *m.Detectable > *worst.Detectable) {
			worst = m
		}
	}
	if worst == nil {
		return fmt.Sprintf(" At least %d rounds are needed.", compare.MinRounds)
	}
	text := fmt.Sprintf(" These rounds can show a difference of %.2g %% in %s", *worst.Detectable, worst.Name)
	if more := moreRounds(r.Rounds); more == nil {
		text += fmt.Sprintf("; 500 more would not show %.3g %%", r.MaxSlowdownPct)
	} else if *more > 0 {
		text += fmt.Sprintf("; %s would show %.3g %%", plural(*more, "more round", "more rounds"), r.MaxSlowdownPct)
	} else {
		text += fmt.Sprintf("; the difference is too close to %.3g %% to be told from it", r.MaxSlowdownPct)
	}
	return text + "."
}

// headline is the verdict and its reason in a line.
func (r *GateResult) headline() string {
	return strings.ReplaceAll(string(r.Verdict), "_", " ") + ". " + r.Reason
}

// Gate writes the result for a person.
func Gate(out io.Writer, r GateResult) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "metric\tbase\tcandidate\tdifference\tnoise of the base\tverdict\t\n")
	for _, m := range r.Metrics {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", m.Name, metricText(m.A, m.Unit), metricText(m.B, m.Unit),
			differenceText(m), noiseText(m), gateWord(m))
	}
	_ = w.Flush() // the terminal's trouble
	for _, why := range r.LeftOut {
		_, _ = fmt.Fprintf(out, "left out: %s\n", terminal.Shown(why))
	}
	_, _ = fmt.Fprintf(
		out,
		"\n%d rounds in %.0f s, seed %d\n%s\n",
		r.Count,
		r.TookSeconds,
		r.Seed,
		terminal.OneLine(r.headline()),
	)
}

func noiseText(m compare.RoundMetric) string {
	switch {
	case m.Floor == nil:
		return "–"
	case m.Unit == "fraction":
		return fmt.Sprintf("%.2g pp", *m.Floor*100)
	}
	return fmt.Sprintf("%.2g %%", *m.Floor)
}

// gateWord is the verdict of a metric.
func gateWord(m compare.RoundMetric) string {
	switch {
	case m.Verdict != compare.Unclear:
		return string(m.Verdict)
	case m.Judged:
		return "cannot tell"
	}
	return "not judged"
}

// GateMarkdown writes the result for the summary of a CI job or a comment.
func GateMarkdown(out io.Writer, r GateResult) error {
	mark := map[GateVerdict]string{GateBetter: "✅", GateSame: "✅", GateWorse: "❌", GateCannotTell: "❔"}[r.Verdict]
	var b strings.Builder
	fmt.Fprintf(&b, "### %s Loadstone: %s\n\n%s\n\n", mark, markdown(strings.ReplaceAll(string(r.Verdict), "_", " ")),
		markdown(r.Reason))
	b.WriteString("| | base | candidate | difference | noise of the base | |\n| --- | ---: | ---: | ---: | ---: | --- |\n")
	for _, m := range r.Metrics {
		fmt.Fprintf(
			&b,
			"| %s | %s | %s | %s | %s | %s |\n",
			markdown(m.Name),
			metricText(m.A, m.Unit),
			metricText(m.B, m.Unit),
			differenceText(m),
			noiseText(m),
			gateWord(m),
		)
	}
	fmt.Fprintf(&b, "\n%d rounds in %.0f s. Template %s, seed %d.\n", r.Count, r.TookSeconds, markdown(r.Template), r.Seed)
	for _, why := range r.LeftOut {
		fmt.Fprintf(&b, "\n- left out: %s", markdown(why))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// markdown keeps a text from being markup.
func markdown(text string) string {
	return strings.NewReplacer(
		"\\",
		"\\\\",
		"|",
		"\\|",
		"<",
		"&lt;",
		"_",
		"\\_",
		"*",
		"\\*",
		"`",
		"\\`",
		"[",
		"\\[",
	).Replace(
		terminal.OneLine(text),
	)
}

// GateJUnit writes the result as CI systems read it: a case for the gate, and one for each metric.
func GateJUnit(out io.Writer, r GateResult) error {
	suite := junitSuite{Name: printable(r.Template), Time: r.TookSeconds}
	add := func(name string, worse, unknown bool, text string) {
		c := junitCase{
			Class:  printable("loadstone.gate." + r.Template),
			Name:   name,
			Time:   r.TookSeconds,
			Output: printable(text),
		}
		if worse {
			c.Failure = &junitFailure{Message: printable(text), Type: "slower"}
			suite.Failures++
		} else if unknown {
			c.Skipped = &junitSkipped{printable(text)}
			suite.Skipped++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, c)
	}
	add("gate", r.Verdict == GateWorse, r.Verdict == GateCannotTell, r.Reason)
	for _, m := range r.Metrics {
		add(m.Name, m.Verdict == compare.Worse, m.Verdict == compare.Unclear, differenceText(m))
	}
	return writeXML(out, suite)
}
