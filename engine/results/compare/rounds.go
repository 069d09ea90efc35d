package compare

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/loadstone-db/loadstone/engine"
)

// A gate measures two sides in pairs of runs that follow each other, in an order that is drawn, until the difference is
// known well enough. Since it looks after each pair, an interval for a fixed number of pairs would be wrong far too
// often. The intervals here hold at all numbers of pairs together: they are confidence sequences for the mean of normal
// values whose deviation is unknown, by a mixture of t statistics over effects of a few deviations (Lai 1976; Wang
// and Ramdas, "Anytime-valid t-tests", 2023).

// Round is a pair of runs. A is the base, B the candidate.
type Round struct {
	A, B engine.Figures
	// BFirst: the candidate was measured before the base.
	BFirst bool
}

// RoundOptions say what a gate is to find out.
type RoundOptions struct {
	// LimitPct is the least difference that matters, in percent: a candidate that was measured to be slower by this or
	// more, and surely is by half of it, is worse.
	LimitPct float64
	// ErrorLimit is that of error rates, as a fraction.
	ErrorLimit float64
	// Judged are the metrics that must be known before the gate may say same or better; a metric that is not among
	// them can make it worse all the same.
	Judged []string
}

// DefaultRoundOptions are those of a gate whose user names none.
func DefaultRoundOptions() RoundOptions {
	return RoundOptions{LimitPct: 3, ErrorLimit: 0.001, Judged: []string{"qps", "p50_ms", "p95_ms", "error_rate"}}
}

const (
	// falseWorse is how often a gate of identical sides may be worse, with all metrics and all numbers of rounds together.
	falseWorse = 0.01
	// MinRounds are needed before anything is judged.
	MinRounds = 4
	// maxMoreRounds bounds how many more rounds are advised.
	maxMoreRounds = 500
	// minDriftRounds are needed to see that rounds are not alike, and driftT how sure that must be: in deviations of the
	// slope, about 1 in 10 000 for so few rounds.
	minDriftRounds, driftT = 8, 6
	// effectVariance is that of the effects of the mixture, in variances of a round.
	effectVariance = 8
)

