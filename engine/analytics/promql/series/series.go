// Package series shows the segment of a run as Prometheus sees the world: counters, gauges and native histograms with
// labels, sampled once a second. docs/guides/dashboards.md lists them.
//
// A counter starts with 0 when the run starts and has a sample at the end of each second of the run, also of those in
// which nothing happened; after the last one a marker says that it is stale. So rate() over any window inside of the
// run is exact, and nothing of a run is seen after it.
package series

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// Set are the series of one run. It is not changed after it was read.
type Set struct {
	all []seriesData
	// byName has the indices of the series of a metric.
	byName map[string][]int
	run    labels.Labels
	bytes  int64
	// from and to are when the first and the last sample are, in milliseconds.
	from, to int64
}

// seriesData is a series: a number for each instant, or histograms.
type seriesData struct {
	labels labels.Labels
	// start is when the first sample is, in milliseconds; samples are a second apart where times are nil.
	start  int64
	times  *numbers
	floats numbers
	hist   *histograms
	// after is how long after the last sample the marker comes, in milliseconds.
	after int64
}

// seriesBytes is about what a series takes besides its samples: its labels, and its place.
const seriesBytes = 300

// Labels is what all series of the run have in common.
func (s *Set) Labels() labels.Labels { return s.run }

// Bytes is about how much memory the set takes.
func (s *Set) Bytes() int64 { return s.bytes }

// seriesRelations are the relations that there are series of: what a run did is the sum of its kinds.
var seriesRelations = []string{
	segment.KindSeconds,
	segment.StatementSeconds,
	segment.ErrorSeconds,
	segment.WorkerSeconds,
	segment.WarehouseSeconds,
	segment.LoadSeconds,
}

// Read reads the series of a segment. run are labels that all of them get.
func Read(f *segment.File, run labels.Labels) (*Set, error) {
	r := newReader(run)
	if err := f.Read(segment.Query{Relations: seriesRelations, NoExtremes: true}, func(row *segment.Row) (err error) {
		switch row.Relation {
		case segment.ErrorSeconds, segment.WarehouseSeconds, segment.LoadSeconds:
		default:
			if r.buckets, err = row.Buckets(r.buckets); err != nil {
				return err
			}
		}
		return r.add(row, r.buckets)
	}); err != nil {
		return nil, err
	}
	return r.set()
}

// Live reads the series of a run that is going on, or has not been taken in: source hands over its rows, the seconds of
// each series in their order, with the counts of their latencies.
func Live(run labels.Labels, source func(add func(*segment.Row, []int64) error) error) (*Set, error) {
	r := newReader(run)
	r.live = true
	if err := source(func(row *segment.Row, counts []int64) error {
		r.buckets = r.buckets[:0]
		for i, c := range counts {
			if c != 0 {
				r.buckets = append(r.buckets, segment.Bucket{At: int32(i), Count: c})
			}
		}
		return r.add(row, r.buckets)
	}); err != nil {
		return nil, err
	}
	return r.set()
}

func newReader(run labels.Labels) *reader {
	return &reader{run: run, at: map[segment.Labels]*rows{}, low: math.MaxInt32, high: math.MinInt32,
		nodes: map[string]string{}}
}

// rows are those of one series of a segment.
type rows struct {
	labels segment.Labels
	second []int32
	// Counters are what was added in the second.
	operations, failures, results []float64
	hist                          histograms
	polls                         []poll
	loads                         []loadSample
}

// grow makes some for another row where there is none, at once for as many as the longest series so far has: most of a
// run have about as many.
func (s *rows) grow(longest int) {
	n := len(s.second)
	if n < cap(s.second) {
		return
	}
	more := max(n, 16, longest-n)
	s.second = slices.Grow(s.second, more)
	switch s.labels.Relation {
	case segment.LoadSeconds:
		s.loads = slices.Grow(s.loads, more)
	default:
		s.operations, s.failures = slices.Grow(s.operations, more), slices.Grow(s.failures, more)
		s.results = slices.Grow(s.results, more)
	}
}

type poll struct {
	at                        int64
	running, queued, clusters float64
	perHour                   float64 // in credits
	state                     string
}

type reader struct {
	run   labels.Labels
	at    map[segment.Labels]*rows
	order []*rows
	last  *rows
	// base is when second 0 began, in milliseconds.
	base      int64
	low, high int32
	buckets   []segment.Bucket
	live      bool
	// nodes are those that run workers were last on.
	nodes map[string]string
	// maxRows is how many rows the longest series has.
	maxRows int
	// What follows is memory for one series.
	values, added []float64
	points        points
}

