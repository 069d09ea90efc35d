package cost

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

var begin = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(seconds float64) engine.Time {
	return engine.At(begin.Add(time.Duration(seconds * float64(time.Second))))
}

func run() engine.Run {
	return engine.Run{StartTime: at(0), WarmupEndTime: at(60), MeasurementEndTime: at(3660), EndTime: at(3720)}
}

func poll(seconds float64, kind, size string, clusters int) engine.WarehousePoint {
	return engine.WarehousePoint{Timestamp: at(seconds), ElapsedSeconds: seconds,
		Warehouse: engine.Warehouse{Name: "WH", State: "STARTED", Type: kind, Size: size, StartedClusters: new(clusters)}}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestAnHourOfMeasurement(t *testing.T) {
	p := Default()
	p.CreditPrice = 3
	var f engine.Figures
	f.Operations, f.Errors.Count = 3_000_000, 1_000_000
	for _, c := range []struct {
		name          string
		points        []engine.WarehousePoint
		credits, each float64
	}{
		{"one cluster", []engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 1)}, 1, 1.5},
		{"a larger size", []engine.WarehousePoint{poll(0, "STANDARD", "2X-Large", 1)}, 32, 48},
		{"spelled as in ALTER WAREHOUSE", []engine.WarehousePoint{poll(0, "standard", "XXLARGE", 1)}, 32, 48},
		{"interactive", []engine.WarehousePoint{poll(0, "INTERACTIVE", "Small", 1)}, 1.2, 1.8},
		{"a second cluster for half of it",
			[]engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 1), poll(1860, "STANDARD", "X-Small", 2)}, 1.5, 2.25},
		{"clusters outside the measurement",
			[]engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 9), poll(60, "STANDARD", "X-Small", 1),
				poll(3660, "STANDARD", "X-Small", 9)}, 1, 1.5},
		{"an edition without clusters", []engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 0)}, 1, 1.5},
	} {
		got := p.RunCost(c.points, run(), f, "", Aftermath{})
		near(t, c.name+": credits", got.Credits, c.credits)
		near(t, c.name+": price", got.Price, c.credits*3)
		if got.PricePerMillion == nil {
			t.Fatalf("%s: no price for a million", c.name)
		}
		near(t, c.name+": price of a million that succeeded", *got.PricePerMillion, c.each)
	}
}

// TestTheGenerationDecidesTheRate: of standard warehouses; what is not known is said.
func TestTheGenerationDecidesTheRate(t *testing.T) {
	older := Default()
	delete(older.Warehouses, "STANDARD GEN2")
	for _, c := range []struct {
		name             string
		prices           Prices
		kind, generation string
		size             string
		credits          float64
		note             string
	}{
		{"generation 1", Default(), "STANDARD", "1", "Medium", 4, ""},
		{"generation 2", Default(), "STANDARD", "2", "Medium", 5.4, ""},
		{"not told", Default(), "STANDARD", "", "Medium", 4, "does not tell the warehouse's generation"},
		{"a list without generations", older, "STANDARD", "2", "Medium", 4, "no rate for generation 2"},
		{"a generation to come", Default(), "STANDARD", "3", "Medium", 4, "no rate for generation 3"},
		{"interactive ones have none", Default(), "INTERACTIVE", "", "Medium", 2.4, ""},
		{"adaptive", Default(), "ADAPTIVE", "", "", 0, "billed by what its queries use"},
	} {
		p := poll(0, c.kind, c.size, 1)
		p.Generation = c.generation
		got := c.prices.RunCost([]engine.WarehousePoint{p}, run(), engine.Figures{}, "", Aftermath{})
		near(t, c.name, got.CreditsPerHour, c.credits)
		if notes := strings.Join(got.Notes, " "); c.note == "" && strings.Contains(notes, "generation") ||
			!strings.Contains(notes, c.note) {
			t.Errorf("%s: the notes are %q", c.name, notes)
		}
		if got.WarehouseGeneration != c.generation {
			t.Errorf("%s: generation %q", c.name, got.WarehouseGeneration)
		}
	}
}

