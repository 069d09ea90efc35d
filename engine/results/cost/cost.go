// Package cost reckons what the measurement of a run used of a warehouse that is
// paid by the hour. It is pure: the polls of the warehouse, the figures and the
// price list go in.
package cost

import (
	"bytes"
	_ "embed" // the price list
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

//go:embed prices.yaml
var embedded []byte

// Prices are a price list.
type Prices struct {
	// AsOf and Source say where the prices are from.
	AsOf        string
	Source      string
	Currency    string
	CreditPrice float64
	Warehouses  map[string]Warehouse
	Hybrid      Hybrid
}

// Warehouse are the prices of one type of warehouse, in credits.
type Warehouse struct {
	MinimumSeconds float64
	// CreditsPerHour of one cluster, by size.
	CreditsPerHour map[string]float64
}

// Hybrid is the price of requests to hybrid tables, in credits.
type Hybrid struct {
	CreditsPerMillion float64
	// Adapters are those whose tables are hybrid.
	Adapters []string
}

// Default is the price list that comes with Loadstone.
func Default() Prices {
	p, err := Parse(embedded)
	if err != nil {
		panic("cost: the embedded price list: " + err.Error())
	}
	return p
}

// Embedded is the text of the default price list, to be copied and edited.
func Embedded() []byte { return bytes.Clone(embedded) }

// Aftermath is what keeps a warehouse up when the load of a run is over.
type Aftermath struct {
	// Suspended: the run has resumed the warehouse, and suspends it when everything is over.
	Suspended bool
	// Until is when the last query ended that the run caused besides its load; zero without one.
	Until time.Time
}

// RunCost reckons the cost of a run: of its measurement, from start to end, for
// operations that succeeded, of its whole life, and of all it caused. points are the polls of its
// warehouse in order of time; without one the answer is nil, because then
// nothing is paid by the hour, or nothing is known about it. adapter is the name of
// the run's.
func (p Prices) RunCost(points []engine.WarehousePoint, run engine.Run, f engine.Figures, adapter string,
	after Aftermath) *engine.Cost {
	if len(points) == 0 {
		return nil
	}
	last := points[len(points)-1]
	c := &engine.Cost{Warehouse: last.Name, WarehouseType: last.Type, WarehouseSize: last.Size,
		WarehouseGeneration: last.Generation, Currency: p.Currency, CreditPrice: p.CreditPrice,
		PriceList: p.name(), Notes: []string{}}
	list, rate, note := p.rate(last.Warehouse)
	if note != "" {
		c.Notes = append(c.Notes, note)
	}
	if rate == 0 {
		return c
	}
	c.CreditsPerHour = rate
	start, end := run.WarmupEndTime.Time, run.MeasurementEndTime.Time
	if start.IsZero() {
		start = run.StartTime.Time
	}
	if end.IsZero() {
		end = run.EndTime.Time
	}
	hours := max(end.Sub(start).Hours(), 0)
	c.Clusters = meanClusters(points, start, end)
	c.Credits = hours * c.Clusters * rate
	c.RunCredits = max(run.EndTime.Sub(run.StartTime.Time).Hours(), hours) * meanClusters(points, run.StartTime.Time,
		run.EndTime.Time) * rate
	p.caused(c, points, run, list.MinimumSeconds, after)
	if slices.Contains(p.Hybrid.Adapters, adapter) && p.Hybrid.CreditsPerMillion > 0 {
		requests := float64(f.Operations) / 1e6 * p.Hybrid.CreditsPerMillion
		c.Credits += requests
		c.RunCredits += requests
		c.CausedCredits += requests
		c.Notes = append(c.Notes, "One request to a hybrid table is reckoned for each operation; what is billed goes by "+
			"the bytes read and written.")
	}
	c.Price, c.RunPrice, c.CausedPrice = c.Credits*p.CreditPrice, c.RunCredits*p.CreditPrice, c.CausedCredits*p.CreditPrice
	if good := f.Operations - f.Errors.Count; good > 0 {
		each := c.Price / float64(good) * 1e6
		c.PricePerMillion = &each
	}
	if warehouseChanged(points) {
		c.Notes = append(c.Notes, "The warehouse's size, type or generation changed in the run; its latest rate is used "+
			"throughout.")
	}
	if least := list.MinimumSeconds; least > 60 {
		c.Notes = append(c.Notes, fmt.Sprintf("A warehouse of this type is billed for %s at least whenever it starts.",
			time.Duration(least*float64(time.Second))))
	}
	c.Notes = append(c.Notes, "The warehouse may have served others too. Storage, cloud services and data transfer are "+
		"left out.")
	return c
}

// caused reckons with the time from the start of a run until its warehouse suspended. After the run it has the least
// number of clusters.
func (p Prices) caused(
	c *engine.Cost,
	points []engine.WarehousePoint,
	run engine.Run,
	minimum float64,
	after Aftermath,
) {
	last := points[len(points)-1]
	seconds := max(run.EndTime.Sub(run.StartTime.Time).Seconds(), 0)
	clusters := meanClusters(points, run.StartTime.Time, run.EndTime.Time)
	tail := 0.0
	if !after.Until.IsZero() {
		tail = max(after.Until.Sub(run.EndTime.Time).Seconds(), 0)
	}
	switch {
	case after.Suspended:
	case last.AutoSuspendSeconds > 0:
		tail += float64(last.AutoSuspendSeconds)
		c.Notes = append(
			c.Notes,
			fmt.Sprintf("The warehouse suspends %s after its last query: this is counted as caused by the "+
				"run, unless others kept it up.", time.Duration(last.AutoSuspendSeconds)*time.Second),
		)
	default:
		c.Notes = append(
			c.Notes,
			"The warehouse does not tell when it suspends by itself: what it takes after the run is left "+
				"out.",
		)
	}
	spent := seconds*clusters + tail*float64(last.LeastClusters())
	c.CausedSeconds = seconds + tail
	if after.Suspended && c.CausedSeconds < minimum { // a start is billed for the minimum; one that was up has had its own
		spent, c.CausedSeconds = max(spent, minimum*max(clusters, 1)), minimum
	}
	c.CausedCredits = max(spent/3600*c.CreditsPerHour, c.RunCredits)
}

// Least reckons what a run costs at least whose load takes some seconds, on a warehouse as it is before the run. suspends:
// the run suspends it when everything is over.
func (p Prices) Least(w engine.Warehouse, seconds float64, suspends bool) *engine.LeastCost {
	c := &engine.LeastCost{Warehouse: w.Name, WarehouseType: w.Type, WarehouseSize: w.Size, Clusters: w.LeastClusters(),
		Currency: p.Currency, PriceList: p.name()}
	list, rate, note := p.rate(w)
	c.Note = note
	c.Seconds = seconds
	if strings.HasPrefix(strings.ToUpper(w.State), "SUSPEND") {
		if !suspends {
			c.Seconds += float64(w.AutoSuspendSeconds)
		}
		c.Seconds = max(c.Seconds, list.MinimumSeconds)
	}
	if rate > 0 {
		credits := c.Seconds / 3600 * float64(c.Clusters) * rate
		price := credits * p.CreditPrice
		c.Credits, c.Price = &credits, &price
	}
	return c
}

// PerHour is what an hour of the warehouse as it was polled takes, in credits: 0
// while it is suspended; known is false when the list has no rate for it.
func (p Prices) PerHour(w engine.Warehouse) (credits float64, known bool) {
	_, rate, _ := p.rate(w)
	return rate * Started(w), rate > 0
}

func (p Prices) name() string {
	parts := make([]string, 0, 2)
	for _, s := range []string{p.Source, p.AsOf} {
		if s = strings.TrimSpace(s); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ", ")
}

// adaptive warehouses have no size: what their queries use is billed.
const adaptive = "ADAPTIVE"

// rate is what an hour of one cluster costs, 0 when nobody knows. The note says what
// is remarkable about that.
func (p Prices) rate(w engine.Warehouse) (list Warehouse, credits float64, note string) {
	kind := w.Type
	if kind == "" {
		kind = "STANDARD"
	}
	if w.Generation != "" {
		if list, credits, ok := p.find(kind+" GEN"+w.Generation, w.Size); ok {
			return list, credits, ""
		}
	}
	list, credits, ok := p.find(kind, w.Size)
	switch {
	case !ok && normalizeName(kind) == adaptive:
		return list, 0, "An adaptive warehouse is billed by what its queries use, not by the hour: see " +
			"WAREHOUSE_METERING_HISTORY."
	case !ok:
		return list, 0, fmt.Sprintf("The price list has no rate for %s warehouses of size %s.", orUnknown(w.Type),
			orUnknown(w.Size))
	case normalizeName(kind) != "STANDARD":
	case w.Generation == "" && w.Name != "":
		note = "The account does not tell the warehouse's generation; it is reckoned as generation 1, and generation 2 " +
			"takes about a third more credits."
	case w.Generation != "1" && w.Generation != "":
		note = fmt.Sprintf("The price list has no rate for generation %s of this size; it is reckoned as generation 1, "+
			"which takes fewer credits.", w.Generation)
	}
	return list, credits, note
}

// find looks a type and a size up, however they are spelled: X-Small, XSMALL, X-SMALL.
func (p Prices) find(kind, size string) (Warehouse, float64, bool) {
	for k, w := range p.Warehouses {
		if normalizeName(k) != normalizeName(kind) {
			continue
		}
		for s, credits := range w.CreditsPerHour {
			if normalizeName(s) == normalizeName(size) {
				return w, credits, true
			}
		}
	}
	return Warehouse{}, 0, false
}

func normalizeName(s string) string {
	s = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToUpper(s))
	// XXLARGE, XXXLARGE … are 2XLARGE, 3XLARGE ….
	if rest, ok := strings.CutSuffix(s, "LARGE"); ok && len(rest) > 1 && strings.Trim(rest, "X") == "" {
		return fmt.Sprintf("%dXLARGE", len(rest))
	}
	return s
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// meanClusters is the mean number of started clusters between two moments: a poll
// holds until the next one, the first also before itself. A warehouse that
// says nothing of clusters has one while it is not suspended.
func meanClusters(points []engine.WarehousePoint, start, end time.Time) float64 {
	total, weight := 0.0, 0.0
	for i, p := range points {
		from, to := p.Timestamp.Time, end
		if i == 0 || from.Before(start) {
			from = start
		}
		if i+1 < len(points) && points[i+1].Timestamp.Before(end) {
			to = points[i+1].Timestamp.Time
		}
		if span := to.Sub(from).Seconds(); span > 0 {
			total += span * Started(p.Warehouse)
			weight += span
		}
	}
	if weight == 0 {
		return Started(points[len(points)-1].Warehouse)
	}
	mean := total / weight
	return math.Round(mean*1e6) / 1e6
}

// Started is how many clusters of a warehouse are paid for, as it was polled.
func Started(w engine.Warehouse) float64 {
	if w.StartedClusters != nil && *w.StartedClusters > 0 {
		return float64(*w.StartedClusters)
	}
	if strings.HasPrefix(strings.ToUpper(w.State), "SUSPEND") {
		return 0
	}
	return 1
}

func warehouseChanged(points []engine.WarehousePoint) bool {
	for _, p := range points[1:] {
		if p.Size != points[0].Size || p.Type != points[0].Type || p.Generation != points[0].Generation {
			return true
		}
	}
	return false
}
