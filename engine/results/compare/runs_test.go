package compare

import (
	"math"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func measured(id string, qps, p95 float64, seconds int) MeasuredRun {
	m := MeasuredRun{Summary: engine.Summary{RunID: id, Validity: engine.VerdictValid}}
	m.Summary.Operations, m.Summary.QPS = int64(qps*float64(seconds)), &qps
	m.Summary.LatencyMs = &engine.LatencyMs{Avg: 1, P50: 1, P95: p95, P99: 2 * p95}
	for i := range seconds {
		m.Seconds = append(m.Seconds, Second{Operations: int64(qps) + int64(i%5)})
	}
	return m
}

func TestARunIsTheSameAsItself(t *testing.T) {
	a, b := measured("a", 1000, 5, 30), measured("b", 1000, 5, 30)
	none := measured("none", 0, 0, 0)
	for name, c := range map[string]struct {
		a, b []MeasuredRun
		same bool
	}{
		"one":             {[]MeasuredRun{a}, []MeasuredRun{a}, true},
		"two, swapped":    {[]MeasuredRun{a, b}, []MeasuredRun{b, a}, true},
		"without figures": {[]MeasuredRun{none}, []MeasuredRun{none}, true},
		"others":          {[]MeasuredRun{a}, []MeasuredRun{b}, false},
		"one of two":      {[]MeasuredRun{a}, []MeasuredRun{a, b}, false},
	} {
		got, err := Between(c.a, c.b, Defaults())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		said := strings.Contains(strings.Join(got.Notes, " "), "the same run")
		if got.SameRun != c.same || said != c.same || c.same && got.Verdict != Same {
			t.Errorf("%s: %v, %s, %q", name, got.SameRun, got.Verdict, got.Notes)
		}
		for _, m := range got.Metrics {
			if c.same && (m.Verdict != Same || *m.Difference != 0) {
				t.Errorf("%s: %s differs by %v: %s", name, m.Name, *m.Difference, m.Verdict)
			}
		}
	}
	if got, err := Between([]MeasuredRun{a}, []MeasuredRun{a, b}, Defaults()); err != nil ||
		!strings.Contains(strings.Join(got.Notes, " "), "Run a is on both sides") {
		t.Errorf("one on both sides: %v %v", got.Notes, err)
	}
	// A stand-in's run is a stand-in's on both sides, and nothing is said of real figures.
	sim := measured("sim", 1000, 5, 30)
	sim.Summary.Simulated = true
	got, err := Between([]MeasuredRun{sim}, []MeasuredRun{sim}, Defaults())
	if err != nil || !got.SameRun || !got.Simulated || got.StandIn.Mixed() ||
		!strings.HasPrefix(got.Notes[0], "All these figures are simulated") ||
		strings.Contains(strings.Join(got.Notes, " "), "real:") {
		t.Errorf("a simulated run and itself: %v, %+v, %q", err, got.StandIn, got.Notes)
	}
	// A file that was edited is not the run that it names.
	edited := measured("a", 900, 5, 30)
	if got, err := Between([]MeasuredRun{a}, []MeasuredRun{edited}, Defaults()); err != nil || got.SameRun {
		t.Errorf("an edited file is the same run: %v", err)
	}
	if _, err := Between(
		[]MeasuredRun{a},
		[]MeasuredRun{none},
		Defaults(),
	); !engine.HasCode(
		err,
		engine.CodeConflict,
	) {
		t.Errorf("nothing to compare: %v", err)
	}
}

// TestWhatIsTooShortIsNotJudged: the note that calls a side too short and a verdict about it do not stand side by side;
// what was seen, with its interval, stays.
func TestWhatIsTooShortIsNotJudged(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   []MeasuredRun
		judged bool
	}{
		"both long":               {[]MeasuredRun{measured("a", 1000, 5, 20)}, []MeasuredRun{measured("b", 1300, 5, 30)}, true},
		"the second short":        {[]MeasuredRun{measured("a", 1000, 5, 30)}, []MeasuredRun{measured("b", 1300, 5, 10)}, false},
		"the first short":         {[]MeasuredRun{measured("a", 1000, 5, 19)}, []MeasuredRun{measured("b", 1300, 5, 30)}, false},
		"short ones that are one": {[]MeasuredRun{measured("a", 1000, 5, 5)}, []MeasuredRun{measured("b", 1000, 5, 5)}, false},
		"short runs, long together": {[]MeasuredRun{measured("a", 1000, 5, 12), measured("c", 1001, 5, 12)},
			[]MeasuredRun{measured("b", 1300, 5, 30)}, true},
	} {
		got, err := Between(c.a, c.b, Defaults())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		said := strings.Contains(strings.Join(got.Notes, " "), "nothing is judged")
		qps := got.Metrics[0]
		if said == c.judged || (got.Verdict != Unclear) != c.judged || (qps.Verdict == Better) != c.judged {
			t.Errorf("%s: %s, qps %s (%s), notes %q", name, got.Verdict, qps.Verdict, qps.Reason, got.Notes)
		}
		if qps.Difference == nil || qps.Low == nil || strings.Contains(qps.Reason, "not judged") == c.judged {
			t.Errorf("%s: %+v", name, qps)
		}
	}
}

// TestALostRecordHasNoRateToCompare: its seconds are those that happen to be there.
func TestALostRecordHasNoRateToCompare(t *testing.T) {
	a, lost := measured("a", 1000, 5, 30), measured("b", 1000, 5, 30)
	lost.Summary.QPS, lost.Summary.RecordPartial = nil, true
	for _, sides := range [][2]MeasuredRun{{a, lost}, {lost, a}} {
		got, err := Between(sides[:1], sides[1:], Defaults())
		if err != nil {
			t.Fatal(err)
		}
		if m := got.Metrics[0]; m.Name != "qps" || m.A != nil || m.B != nil || m.Difference != nil || m.Verdict != Unclear ||
			!strings.Contains(m.Reason, "lost") {
			t.Errorf("%+v", m)
		}
	}
}

// TestDifferencesAreThoseOfTheFiguresShown: a reader who reckons with the summaries comes to the same percentages.
func TestDifferencesAreThoseOfTheFiguresShown(t *testing.T) {
	a, b := measured("a", 1000, 5, 30), measured("b", 1100, 6, 30)
	a.Summary.QPS, b.Summary.QPS = new(1003.7), new(1234.5) // the seconds, which are whole, have others
	got, err := Between([]MeasuredRun{a}, []MeasuredRun{b}, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	m := got.Metrics[0]
	want := (1234.5/1003.7 - 1) * 100
	if m.Name != "qps" || *m.A != 1003.7 || *m.B != 1234.5 || math.Abs(*m.Difference-want) > 1e-9 {
		t.Errorf("%s: %v, %v, %v, want %v", m.Name, *m.A, *m.B, *m.Difference, want)
	}
	if *m.Low > want || *m.High < want {
		t.Errorf("the interval %v to %v is around another figure", *m.Low, *m.High)
	}
}