// RoundMetric is what a gate knows of a metric.
type RoundMetric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// A and B are the geometric means over the rounds, of error rates the means.
	A *float64 `json:"a"`
	B *float64 `json:"b"`
	// Difference is B against A in percent, of error rates as a fraction; Low and High enclose it, whenever one looks.
	Difference *float64 `json:"difference"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	// Detectable is the smallest difference that these rounds can show, Floor by how much two runs of the base in
	// succession differ (one standard deviation), both as Difference is measured.
	Detectable *float64 `json:"detectable"`
	Floor      *float64 `json:"floor"`
	// MoreRounds is how many more rounds would tell the limit from half of it: 0 when these do, null when 500 would not.
	MoreRounds *int    `json:"more_rounds"`
	Verdict    Verdict `json:"verdict"`
	// Judged: the gate waits until this metric is known.
	Judged bool `json:"judged"`
}

// Rounds is what a gate knows.
type Rounds struct {
	Count   int           `json:"rounds"`
	Metrics []RoundMetric `json:"metrics"`
	Verdict Verdict       `json:"verdict"`
	// Drift says that the difference changed from round to round, so that there is not one difference; empty where it did
	// not. Nothing is judged then.
	Drift string `json:"drift,omitempty"`
}

// roundMetric is a metric of a run: ok is false where it has none.
type roundMetric struct {
	name, unit string
	higher     bool
	rate       bool
	of         func(*engine.Figures) (v float64, ok bool)
}

func latencyOf(of func(*engine.LatencyMs) float64) func(*engine.Figures) (float64, bool) {
	return func(f *engine.Figures) (float64, bool) {
		if f.LatencyMs == nil {
			return 0, false
		}
		v := of(f.LatencyMs)
		return v, v > 0
	}
}

var roundMetrics = []roundMetric{
	{"qps", "per second", true, false, func(f *engine.Figures) (float64, bool) {
		if f.QPS == nil {
			return 0, false
		}
		return *f.QPS, *f.QPS > 0
	}},
	{"error_rate", "fraction", false, true, func(f *engine.Figures) (float64, bool) {
		if f.Operations == 0 {
			return 0, false
		}
		return float64(f.Errors.Count) / float64(f.Operations), true
	}},
	{"p50_ms", "ms", false, false, latencyOf(func(l *engine.LatencyMs) float64 { return l.P50 })},
	{"p95_ms", "ms", false, false, latencyOf(func(l *engine.LatencyMs) float64 { return l.P95 })},
	{"p99_ms", "ms", false, false, latencyOf(func(l *engine.LatencyMs) float64 { return l.P99 })},
}

// RoundMetricNames are the metrics of a gate.
func RoundMetricNames() (names []string) {
	for _, m := range roundMetrics {
		names = append(names, m.name)
	}
	return names
}

// JudgeRounds says what the rounds so far tell, in the order in which they were measured. It is pure, and may be asked
// after each round: what it says is wrong as seldom as if it were asked once.
func JudgeRounds(rounds []Round, o RoundOptions) Rounds {
	r := Rounds{Count: len(rounds), Verdict: Unclear}
	// Either side of an interval is as likely to fail, and only one of them is called worse.
	alpha := 2 * falseWorse / float64(len(roundMetrics))
	for _, m := range roundMetrics {
		judged := m.judge(rounds, alpha, o)
		judged.Judged = slices.Contains(o.Judged, m.name)
		r.Metrics = append(r.Metrics, judged)
	}
	if r.Drift = drift(rounds, o); r.Drift != "" {
		for i := range r.Metrics {
			r.Metrics[i].Verdict = Unclear
		}
		return r
	}
	r.Verdict = r.overall()
	return r
}

// overall is worse when any metric is; else all that are judged have to be known.
func (r *Rounds) overall() Verdict {
	verdict, known := Same, 0
	for _, m := range r.Metrics {
		switch {
		case m.Verdict == Worse:
			return Worse
		case !m.Judged || m.A == nil:
		case m.Verdict == Unclear:
			verdict = Unclear
		case m.Verdict == Better && verdict == Same:
			verdict = Better
		}
		if m.Judged && m.A != nil {
			known++
		}
	}
	if known == 0 {
		return Unclear
	}
	return verdict
}

// pairs are the metric of both sides for each round that has it.
func (m roundMetric) pairs(rounds []Round) (a, b []float64) {
	for i := range rounds {
		va, okA := m.of(&rounds[i].A)
		vb, okB := m.of(&rounds[i].B)
		if okA && okB {
			a, b = append(a, va), append(b, vb)
		}
	}
	return a, b
}

// differences of a metric: of the logarithms, or of the rates themselves.
func (m roundMetric) differences(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		if m.rate {
			d[i] = b[i] - a[i]
		} else {
			d[i] = math.Log(b[i] / a[i])
		}
	}
	return d
}

// shown turns a difference into what is shown: percent, or the fraction of an error rate.
func (m roundMetric) shown(d float64) *float64 {
	if !m.rate {
		d = 100 * math.Expm1(d)
	}
	if !finite(d) {
		return nil
	}
	return &d
}

func (m roundMetric) judge(rounds []Round, alpha float64, o RoundOptions) RoundMetric {
	out := RoundMetric{Name: m.name, Unit: m.unit, Verdict: Unclear}
	a, b := m.pairs(rounds)
	n := len(a)
	if n == 0 {
		return out
	}
	d := m.differences(a, b)
	mean, deviation := meanAndDeviation(d)
	meanA, meanB := m.mean(a), m.mean(b)
	out.A, out.B, out.Difference = &meanA, &meanB, m.shown(mean)
	out.Floor = m.floor(a)
	limit := o.ErrorLimit
	if !m.rate {
		limit = math.Log1p(o.LimitPct / 100)
	}
	half := halfWidth(n, deviation, alpha)
	if n < MinRounds || !finite(half) {
		return out
	}
	out.Low, out.High, out.Detectable = m.shown(mean-half), m.shown(mean+half), m.shown(half)
	out.MoreRounds = moreRounds(n, deviation, limit/2, alpha)
	worse, low, high := mean, mean-half, mean+half // positive is worse
	if m.higher {
		worse, low, high = -mean, -high, -low
	}
	switch {
	case low >= limit/2 && worse >= limit:
		out.Verdict = Worse
	case high <= -limit/2 && worse <= -limit:
		out.Verdict = Better
	case low > -limit && high < limit:
		out.Verdict = Same
	}
	return out
}

// mean is the geometric mean, of rates the arithmetic one.
func (m roundMetric) mean(values []float64) float64 {
	if m.rate {
		return average(values)
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// floor is by how much two runs of the base in succession differ, nil of fewer than three runs.
func (m roundMetric) floor(a []float64) *float64 {
	if len(a) < 3 {
		return nil
	}
	squares := 0.0
	for i := 1; i < len(a); i++ {
		d := m.differences(a[i-1:i], a[i:i+1])[0]
		squares += d * d
	}
	return m.shown(math.Sqrt(squares / float64(len(a)-1)))
}

// moreRounds is how many more rounds would show a difference where rounds go on to scatter as they do.
func moreRounds(n int, deviation, difference, alpha float64) *int {
	more := sort.Search(maxMoreRounds+1, func(more int) bool { return halfWidth(n+more, deviation, alpha) <= difference })
	if more > maxMoreRounds {
		return nil
	}
	return &more
}

// halfWidth is that of the interval after n rounds. What never changes is known exactly.
func halfWidth(n int, deviation, alpha float64) float64 {
	if deviation == 0 {
		return 0
	}
	return deviation / math.Sqrt(float64(n)) * sequentialT(n, alpha)
}

// sequentialT is by how many standard errors the mean of n normal values is away from the truth at most, at all n from
// 2 on together, but for the part alpha of all sequences. It is +Inf where so few values say nothing yet.
//
// The likelihood of the t statistic under effects drawn from a normal distribution, over that of no effect, is a
// martingale that begins at 1: it passes 1/alpha with at most the probability alpha (Ville). Wide effects show large
// differences early and small ones a little later.
func sequentialT(n int, alpha float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	free, a := float64(n-1), 1+effectVariance*float64(n)
	k := math.Pow(math.Sqrt(a)/alpha, 2/(free+1))
	if k >= a {
		return math.Inf(1)
	}
	return math.Sqrt(free * (k - 1) / (1 - k/a))
}

func meanAndDeviation(values []float64) (mean, deviation float64) {
	mean = average(values)
	if len(values) < 2 {
		return mean, 0
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(squares / float64(len(values)-1))
}

// drift says of throughput and the median that the difference grew or shrank from round to round by more than chance,
// and by the limit over all rounds.
func drift(rounds []Round, o RoundOptions) string {
	for _, m := range roundMetrics {
		if m.rate || m.name == "p95_ms" || m.name == "p99_ms" {
			continue
		}
		a, b := m.pairs(rounds)
		n := len(a)
		if n < minDriftRounds {
			continue
		}
		d := m.differences(a, b)
		center := float64(n-1) / 2
		mean, slope, spread := average(d), 0.0, 0.0
		for i, v := range d {
			slope += (v - mean) * (float64(i) - center)
			spread += (float64(i) - center) * (float64(i) - center)
		}
		slope /= spread
		squares := 0.0
		for i, v := range d {
			e := v - mean - slope*(float64(i)-center)
			squares += e * e
		}
		deviation := math.Sqrt(squares / float64(n-2) / spread)
		if all := slope * float64(n-1); math.Abs(slope) > driftT*deviation && math.Abs(all) > math.Log1p(o.LimitPct/100) {
			return fmt.Sprintf("The rounds are not alike: from the first to the last the difference in %s changed by %+.1f %%. "+
				"The runs may change the data, or the machine changed.", m.name, 100*math.Expm1(all))
		}
	}
	return ""
}