func TestWhatIsNotKnown(t *testing.T) {
	p := Default()
	if got := p.RunCost(nil, run(), engine.Figures{}, "", Aftermath{}); got != nil {
		t.Errorf("a run without a warehouse costs %+v", got)
	}
	got := p.RunCost([]engine.WarehousePoint{poll(0, "STANDARD", "7X-Large", 1)}, run(), engine.Figures{}, "", Aftermath{})
	if got == nil || got.Credits != 0 || got.PricePerMillion != nil ||
		!strings.Contains(got.Notes[0], "no rate for STANDARD warehouses of size 7X-Large") {
		t.Errorf("an unknown size costs %+v", got)
	}
}

// TestWhatARunCaused: until its warehouse suspended, which is AUTO_SUSPEND after the last query that the run caused, or
// when the run itself has suspended it; a start is billed for a minimum.
func TestWhatARunCaused(t *testing.T) {
	p := Default()
	r := run()
	r.EndTime = engine.At(r.StartTime.Add(10 * time.Second))
	r.WarmupEndTime, r.MeasurementEndTime = engine.At(
		r.StartTime.Add(time.Second),
	), engine.At(
		r.StartTime.Add(7*time.Second),
	)
	suspending := func(seconds, clusters int, kind string) []engine.WarehousePoint {
		w := poll(0, kind, "X-Small", 1)
		w.AutoSuspendSeconds, w.MinClusterCount = seconds, new(clusters)
		return []engine.WarehousePoint{w}
	}
	for name, c := range map[string]struct {
		points  []engine.WarehousePoint
		after   Aftermath
		seconds float64
		credits float64
		note    string
	}{
		"enrichment, then it suspends by itself": {suspending(60, 1, "STANDARD"),
			Aftermath{Until: r.EndTime.Add(240 * time.Second)}, 310, 310. / 3600, "suspends 1m0s after its last query"},
		"two clusters at least":     {suspending(60, 2, "STANDARD"), Aftermath{}, 70, (10 + 2*60) / 3600., ""},
		"suspended by the run":      {suspending(600, 1, "STANDARD"), Aftermath{Suspended: true}, 60, 60. / 3600, ""},
		"never, or it is not known": {suspending(0, 1, "STANDARD"), Aftermath{}, 10, 10. / 3600, "does not tell when it suspends"},
		"an interactive one was up": {suspending(0, 1, "INTERACTIVE"), Aftermath{}, 10, 10. / 3600 * p.hour("INTERACTIVE"), ""},
		"an interactive one":        {suspending(0, 1, "INTERACTIVE"), Aftermath{Suspended: true}, 3600, p.hour("INTERACTIVE"), ""},
	} {
		got := p.RunCost(c.points, r, engine.Figures{}, "", c.after)
		if got.CausedSeconds != c.seconds || math.Abs(got.CausedCredits-c.credits) > 1e-9 ||
			math.Abs(got.CausedPrice-got.CausedCredits*p.CreditPrice) > 1e-9 || got.CausedCredits < got.RunCredits {
			t.Errorf("%s: %g s, %g credits, and not %g s, %g: %+v", name, got.CausedSeconds, got.CausedCredits, c.seconds,
				c.credits, got)
		}
		if !strings.Contains(strings.Join(got.Notes, " "), c.note) {
			t.Errorf("%s: %q", name, got.Notes)
		}
	}
}

// hour is what an hour of an X-Small warehouse takes.
func (p Prices) hour(kind string) float64 {
	_, credits, _ := p.rate(engine.Warehouse{Name: "W", Type: kind, Size: "X-Small"})
	return credits
}

func TestHybridRequests(t *testing.T) {
	p := Default()
	p.Hybrid.CreditsPerMillion = 0.5
	var f engine.Figures
	f.Operations = 4_000_000
	points := []engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 1)}
	near(t, "hybrid", p.RunCost(points, run(), f, "snowflake_hybrid", Aftermath{}).Credits, 1+2)
	near(t, "not hybrid", p.RunCost(points, run(), f, "other", Aftermath{}).Credits, 1)
}