func (r *reader) add(row *segment.Row, buckets []segment.Bucket) error {
	if r.last == nil || r.last.labels != row.Labels {
		if r.last = r.at[row.Labels]; r.last == nil {
			r.last = &rows{labels: row.Labels}
			r.at[row.Labels], r.order = r.last, append(r.order, r.last)
		}
	}
	s := r.last
	if row.Relation == segment.WarehouseSeconds {
		s.polls = append(s.polls, poll{at: row.At / 1000, running: float64(row.Running), queued: float64(row.Queued),
			clusters: float64(row.StartedClusters), perHour: row.CreditsPerHour, state: row.State})
		return nil
	}
	if n := len(s.second); n > 0 && row.Second <= s.second[n-1] {
		return fmt.Errorf("a segment whose seconds are out of order: %d after %d", row.Second, s.second[n-1])
	}
	r.base = row.At/1000 - int64(row.Second)*1000
	r.low, r.high = min(r.low, row.Second), max(r.high, row.Second)
	s.grow(r.maxRows)
	s.second = append(s.second, row.Second)
	r.maxRows = max(r.maxRows, len(s.second))
	if row.Relation == segment.LoadSeconds {
		s.loads = append(s.loads, loadSample{row.Second, row.Warmup, row.Load()})
		r.nodes[row.WorkerID] = row.NodeID
		return nil
	}
	s.operations = append(s.operations, float64(row.Operations))
	s.failures = append(s.failures, float64(row.Errors))
	s.results = append(s.results, float64(row.RowCount))
	if row.Relation == segment.ErrorSeconds {
		return nil
	}
	s.hist.add(row, buckets)
	return nil
}

// The most seconds that a run may have: a year.
const maxRunSeconds = 366 * 24 * 3600

func (r *reader) set() (*Set, error) {
	s := &Set{byName: map[string][]int{}, run: r.run, from: math.MaxInt64, to: math.MinInt64}
	if r.low <= r.high && int64(r.high)-int64(r.low) > maxRunSeconds {
		return nil, fmt.Errorf("a segment of %d seconds", int64(r.high)-int64(r.low))
	}
	for _, rows := range r.order {
		r.series(s, rows)
	}
	r.gauges(s)
	r.credits(s)
	slices.SortFunc(s.all, func(a, b seriesData) int { return labels.Compare(a.labels, b.labels) })
	for i := range s.all {
		o := &s.all[i]
		name := o.labels.Get(model.MetricNameLabel)
		s.byName[name] = append(s.byName[name], i)
		s.bytes += seriesBytes + o.floats.bytes()
		if o.times != nil {
			s.bytes += o.times.bytes()
		}
		if o.hist != nil {
			s.bytes += o.hist.bytes()
		}
		if o.after == 0 {
			o.after = staleAfterSecond
		}
		if r.live {
			o.after = max(o.after, staleAfterReport)
		}
		first, last := o.span()
		s.from, s.to = min(s.from, first), max(s.to, last)
	}
	return s, nil
}

func (r *reader) series(s *Set, rows *rows) {
	l := rows.labels
	switch l.Relation {
	case segment.KindSeconds:
		with := r.labels("kind", l.Kind, "phase", phase(l.Warmup))
		r.counter(s, "loadstone_operations_total", with, rows, rows.operations)
		r.counter(s, "loadstone_failed_operations_total", with, rows, rows.failures)
		r.counter(s, "loadstone_rows_total", with, rows, rows.results)
		r.histogram(s, "loadstone_latency_seconds", with, rows)
	case segment.StatementSeconds:
		with := r.labels("statement", l.StatementID, "kind", l.Kind, "in_transaction", strconv.FormatBool(l.InTransaction),
			"phase", phase(l.Warmup))
		r.counter(s, "loadstone_statement_operations_total", with, rows, rows.operations)
		r.counter(s, "loadstone_statement_failed_operations_total", with, rows, rows.failures)
		r.histogram(s, "loadstone_statement_latency_seconds", with, rows)
	case segment.WorkerSeconds:
		with := r.labels("worker", l.WorkerID, "node", r.nodes[l.WorkerID], "phase", phase(l.Warmup))
		r.counter(s, "loadstone_worker_operations_total", with, rows, rows.operations)
		r.counter(s, "loadstone_worker_failed_operations_total", with, rows, rows.failures)
		r.histogram(s, "loadstone_worker_latency_seconds", with, rows)
	case segment.ErrorSeconds:
		r.counter(s, "loadstone_errors_total",
			r.labels("kind", l.Kind, "error_class", l.ErrorClass, "error_code", l.ErrorCode,
				"phase", phase(l.Warmup)), rows, rows.failures)
	case segment.WarehouseSeconds:
		r.warehouse(s, rows)
	case segment.LoadSeconds:
		r.arrivals(s, rows)
	}
}

