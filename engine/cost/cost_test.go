package cost

import (
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
		Warehouse: engine.Warehouse{Name: "WH", State: "STARTED", Type: kind, Size: size, StartedClusters: clusters}}
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
		{"a second cluster for half of it", []engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 1), poll(1860, "STANDARD", "X-Small", 2)}, 1.5, 2.25},
		{"clusters outside the measurement", []engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 9), poll(60, "STANDARD", "X-Small", 1), poll(3660, "STANDARD", "X-Small", 9)}, 1, 1.5},
		{"an edition without clusters", []engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 0)}, 1, 1.5},
	} {
		got := p.Of(c.points, run(), f, false)
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
		got := c.prices.Of([]engine.WarehousePoint{p}, run(), engine.Figures{}, false)
		near(t, c.name, got.CreditsPerHour, c.credits)
		if notes := strings.Join(got.Notes, " "); c.note == "" && strings.Contains(notes, "generation") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: the notes are %q", c.name, notes)
		}
		if got.WarehouseGeneration != c.generation {
			t.Errorf("%s: generation %q", c.name, got.WarehouseGeneration)
		}
	}
}

func TestWhatIsNotKnown(t *testing.T) {
	p := Default()
	if got := p.Of(nil, run(), engine.Figures{}, false); got != nil {
		t.Errorf("a run without a warehouse costs %+v", got)
	}
	got := p.Of([]engine.WarehousePoint{poll(0, "STANDARD", "7X-Large", 1)}, run(), engine.Figures{}, false)
	if got == nil || got.Credits != 0 || got.PricePerMillion != nil || !strings.Contains(got.Notes[0], "no rate for STANDARD warehouses of size 7X-Large") {
		t.Errorf("an unknown size costs %+v", got)
	}
}

func TestHybridRequests(t *testing.T) {
	p := Default()
	p.Hybrid.CreditsPerMillion = 0.5
	var f engine.Figures
	f.Operations = 4_000_000
	points := []engine.WarehousePoint{poll(0, "STANDARD", "X-Small", 1)}
	near(t, "hybrid", p.Of(points, run(), f, true).Credits, 1+2)
	near(t, "not hybrid", p.Of(points, run(), f, false).Credits, 1)
}

func TestParse(t *testing.T) {
	good := string(Embedded())
	for _, c := range []struct{ old, new, want string }{
		{"currency: USD", "currency: ''", "currency is missing"},
		{"credit_price: 3.00", "credit_price: 0", "credit_price"},
		{"credit_price: 3.00", "credit_price: .nan", "credit_price"},
		{"credit_price: 3.00", "credit_price: free", "cannot be read"},
		{"credit_price: 3.00", "credits_price: 3", "credits_price"},
		{"{X-Small: 1, Small: 2", "{X-Small: -1, Small: 2", "warehouses.STANDARD.credits_per_hour.X-Small"},
		{"minimum_seconds: 3600", "minimum_seconds: .inf", "warehouses.INTERACTIVE.minimum_seconds"},
		{"credits_per_million: 0", "credits_per_million: -3", "hybrid_requests.credits_per_million"},
		{good, "", "empty"},
		{good, "\x00", "cannot be read"},
		{good, strings.Repeat("#", maxList+1), "64 kB"},
	} {
		if _, err := Parse([]byte(strings.Replace(good, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q in place of %.40q: %v, want %q", c.new, c.old, err, c.want)
		}
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
		whole := clusters(points, at(0).Time, at(end).Time) * end
		halves := clusters(points, at(0).Time, at(cut).Time)*cut + clusters(points, at(cut).Time, at(end).Time)*(end-cut)
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