func TestParse(t *testing.T) {
	good := string(Embedded())
	for _, c := range []struct{ old, new, want string }{
		{"currency: USD", "currency: ''", "currency (line 8): is empty"},
		{"currency: USD", "", "currency: is missing"},
		{"credit_price: 3.00", "credit_price: 0", "credit_price (line 13): must be above 0"},
		{"credit_price: 3.00", "credit_price: .nan", "credit_price (line 13): is .nan, which should be a number"},
		{"credit_price: 3.00", "credit_price: free", `credit_price (line 13): is "free", which should be a number`},
		{"credit_price: 3.00", "credit_price: '3'", `credit_price (line 13): is "3", which should be a number`},
		{"credit_price: 3.00", "credit_price: [3]", "credit_price (line 13): is a list"},
		{"credit_price: 3.00", "credit_price:", "credit_price (line 13): is empty"},
		{"credit_price: 3.00", "credit_price: 3\ncredit_price: 4", "credit_price (line 14): stands twice"},
		{"credit_price: 3.00", "credits_price: 3", "credits_price (line 13): is not a field"},
		{"source: Snow", "source: {a: 1}\n#", "source (line 6): is a group of fields, which should be text"},
		{"  STANDARD: # gen", "  standard-gen2: {credits_per_hour: {Small: 1}}\n  STANDARD: # gen",
			"warehouses.STANDARD GEN2 (line 27): stands twice: standard-gen2 is the same"},
		{"{X-Small: 1, Small: 2", "{X-Small: -1, Small: 2", "warehouses.STANDARD.credits_per_hour.X-Small (line 22): is -1"},
		{"{X-Small: 1, Small: 2", "{X-Small: 1, XSMALL: 2",
			"warehouses.STANDARD.credits_per_hour.XSMALL (line 22): stands twice: X-Small is the same"},
		{"{X-Small: 1, Small: 2", "{X-Tiny: 1, Small: 2",
			"warehouses.STANDARD.credits_per_hour.X-Tiny (line 22): is not the size"},
		{"minimum_seconds: 3600", "minimum_seconds: .inf", "warehouses.INTERACTIVE.minimum_seconds (line 35): is .inf"},
		{"minimum_seconds: 3600", "minimum: 3600", "warehouses.INTERACTIVE.minimum (line 35): is not a field"},
		{"credits_per_million: 0", "credits_per_million: -3", "hybrid_requests.credits_per_million (line 43): is -3"},
		{"hybrid_requests:", "hybrid_requests: 3\nother:", "hybrid_requests (line 42): is not a group of fields"},
		{good, "", "(document): is empty"},
		{good, "[1, 2]", "(document) (line 1): is not a group of fields"},
		{good, "\x00", "is not YAML"},
		{good, "a: b: c", "(document): is not YAML: mapping values are not allowed"},
		{"currency: USD", "currency: a: b", "(line 8): is not YAML: mapping values are not allowed"},
		{good, good + "---\n{}\n", "more than one YAML document"},
		{good, strings.Repeat("#", maxList+1), "64 kB"},
		// Each of 300 types merges a group of 300 sizes: fields are bounded with aliases written out.
		{good, "credit_price: 1\ncurrency: USD\nwarehouses:\n" + bomb(), "more than 20000 fields"},
	} {
		_, err := Parse([]byte(strings.Replace(good, c.old, c.new, 1)))
		var refused *engine.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q in place of %.40q: %v, want %q", c.new, c.old, err, c.want)
		} else if strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("a Go error reaches the user: %v", err)
		}
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("  A0: &a {credits_per_hour: {")
	for i := range 300 {
		fmt.Fprintf(&b, "S%d: 1, ", i)
	}
	b.WriteString("}}\n")
	for i := range 300 {
		fmt.Fprintf(&b, "  A%d: {<<: *a}\n", i+1)
	}
	return b.String()
}

