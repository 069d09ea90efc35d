package threshold

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

func figures() *engine.Figures {
	return &engine.Figures{
		Operations: 1000, QPS: new(500.0), DurationSeconds: 2,
		LatencyMs: &engine.LatencyMs{P50: 1, P95: 10, P99: 20, Avg: 2, Max: 50},
		Errors:    engine.ErrorFigures{Count: 5},
		ByKind: map[engine.Kind]*engine.KindFigures{
			engine.KindInsert: {Count: 100, Errors: 5, QPS: new(50.0), LatencyMs: &engine.LatencyMs{P95: 12}},
		},
	}
}

func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		text   string
		passed bool
	}{
		{"p95_ms < 20", true},
		{"p95_ms<10", false},
		{"p95_ms <= 10", true},
		{" qps > 4.99e2 ", true},
		{"error_rate < 0.005", false},
		{"error_rate <= 0.005", true},
		{"INSERT.p95_ms < 12.5", true},
		{"insert.error_rate < 0.01", false},
		{"DELETE.p95_ms < 1000", false}, // never executed
		{"operations == 1000", true},
		{"operations != 1000", false},
		{"dropped == 0", true},
	} {
		got := Evaluate([]string{tc.text}, figures(), nil)[0]
		if got.Passed != tc.passed {
			t.Errorf("%s: passed = %v (%s), want %v", tc.text, got.Passed, got.Reason, tc.passed)
		}
		if !got.Passed && got.Reason == "" {
			t.Errorf("%s: failed without a reason", tc.text)
		}
	}
}

func TestFiguresMissing(t *testing.T) {
	if r := Evaluate([]string{"p95_ms < 1"}, &engine.Figures{}, nil); r[0].Passed || Passed(r) {
		t.Error("a latency that was not measured passed")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "p95_ms", "p95 < 3", "p95_ms < fast", "p95_ms < NaN", "p95_ms < 1e999",
		"NOPE.p95_ms < 3", "INSERT.reads < 3", "p95_ms < 3 or true", "p95_ms =< 3"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("p95_ms < 20")
	f.Add("INSERT.p99_ms >= 1e-3")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		if _, known := metrics[parsed.Metric]; !known {
			t.Errorf("%q parsed to the unknown metric %q", text, parsed.Metric)
		}
		Evaluate([]string{text}, figures(), nil)
	})
}

// A kind that failed every time fails the run, unless the template says that it may.
func TestAKindThatFailsEntirelyFailsTheRun(t *testing.T) {
	f := &engine.Figures{Operations: 1000, Errors: engine.ErrorFigures{Count: 100},
		ByKind: map[engine.Kind]*engine.KindFigures{
			engine.KindPointLookup: {Count: 900}, engine.KindDelete: {Count: 100, Errors: 100}}}
	for name, c := range map[string]struct {
		thresholds []string
		fails      bool
	}{
		"without thresholds":                    {nil, true},
		"one of something else":                 {[]string{"p95_ms < 10", "error_rate < 0.5"}, true},
		"of another kind":                       {[]string{"POINT_LOOKUP.error_rate < 2"}, true},
		"of its own, that fails":                {[]string{"DELETE.error_rate < 0.1"}, true},
		"of its own, that allows it":            {[]string{"DELETE.error_rate <= 1"}, false},
		"of its count, that allows it":          {[]string{"DELETE.errors < 1000"}, false},
		"of the run, that lets everything fail": {[]string{"error_rate <= 1"}, false},
	} {
		implied := Implied(c.thresholds, f)
		if (len(implied) == 1) != c.fails || Passed(implied) == c.fails {
			t.Errorf("%s: %+v", name, implied)
		}
	}
	for n, judged := range map[int64]bool{1: false, 4: false, 5: true} {
		few := &engine.Figures{Operations: 1000 + n, Errors: engine.ErrorFigures{Count: n},
			ByKind: map[engine.Kind]*engine.KindFigures{
				engine.KindPointLookup: {Count: 1000}, engine.KindDelete: {Count: n, Errors: n}}}
		failed, rest := FailedKinds(few)
		if len(Implied(nil, few)) == 1 != judged || (len(failed) == 1) != judged || (len(rest) == 1) == judged {
			t.Errorf("%d of %d: %v, %v", n, n, failed, rest)
		}
	}
	if all := Implied(nil, &engine.Figures{Operations: 5, Errors: engine.ErrorFigures{Count: 5},
		ByKind: map[engine.Kind]*engine.KindFigures{engine.KindDelete: {Count: 5, Errors: 5}}}); len(all) != 0 {
		t.Errorf("a run in which nothing worked fails by itself: %+v", all)
	}
}

// TestOutagesAreJudged: the longest one counts, of a kind its own; one that was not over has no length, and a run that
// did not reconnect none at all.
func TestOutagesAreJudged(t *testing.T) {
	f := figures()
	judge := func(text string) engine.ThresholdResult { return Evaluate([]string{text}, f, nil)[0] }
	if r := judge("rto_seconds < 10"); r.Passed || r.Actual != nil {
		t.Errorf("a run that did not reconnect: %+v", r)
	}
	f.Outages = []engine.Outage{}
	if r := judge("unknown_outcomes == 0"); r.Passed || r.Actual != nil {
		t.Errorf("what was not counted: %+v", r)
	}
	f.UnknownOutcomes = new(int64)
	for _, text := range []string{"rto_seconds < 10", "outages == 0", "INSERT.rto_seconds < 1", "unknown_outcomes == 0"} {
		if r := judge(text); !r.Passed || r.Actual == nil || *r.Actual != 0 {
			t.Errorf("without an outage: %+v", r)
		}
	}
	// Of one connection that was lost there is no outage.
	*f.UnknownOutcomes = 5
	f.Outages = []engine.Outage{{Number: 1, DownSeconds: 2, Unknown: 3, ByKind: []engine.OutageKind{
		{Kind: engine.KindInsert, DownSeconds: 2.5}, {Kind: engine.KindPointLookup, DownSeconds: 2}}},
		{Number: 2, Kind: new(engine.KindUpdate), DownSeconds: 7, Unknown: 1}}
	for text, want := range map[string]float64{"rto_seconds < 10": 7, "INSERT.rto_seconds < 10": 2.5,
		"UPDATE.rto_seconds < 10": 7, "DELETE.rto_seconds < 10": 0, "outages < 3": 2, "unknown_outcomes < 6": 5} {
		if r := judge(text); !r.Passed || r.Actual == nil || *r.Actual != want {
			t.Errorf("%s: %+v, want %g", text, r, want)
		}
	}
	if r := judge("rto_seconds < 7"); r.Passed || r.Reason != "rto_seconds is 7" {
		t.Errorf("%+v", r)
	}
	f.Outages[0].ToTheEnd = true
	if r := judge("rto_seconds < 100"); r.Passed || r.Reason != "outage 1 was not over when the load ended, after 2 s" {
		t.Errorf("one that was not over: %+v", r)
	}
}