func phase(warmup bool) string {
	if warmup {
		return "warmup"
	}
	return "measurement"
}

// labels are the run's and those named; an empty one is none.
func (r *reader) labels(pairs ...string) *labels.Builder {
	b := labels.NewBuilder(r.run)
	for i := 0; i < len(pairs); i += 2 {
		b.Set(pairs[i], pairs[i+1]) //nolint:gosec // the index is below the length
	}
	return b
}

func (r *reader) counter(s *Set, name string, with *labels.Builder, rows *rows, added []float64) {
	n := int(r.high-r.low) + 2
	r.values = append(r.values[:0], 0)
	at, sum := 0, 0.0
	for i := 1; i < n; i++ {
		if second := r.low + int32(i) - 1; at < len(rows.second) && rows.second[at] == second {
			sum, at = sum+added[at], at+1
		}
		r.values = append(r.values, sum)
	}
	s.all = append(s.all, seriesData{labels: with.Set(model.MetricNameLabel, name).Labels(), start: r.start(),
		floats: pack(r.values)})
}

func (r *reader) start() int64 { return r.base + int64(r.low)*1000 }

func (r *reader) histogram(s *Set, name string, with *labels.Builder, rows *rows) {
	h := rows.hist.trimmed()
	h.low, h.seconds = r.low, int(r.high-r.low)+2
	s.all = append(s.all, seriesData{labels: with.Set(model.MetricNameLabel, name).Labels(), start: r.start(), hist: &h})
}

func (r *reader) warehouse(s *Set, rows *rows) {
	with := r.warehouseLabels(rows)
	slices.SortFunc(rows.polls, func(a, b poll) int { return cmp.Compare(a.at, b.at) })
	rows.polls = slices.CompactFunc(rows.polls, func(a, b poll) bool { return a.at == b.at })
	gauge := func(name string, of func(poll) float64) {
		var g points
		for _, p := range rows.polls {
			g.add(p.at, of(p))
		}
		o := seriesData{labels: with.Set(model.MetricNameLabel, name).Labels(), after: staleAfterPoll}
		g.moveTo(&o)
		s.all = append(s.all, o)
	}
	gauge("loadstone_warehouse_running_queries", func(p poll) float64 { return p.running })
	gauge("loadstone_warehouse_queued_queries", func(p poll) float64 { return p.queued })
	gauge("loadstone_warehouse_started_clusters", func(p poll) float64 { return p.clusters })
	states := map[string]bool{}
	for _, p := range rows.polls {
		states[p.state] = true
	}
	for state := range states {
		if state != "" {
			with.Set("state", state)
			gauge("loadstone_warehouse_state", func(p poll) float64 {
				if p.state == state {
					return 1
				}
				return 0
			})
		}
	}
}

func (o *seriesData) samples() int {
	if o.hist != nil {
		return o.hist.seconds
	}
	return o.floats.n
}

// at is when a sample is; the one after the last is the marker.
func (o *seriesData) at(i int) int64 {
	last := o.samples()
	switch {
	case i == last && last > 0:
		return o.at(i-1) + o.after
	case o.times == nil:
		return o.start + int64(i)*1000
	}
	return int64(o.times.at(i))
}

// How long after the last sample a series is stale, in milliseconds: at once when the run is over, after two polls of a
// warehouse, and when nothing has come for a while from a run that is going on.
const (
	staleAfterSecond = 1_000
	staleAfterPoll   = 10_000
	staleAfterReport = 15_000
)

func (o *seriesData) span() (first, last int64) { return o.at(0), o.at(o.samples()) }

// Labels implements storage.Series.
func (o *seriesData) Labels() labels.Labels { return o.labels }

// Iterator implements storage.Series.
func (o *seriesData) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	if o.hist != nil {
		return newHistogramIterator(o)
	}
	f, ok := it.(*floatIterator)
	if !ok {
		f = &floatIterator{}
	}
	*f = floatIterator{series: o, i: -1, n: o.floats.n}
	return f
}

// Sets are the series of several runs. They implement storage.Queryable.
type Sets []*Set

// Querier implements storage.Queryable.
func (s Sets) Querier(from, to int64) (storage.Querier, error) {
	return &querier{sets: s, from: from, to: to}, nil
}

var stale = math.Float64frombits(value.StaleNaN)
