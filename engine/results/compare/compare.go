package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// Second is one second of a measurement.
type Second = engine.MeasuredSecond

// Run is the measurement of one run, in whole seconds.
type Run []Second

// MaxSeconds is how many elements the runs of one comparison should have in all: it
// costs about their number, and no interval gets better by more of them.
const MaxSeconds = 7200

// Downsample returns the run in at most so many elements, each the same number of
// neighbours merged; the last may be shorter.
func (r Run) Downsample(most int) (Run, error) {
	if len(r) <= most || most < 1 {
		return r, nil
	}
	step := (len(r) + most - 1) / most
	thin := make(Run, 0, (len(r)+step-1)/step)
	for first := 0; first < len(r); first += step {
		var s Second
		h := histogram.New()
		for _, second := range r[first:min(first+step, len(r))] {
			s.Operations += second.Operations
			s.Errors += second.Errors
			s.CarriedOver += second.CarriedOver
			s.Seconds += second.Length()
			if err := h.MergeData(second.Latency); err != nil {
				return nil, fmt.Errorf("merging seconds: %w", err)
			}
		}
		if h.Count() > 0 {
			s.Latency = h.Data()
		}
		thin = append(thin, s)
	}
	return thin, nil
}

// Verdict is the judgement of one metric, or of the comparison.
type Verdict string

// The verdicts, from the point of view of B.
const (
	Better  Verdict = "better"
	Worse   Verdict = "worse"
	Same    Verdict = "same"
	Unclear Verdict = "unclear"
)

// Options bound what counts as a difference.
type Options struct {
	// TolerancePct is the least relative difference that matters, in percent.
	TolerancePct float64
	// ErrorTolerance is the least difference of error rates that matters, as a fraction.
	ErrorTolerance float64
}

// Defaults are the tolerances used when a user names none.
func Defaults() Options { return Options{TolerancePct: 5, ErrorTolerance: 0.001} }

