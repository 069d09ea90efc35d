// Package threshold reads and judges pass/fail conditions on the exact figures
// of a run: "p95_ms < 20", "error_rate < 0.001", "qps > 5000", and per kind
// "POINT_LOOKUP.p99_ms <= 5".
package threshold

import (
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Threshold is one parsed condition.
type Threshold struct {
	Text   string
	Kind   *engine.Kind // nil: the whole run
	Metric string
	Op     string
	Limit  float64
}

var syntax = regexp.MustCompile(
	`^\s*(?:([A-Za-z_]+)\s*\.\s*)?([a-z][a-z0-9_]*)\s*(<=|>=|==|!=|<|>)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*$`)

// metrics tells which figures a threshold may name; the value says whether a kind has it too.
var metrics = map[string]bool{
	"p50_ms": true, "p90_ms": true, "p95_ms": true, "p99_ms": true, "p999_ms": true,
	"avg_ms": true, "min_ms": true, "max_ms": true, "stddev_ms": true,
	"qps": true, "error_rate": true, "errors": true, "operations": true,
	rtoSeconds: true, "outages": false, unknownOutcomes: false,
	"reads": false, "writes": false, "duration_seconds": false, "dropped": false, "dropped_rate": false,
	"service_p50_ms": false, "service_p90_ms": false, "service_p95_ms": false, "service_p99_ms": false,
	"service_p999_ms": false,
	"service_avg_ms":  false, "service_max_ms": false, "schedule_lag_p99_ms": false,
	maxConnections: false, maxQPS: false,
}

// What a search for the limit found: the connections, and the rate of the answer's level.
const (
	maxConnections = "max_connections"
	maxQPS         = "max_qps"
)

// rtoSeconds is how long the target was down, in its longest outage.
const rtoSeconds = "rto_seconds"

// unknownOutcomes is how many operations may have been committed, anywhere in the record.
const unknownOutcomes = "unknown_outcomes"

// outageFigure is a figure of the outages; a run that does not reconnect has none, and neither has one whose target did
// not come back. why says that.
func (t Threshold) outageFigure(f *engine.Figures) (value float64, why string) {
	if f == nil || f.Outages == nil {
		return 0, "the run has no such figure: it needs workload.on_disconnect: reconnect"
	}
	if t.Metric == unknownOutcomes {
		if f.UnknownOutcomes == nil {
			return 0, "the run has no such figure: it ended before a version that counts them in the whole record"
		}
		return float64(*f.UnknownOutcomes), ""
	}
	for i := range f.Outages {
		o := &f.Outages[i]
		switch t.Metric {
		case "outages":
			value++
		default:
			down, toTheEnd := t.downSeconds(o)
			if toTheEnd {
				return 0, fmt.Sprintf("outage %d was not over when the load ended, after %.3g s", o.Number, down)
			}
			value = max(value, down)
		}
	}
	return value, ""
}

// downSeconds is how long an outage was, of the kind that the threshold is of.
func (t Threshold) downSeconds(o *engine.Outage) (seconds float64, toTheEnd bool) {
	if t.Kind == nil || o.Kind != nil {
		if t.Kind != nil && *t.Kind != *o.Kind {
			return 0, false
		}
		return o.DownSeconds, o.ToTheEnd
	}
	for i := range o.ByKind {
		if o.ByKind[i].Kind == *t.Kind {
			return o.ByKind[i].DownSeconds, o.ByKind[i].ToTheEnd
		}
	}
	return 0, false
}

// searchFigure is a figure of a search; one that found nothing has none.
func (t Threshold) searchFigure(r *engine.FindMaxResult) (float64, bool) {
	switch {
	case r == nil || !r.Found:
		return 0, false
	case t.Metric == maxConnections && r.MaxConnections != nil:
		return float64(*r.MaxConnections), true
	case t.Metric == maxQPS && r.MaxQPSTarget != nil:
		return *r.MaxQPSTarget, true
	case t.Metric == maxQPS && r.QPS != nil:
		return *r.QPS, true
	}
	return 0, false
}

// Metrics lists the names a threshold may use.
func Metrics() []string {
	names := make([]string, 0, len(metrics))
	for name := range metrics {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Parse reads one threshold. Its error is a sentence for the user.
func Parse(text string) (Threshold, error) {
	m := syntax.FindStringSubmatch(text)
	if m == nil {
		return Threshold{}, fmt.Errorf("%q is not a threshold: write \"metric < number\", for example \"p95_ms < 20\"", text)
	}
	t := Threshold{Text: strings.TrimSpace(text), Metric: m[2], Op: m[3]}
	perKind, known := metrics[t.Metric]
	if !known {
		return Threshold{}, fmt.Errorf("%q is not a metric: one of %s", t.Metric, strings.Join(Metrics(), ", "))
	}
	if m[1] != "" {
		kind, err := engine.ParseKind(strings.ToUpper(m[1]))
		if err != nil {
			return Threshold{}, err
		}
		if !perKind {
			return Threshold{}, fmt.Errorf("%q is not known per operation kind", t.Metric)
		}
		t.Kind = &kind
	}
	limit, err := strconv.ParseFloat(m[4], 64)
	if err != nil || math.IsInf(limit, 0) {
		return Threshold{}, fmt.Errorf("%q is not a number", m[4])
	}
	t.Limit = limit
	return t, nil
}

// Evaluate judges thresholds on the figures. A figure that the run does not have
// (a kind that was never executed, a latency of nothing) fails its threshold:
// what was not measured was not met.
// search is the answer of a search for the limit, nil in any other run.
func Evaluate(thresholds []string, f *engine.Figures, search *engine.FindMaxResult) []engine.ThresholdResult {
	results := make([]engine.ThresholdResult, 0, len(thresholds))
	for _, text := range thresholds {
		r := engine.ThresholdResult{Threshold: text}
		t, err := Parse(text)
		if err != nil {
			r.Reason = err.Error()
			results = append(results, r)
			continue
		}
		actual, ok := t.figure(f)
		if t.Metric == maxConnections || t.Metric == maxQPS {
			actual, ok = t.searchFigure(search)
		}
		why := "the run has no such figure"
		if t.Metric == rtoSeconds || t.Metric == "outages" || t.Metric == unknownOutcomes {
			actual, why = t.outageFigure(f)
			ok = why == ""
		}
		if !ok {
			r.Reason = why
			results = append(results, r)
			continue
		}
		r.Actual = &actual
		r.Passed = t.holds(actual)
		if !r.Passed {
			r.Reason = fmt.Sprintf("%s is %s", t.name(), format(actual))
		}
		results = append(results, r)
	}
	return results
}

// Implied are the thresholds that every run has, where they failed: a kind of
// operation that failed every time it was tried, several times at least. A threshold of the template's own on the
// errors of that kind, or one that lets every operation fail, allows it when it passes.
func Implied(thresholds []string, f *engine.Figures) []engine.ThresholdResult {
	var out []engine.ThresholdResult
	failed, _ := FailedKinds(f)
	for _, k := range failed {
		if allowed(thresholds, k, f) {
			continue
		}
		all := 1.0
		out = append(out, engine.ThresholdResult{Threshold: k.String() + ".error_rate < 1", Actual: &all,
			Reason: fmt.Sprintf("all %d operations of kind %s failed (implied; a threshold on %s.error_rate of your own "+
				"replaces this one)", f.ByKind[k].Count, k, k)})
	}
	return out
}

// minFailed is how many operations of a kind have to fail before it counts as
// failing entirely: fewer may have met the same lock, or the end of one connection.
const minFailed = 5

// FailedKinds are the kinds of which every operation failed, in a run in which others
// worked: those with enough of them to judge by, and those with few.
func FailedKinds(f *engine.Figures) (failed, few []engine.Kind) {
	if f == nil || !f.HasSuccess() {
		return nil, nil // that the run failed is said already
	}
	for _, k := range engine.Kinds() {
		switch c := f.ByKind[k]; {
		case c == nil || c.Count == 0 || c.Errors < c.Count:
		case c.Count < minFailed:
			few = append(few, k)
		default:
			failed = append(failed, k)
		}
	}
	return failed, few
}

func allowed(thresholds []string, k engine.Kind, f *engine.Figures) bool {
	for _, text := range thresholds {
		t, err := Parse(text)
		if err != nil || t.Metric != "error_rate" && t.Metric != "errors" {
			continue
		}
		actual, ok := t.figure(f)
		own := t.Kind != nil && *t.Kind == k
		any := t.Kind == nil && t.Metric == "error_rate" && t.holds(1)
		if ok && t.holds(actual) && (own || any) {
			return true
		}
	}
	return false
}

// AddCoverage says of what was judged on a run that did not complete how much of its measurement that covers, in
// seconds; planned is 0 where no length was. What holds of a part need not hold of the whole.
func AddCoverage(results []engine.ThresholdResult, covered, planned float64) {
	part := fmt.Sprintf("in %.3g s", covered)
	if planned > 0 {
		part = fmt.Sprintf("in %.3g of %.6g s", covered, planned)
	}
	for i := range results {
		r := &results[i]
		switch {
		case !r.Passed:
			r.Reason += ", " + part
		case planned > 0 && covered > planned-0.005: // stored times are rounded
			r.Reason = fmt.Sprintf("met in all %.6g s of a run that did not complete", planned)
		default:
			r.Reason = "met so far, " + part
		}
	}
}

// CoverageNote says of a threshold that passed on a run which did not complete what it covers; "" of any other.
func CoverageNote(s *engine.Summary, t engine.ThresholdResult) string {
	switch {
	case !t.Passed || s.Status == engine.StatusCompleted:
		return ""
	case t.Reason == "": // stored by an earlier version
		return "met so far; the run did not complete"
	}
	return t.Reason
}

// Passed reports whether every threshold passed.
func Passed(results []engine.ThresholdResult) bool {
	for _, r := range results {
		if !r.Passed {
			return false
		}
	}
	return true
}

func (t Threshold) name() string {
	if t.Kind != nil {
		return t.Kind.String() + "." + t.Metric
	}
	return t.Metric
}

func (t Threshold) holds(v float64) bool {
	switch t.Op {
	case "<":
		return v < t.Limit
	case "<=":
		return v <= t.Limit
	case ">":
		return v > t.Limit
	case ">=":
		return v >= t.Limit
	case "==":
		return v == t.Limit
	default:
		return v != t.Limit
	}
}

func (t Threshold) figure(f *engine.Figures) (float64, bool) {
	if f == nil {
		return 0, false
	}
	latency, count, errors, qps := f.LatencyMs, f.Operations, f.Errors.Count, f.QPS
	if t.Kind != nil {
		k := f.ByKind[*t.Kind]
		if k == nil || k.Count == 0 && (t.Metric != "qps" || k.CarriedOver == 0) {
			return 0, false
		}
		latency, count, errors, qps = k.LatencyMs, k.Count, k.Errors, k.QPS
	}
	switch t.Metric {
	case "qps":
		if qps == nil {
			return 0, false
		}
		return *qps, true
	case "operations":
		return float64(count), true
	case "errors":
		return float64(errors), true
	case "error_rate":
		if count == 0 {
			return 0, false
		}
		return float64(errors) / float64(count), true
	case "reads":
		return float64(f.Reads), true
	case "writes":
		return float64(f.Writes), true
	case "duration_seconds":
		return f.DurationSeconds, true
	case "dropped":
		_, dropped := f.Accounting.Measured()
		return float64(dropped), true
	case "dropped_rate":
		scheduled, dropped := f.Accounting.Measured()
		if scheduled == 0 {
			return 0, false
		}
		return float64(dropped) / float64(scheduled), true
	}
	metric := t.Metric
	if name, ok := strings.CutPrefix(metric, "service_"); ok {
		metric = name
		// In a closed loop an operation is due when it is begun.
		if f.ServiceMs != nil {
			latency = f.ServiceMs
		}
	}
	if name, ok := strings.CutPrefix(metric, "schedule_lag_"); ok {
		metric, latency = name, f.ScheduleLagMs
	}
	if latency == nil {
		return 0, false
	}
	switch metric {
	case "p50_ms":
		return latency.P50, true
	case "p90_ms":
		return latency.P90, true
	case "p95_ms":
		return latency.P95, true
	case "p99_ms":
		return latency.P99, true
	case "p999_ms":
		return latency.P999, true
	case "avg_ms":
		return latency.Avg, true
	case "min_ms":
		return latency.Min, true
	case "max_ms":
		return latency.Max, true
	case "stddev_ms":
		return latency.StdDev, true
	}
	return 0, false
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