func TestPriceListsMayShare(t *testing.T) {
	p, err := Parse(
		[]byte(`{currency: EUR, credit_price: 2, warehouses: {A: &a {minimum_seconds: 60, credits_per_hour: &c {Small: 2}},
  B: {<<: *a, minimum_seconds: 90}, C: {credits_per_hour: *c}}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	if b := p.Warehouses["B"]; b.MinimumSeconds != 90 || b.CreditsPerHour["Small"] != 2 ||
		p.Warehouses["C"].CreditsPerHour["Small"] != 2 {
		t.Errorf("aliases and merge keys are read as %+v", p.Warehouses)
	}
}

// TestCostIsAdditive: the clusters of a run are those of its two halves.
func TestCostIsAdditive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := []engine.WarehousePoint{}
		when := 0.0
		for range rapid.IntRange(1, 20).Draw(t, "polls") {
			points = append(points, poll(when, "STANDARD", "X-Small", rapid.IntRange(1, 10).Draw(t, "clusters")))
			when += rapid.Float64Range(0.1, 60).Draw(t, "pause")
		}
		end := max(when, 2)
		cut := rapid.Float64Range(0.1, 0.9).Draw(t, "cut") * end
		whole := meanClusters(points, at(0).Time, at(end).Time) * end
		halves := meanClusters(
			points,
			at(0).Time,
			at(cut).Time,
		)*cut + meanClusters(
			points,
			at(cut).Time,
			at(end).Time,
		)*(end-cut)
		if math.Abs(whole-halves) > 1e-2*whole {
			t.Errorf("the whole has %v cluster seconds, its halves %v", whole, halves)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(Embedded())
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := Parse(text); err == nil && (!(p.CreditPrice > 0) || len(p.Warehouses) == 0) {
			t.Errorf("accepted %+v", p)
		}
	})
}

// TestWhatARunCostsAtLeast: the time of its load, and, where it makes the warehouse start, until that suspends again, but
// not less than what a start is billed for.
func TestWhatARunCostsAtLeast(t *testing.T) {
	p := Default()
	for name, c := range map[string]struct {
		kind, state string
		clusters    int
		autoSuspend int
		suspends    bool
		load        float64
		seconds     float64
		credits     float64
	}{
		"a warehouse that is up":               {"STANDARD", "STARTED", 1, 600, false, 30, 30, 30. / 3600},
		"of two clusters at least":             {"STANDARD", "STARTED", 2, 600, false, 30, 30, 60. / 3600},
		"one that the run starts and stops":    {"STANDARD", "SUSPENDED", 1, 600, true, 6, 60, 60. / 3600},
		"longer than the minimum":              {"STANDARD", "SUSPENDED", 1, 600, true, 90, 90, 90. / 3600},
		"one that suspends by itself":          {"STANDARD", "SUSPENDED", 1, 600, false, 6, 606, 606. / 3600},
		"an interactive one that is started":   {"INTERACTIVE", "SUSPENDED", 1, 3600, true, 6, 3600, p.hour("INTERACTIVE")},
		"an interactive one that is up":        {"INTERACTIVE", "STARTED", 1, 3600, false, 6, 6, 6. / 3600 * p.hour("INTERACTIVE")},
		"a suspended one, of no known suspend": {"STANDARD", "SUSPENDED", 1, 0, false, 6, 60, 60. / 3600},
	} {
		w := engine.Warehouse{Name: "WH", State: c.state, Type: c.kind, Size: "X-Small", MinClusterCount: new(c.clusters),
			AutoSuspendSeconds: c.autoSuspend}
		got := p.Least(w, c.load, c.suspends)
		if got.Credits == nil || math.Abs(*got.Credits-c.credits) > 1e-9 || got.Seconds != c.seconds ||
			math.Abs(*got.Price-c.credits*p.CreditPrice) > 1e-9 {
			t.Errorf("%s: %+v, and not %g s, %g credits", name, got, c.seconds, c.credits)
		}
		if text := got.String(); !strings.Contains(text, "costs at least") || !strings.Contains(text, "WH") {
			t.Errorf("%s: %s", name, text)
		}
	}
	got := p.Least(engine.Warehouse{Name: "A", Type: "ADAPTIVE"}, 6, false)
	if got.Credits != nil || got.Price != nil || !strings.Contains(got.String(), "not known beforehand. An adaptive") {
		t.Errorf("an adaptive warehouse: %+v, %s", got, got)
	}
}