// Metric compares one figure.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// A and B are the figures; null without an execution.
	A *float64 `json:"a"`
	B *float64 `json:"b"`
	// Difference is B against A: in percent, or for error_rate as a fraction.
	// Low and High enclose it with 99 % confidence. Null where there is no figure.
	Difference *float64 `json:"difference"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	// Detectable is the smallest difference that these runs can show, as Difference is measured. MoreRuns is how many more
	// runs each side needs to show one of the tolerance: 0 when these do, null when fifty would not.
	Detectable *float64 `json:"detectable"`
	MoreRuns   *int     `json:"more_runs"`
	Verdict    Verdict  `json:"verdict"`
	// Reason is the verdict in a sentence.
	Reason string `json:"reason"`
}

// Comparison is the result.
type Comparison struct {
	// Simulated: figures of a stand-in are among those compared.
	Simulated bool `json:"simulated"`
	// StandIn tells of which sides.
	StandIn StandIn  `json:"stand_in"`
	Metrics []Metric `json:"metrics"`
	// SlowerProbability is the Mann–Whitney effect size: how likely an execution
	// of B took longer than one of A (0.5: neither). Null without executions.
	SlowerProbability *float64 `json:"slower_probability"`
	// Verdict is worse when any metric is, else better when any is, else unclear when
	// any is or nothing but the error rates can be compared, else same. Of runs that were measured
	// for less than 20 s together it is always unclear, and so are their metrics.
	Verdict Verdict `json:"verdict"`
	// Unlike is in what the sides differ besides what is compared; empty where like is compared with like. Where it is
	// their workload, load or tables nothing is judged.
	Unlike []Unlike `json:"unlike"`
	// SameRun: both sides are the same runs, so there is nothing to compare.
	SameRun bool `json:"same_run"`
	// Notes are reasons for care, in sentences.
	Notes []string `json:"notes"`
}

// metric is a figure computed from a draw. higher tells which way is better.
type metric struct {
	name, unit string
	higher     bool
	// usual is the standard deviation of the figure between runs of one system, as a fraction; see between.go.
	usual  float64
	figure func(*draw) float64
}

var metrics = []metric{
	{"qps", "per second", true, 0.03, func(d *draw) float64 { return float64(d.rated) / d.seconds }},
	{"error_rate", "fraction", false, 0, func(d *draw) float64 { return float64(d.errors) / float64(d.operations) }},
	{"avg_ms", "ms", false, 0.03, func(d *draw) float64 { return d.sum / float64(d.count) / 1e6 }},
	{"p50_ms", "ms", false, 0.03, func(d *draw) float64 { return d.quantile(0.50) / 1e6 }},
	{"p95_ms", "ms", false, 0.04, func(d *draw) float64 { return d.quantile(0.95) / 1e6 }},
	{"p99_ms", "ms", false, 0.06, func(d *draw) float64 { return d.quantile(0.99) / 1e6 }},
}

const (
	bootstrapRounds = 1000
	// confidence is the part of the draws within the interval. Six metrics are judged
	// at once: at 95 % each, one comparison of a target with itself in eight would find a difference.
	confidence = 0.99
	// minBlocks is how many blocks a side needs for an interval that means anything.
	minBlocks = 8
)

// MinSeconds is how long a measurement takes at least whose figures can be held against others.
const MinSeconds = 20

// TooShort reports that so many seconds of measurement are too few to judge by. Those of a run's edges may be a little
// shorter than a second, and a measurement of 20 s is one of 20 s.
func TooShort(seconds float64) bool { return seconds < MinSeconds-0.5 }

// compareSides compares the runs of side B with those of side A, at least one each;
// shown, where given, are the figures of A and B as their summaries have them, by the
// name of the metric. The draws come from a fixed seed.
func compareSides(a, b []Run, begun [2][]float64, shown map[string][2]float64, o Options) (Comparison, error) {
	sideA, err := newSide(a)
	if err != nil {
		return Comparison{}, fmt.Errorf("reading the first run: %w", err)
	}
	sideB, err := newSide(b)
	if err != nil {
		return Comparison{}, fmt.Errorf("reading the second run: %w", err)
	}
	setOrder(sideA, sideB, begun)
	c := Comparison{
		Notes:             []string{},
		Unlike:            []Unlike{},
		SlowerProbability: slowerProbability(sideA.pooled(), sideB.pooled()),
	}
	for _, side := range []struct {
		name string
		s    *side
	}{{"A", sideA}, {"B", sideB}} {
		if n := side.s.seconds; TooShort(n) {
			c.Notes = append(c.Notes, fmt.Sprintf("Side %s has only %.3g seconds of measurement; intervals from so few are "+
				"too narrow, so nothing is judged. Measure for half a minute or more.", side.name, n))
		}
	}
	switch {
	case len(a) == 1 && len(b) == 1:
		c.Notes = append(
			c.Notes,
			"One run on each side: how much runs of the same system differ here is not known, and taken "+
				"as usual. Repeat the runs and give several for each side to learn it.",
		)
	case apart(sideA, sideB):
		c.Notes = append(
			c.Notes,
			"All runs of one side began before those of the other: what changes with time looks like a "+
				"difference. Alternate them: A, B, A, B.",
		)
	}
	draws := draws(sideA, sideB)
	for _, m := range metrics {
		c.Metrics = append(c.Metrics, m.compare(sideA, sideB, draws, shown, o))
	}
	c.Verdict = overall(c.Metrics)
	return c, nil
}

// pair is one round of the bootstrap.
type pair struct{ a, b [6]float64 }

// draws computes every metric for every round, so that the draw's distribution need not be kept.
func draws(a, b *side) []pair {
	rng := rand.New(rand.NewPCG(0x10ad, 0x570e))
	pairs := make([]pair, bootstrapRounds)
	var d draw
	for i := range pairs {
		a.draw(rng, &d)
		for k, m := range metrics {
			pairs[i].a[k] = m.figure(&d)
		}
		b.draw(rng, &d)
		for k, m := range metrics {
			pairs[i].b[k] = m.figure(&d)
		}
	}
	return pairs
}

func (m metric) compare(a, b *side, pairs []pair, shown map[string][2]float64, o Options) Metric {
	r := Metric{Name: m.name, Unit: m.unit, Verdict: Unclear}
	figure := func(d *draw) *float64 {
		if d.count == 0 && m.name != "qps" {
			return nil
		}
		v := m.figure(d)
		return &v
	}
	r.A, r.B = figure(a.pooled()), figure(b.pooled())
	if r.A == nil || r.B == nil {
		r.Reason = "One side has no executions to compare."
		return r
	}
	rate := m.name == "error_rate"
	difference := func(a, b float64) float64 {
		if rate {
			return b - a
		}
		return (b - a) / a * 100
	}
	tolerance := o.TolerancePct
	if rate {
		tolerance = o.ErrorTolerance
	}
	k := slices.IndexFunc(metrics, func(x metric) bool { return x.name == m.name })
	seen := make([]float64, 0, len(pairs))
	for _, p := range pairs {
		if v := difference(p.a[k], p.b[k]); finite(v) {
			seen = append(seen, v)
		}
	}
	drawn := difference(*r.A, *r.B)
	// A reader reckons with the figures that are shown: exact ones, where the draws have those of histograms.
	if exact, ok := shown[m.name]; ok {
		r.A, r.B = &exact[0], &exact[1]
	}
	diff := difference(*r.A, *r.B)
	if len(seen) < len(pairs)/2 || a.blocks() < 2 || b.blocks() < 2 || !finite(diff) || !finite(drawn) {
		r.Reason = "There is too little of it on one side to compare."
		return r
	}
	slices.Sort(seen)
	wide := smallSampleFactor(min(a.blocks(), b.blocks())) * math.Sqrt((a.inflation+b.inflation)/2)
	within := func(q float64) float64 { return wide * (seen[int(q*float64(len(seen)-1)+0.5)] - drawn) }
	runs := between(m, a, b)
	apart := runs.halfWidth(rate)
	low := diff - math.Hypot(within((1-confidence)/2), apart)
	high := diff + math.Hypot(within((1+confidence)/2), apart)
	shows := max(diff-low, high-diff)
	r.Difference, r.Low, r.High, r.Detectable = &diff, &low, &high, &shows
	r.MoreRuns = runs.advice(shows, tolerance, rate)
	excludes := *r.Low > 0 || *r.High < 0
	switch {
	case excludes && math.Abs(diff) >= tolerance:
		r.Verdict = Worse
		if (diff > 0) == m.higher {
			r.Verdict = Better
		}
	case *r.Low >= -tolerance && *r.High <= tolerance:
		r.Verdict = Same
	case len(a.runs) == 1 && len(b.runs) == 1 && diff+within((1-confidence)/2) >= -tolerance &&
		diff+within((1+confidence)/2) <= tolerance:
		// Nothing was seen, and one run on each side cannot see more.
		r.Verdict = Same
		r.Reason = fmt.Sprintf(
			"%+.2f%s, within the tolerance of %s as far as one run on each side tells. %s",
			diff*scaleOf(rate),
			unitOf(rate),
			limitText(tolerance, rate),
			r.wanted(limitText(tolerance, rate), rate),
		)
		return r
	}
	r.Reason = r.sentence(tolerance, rate)
	if r.Verdict == Unclear {
		r.Reason += " " + r.wanted(limitText(tolerance, rate), rate)
	}
	return r
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// unitOf and scaleOf say how a difference is written.
func unitOf(rate bool) string {
	if rate {
		return " percentage points"
	}
	return " %"
}

func scaleOf(rate bool) float64 {
	if rate {
		return 100
	}
	return 1
}

func (r Metric) sentence(tolerance float64, rate bool) string {
	unit, scale := unitOf(rate), scaleOf(rate)
	span := fmt.Sprintf("%+.2f%s (99 %%: %+.2f to %+.2f)", *r.Difference*scale, unit, *r.Low*scale, *r.High*scale)
	limit := limitText(tolerance, rate)
	switch r.Verdict {
	case Better, Worse:
		return fmt.Sprintf("%s, at least the tolerance of %s and not by chance.", span, limit)
	case Same:
		return fmt.Sprintf("%s, within the tolerance of %s.", span, limit)
	default:
		if math.Abs(*r.Difference) >= tolerance {
			return fmt.Sprintf("%s: beyond the tolerance of %s, but it may be chance.", span, limit)
		}
		return fmt.Sprintf("%s: a difference of more than %s can be neither shown nor excluded.", span, limit)
	}
}

func limitText(tolerance float64, rate bool) string {
	return fmt.Sprintf("%.3g%s", tolerance*scaleOf(rate), unitOf(rate))
}

// wanted says what the runs can show, and how many more would show the tolerance.
func (r Metric) wanted(tolerance string, rate bool) string {
	text := fmt.Sprintf("These runs can show %s.", limitText(*r.Detectable, rate))
	switch {
	case r.MoreRuns == nil:
		return text + fmt.Sprintf(" %d more on each side would not show %s.", maxMoreRuns, tolerance)
	case *r.MoreRuns == 1:
		return text + fmt.Sprintf(" 1 more run on each side would show %s.", tolerance)
	case *r.MoreRuns > 1:
		return text + fmt.Sprintf(" %d more runs on each side would show %s.", *r.MoreRuns, tolerance)
	}
	return text
}

func overall(metrics []Metric) Verdict {
	for _, v := range []Verdict{Worse, Better, Unclear} {
		if slices.ContainsFunc(metrics, func(m Metric) bool { return m.Verdict == v && m.Difference != nil }) {
			return v
		}
	}
	// Error rates alone, where runs are too short for the rest, make no two runs the same.
	if !slices.ContainsFunc(metrics, func(m Metric) bool { return m.Difference != nil && m.Name != "error_rate" }) {
		return Unclear
	}
	return Same
}
