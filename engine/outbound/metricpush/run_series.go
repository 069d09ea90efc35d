package metricpush

import (
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/metric"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// The metrics of live runs.
var (
	operations       = metric.ByName("loadstone_operations_total")
	failures         = metric.ByName("loadstone_failed_operations_total")
	latency          = metric.ByName("loadstone_latency_seconds")
	failed           = metric.ByName("loadstone_errors_total")
	workerOperations = metric.ByName("loadstone_worker_operations_total")
	workerFailures   = metric.ByName("loadstone_worker_failed_operations_total")
	workerLatency    = metric.ByName("loadstone_worker_latency_seconds")
	running          = metric.ByName("loadstone_warehouse_running_queries")
	queued           = metric.ByName("loadstone_warehouse_queued_queries")
	clusters         = metric.ByName("loadstone_warehouse_started_clusters")
	state            = metric.ByName("loadstone_warehouse_state")
	credits          = metric.ByName("loadstone_warehouse_credits_total")
	scheduled        = metric.ByName("loadstone_scheduled_operations_total")
	dropped          = metric.ByName("loadstone_dropped_operations_total")
	retries          = metric.ByName("loadstone_retries_total")
)

// groupKey tells the groups of a run apart: what counts together, without the second.
type groupKey struct {
	kind, worker, class, code string
	errors, arrivals          bool
	warmup                    bool
}

// group is the series that one kind, run worker or error has, and what they have come to.
type group struct {
	counters []*Series
	values   []int64
	latency  *Series
	sum      histogram.Compact
	// last is what was sent of sum, nil when it has changed.
	last *Latency
	// started: there is a sample of it.
	started bool
}

// added is what a second adds to a group.
type added struct {
	to     *group
	values [3]int64
	cell   *rollup.Cell
}

// runSeries is a run that is going on.
type runSeries struct {
	epoch  int64
	labels labels.Labels
	baseMs int64 // when second 0 began
	// startMs is when the first second that was sent began, 0 before: from then on the counters count.
	startMs  int64
	lastSeen time.Time
	ended    time.Time

	groups map[groupKey]*group
	order  []*group
	// waiting is what was added in seconds that were not sent; high is the last second in which something ended, next
	// the one that is sent next.
	waiting    map[int32][]added
	next, high int32
	any        bool

	gauges map[string]*gauge
	// polled are the labels that the warehouse was last polled with, at polledMs.
	polled   []string
	polledMs int64
	polls    []Point
	// nodes are those that run workers are on; loads is what they said of seconds that were not sent.
	nodes map[string]string
	loads map[int32][]workerLoad
	paid  creditTotals
}

// gauge is what somebody was last; gone once the marker at its end was sent, until it is heard of again.
type gauge struct {
	series *Series
	atMs   int64
	ended  bool
}

func newRunSeries(run engine.Run, epoch int64, now time.Time) *runSeries {
	target := run.Scenario.Target
	return &runSeries{
		epoch:    epoch,
		baseMs:   run.StartTime.UnixMicro() / 1000,
		lastSeen: now,
		groups:   map[groupKey]*group{},
		waiting:  map[int32][]added{},
		gauges:   map[string]*gauge{},
		nodes:    map[string]string{},
		loads:    map[int32][]workerLoad{},
		labels: labels.FromMap(dropEmpty(map[string]string{"run": run.RunID, "run_name": run.RunName,
			"template": run.Scenario.TemplateName, "table_type": target.Adapter, "target": target.Connection.Name,
			"table": target.TableName})),
	}
}

// dropEmpty leaves out labels that are empty, which are none.
func dropEmpty(m map[string]string) map[string]string {
	for k, v := range m {
		if v == "" {
			delete(m, k)
		}
	}
	return m
}

func phase(warmup bool) string {
	if warmup {
		return "warmup"
	}
	return "measurement"
}

func (f *runSeries) series(m *metric.Metric, pairs ...string) *Series {
	b := labels.NewBuilder(f.labels)
	for i := 0; i < len(pairs); i += 2 {
		b.Set(pairs[i], pairs[i+1]) //nolint:gosec // the index is below the length
	}
	return &Series{m, b.Set(model.MetricNameLabel, m.Name).Labels()}
}

func (f *runSeries) group(o groupKey) *group {
	g := f.groups[o]
	if g != nil {
		return g
	}
	g = &group{}
	switch {
	case o.errors:
		g.counters = []*Series{f.series(failed, "kind", o.kind, "error_class", o.class, "error_code", o.code,
			"phase", phase(o.warmup))}
	case o.arrivals:
		with := []string{"worker", o.worker, "node", f.nodes[o.worker], "phase", phase(o.warmup)}
		g.counters = []*Series{f.series(scheduled, with...), f.series(dropped, with...), f.series(retries, with...)}
	case o.worker != "":
		with := []string{"worker", o.worker, "node", f.nodes[o.worker], "phase", phase(o.warmup)}
		g.counters = []*Series{f.series(workerOperations, with...), f.series(workerFailures, with...)}
		g.latency = f.series(workerLatency, with...)
	default:
		with := []string{"kind", o.kind, "phase", phase(o.warmup)}
		g.counters = []*Series{f.series(operations, with...), f.series(failures, with...)}
		g.latency = f.series(latency, with...)
	}
	g.values = make([]int64, len(g.counters))
	f.groups[o], f.order = g, append(f.order, g)
	return g
}

// add takes what has come of the run.
func (f *runSeries) add(l rollup.Live, now time.Time) {
	f.lastSeen = now
	for k, r := range l.Seconds.Loads {
		f.nodes[k.Worker] = r.Node
	}
	for k, r := range l.Seconds.Loads {
		f.load(k, r)
	}
	for k, c := range l.Seconds.Kinds {
		f.note(k.Moment, groupKey{kind: k.Kind, warmup: k.Warmup}, [3]int64{c.Operations, c.Errors}, c)
	}
	for k, c := range l.Seconds.Workers {
		f.note(k.Moment, groupKey{worker: k.Worker, warmup: k.Warmup}, [3]int64{c.Operations, c.Errors}, c)
	}
	for k, n := range l.Seconds.Errors {
		f.note(
			k.Moment,
			groupKey{kind: k.Kind, class: k.Class, code: k.Code, errors: true, warmup: k.Warmup},
			[3]int64{n},
			nil,
		)
	}
	for _, p := range l.Warehouse {
		f.poll(p)
		f.countCredits(p, l.PerHour)
	}
}

func (f *runSeries) note(at rollup.Moment, o groupKey, values [3]int64, c *rollup.Cell) (second int32) {
	if !f.any {
		f.next, f.high, f.any = at.Second, at.Second, true
	}
	// What was sent cannot be changed: what comes late is in the next second. The second in which a run is first heard
	// of may not be its first.
	second = at.Second
	if f.startMs != 0 {
		second = max(second, f.next)
	} else {
		f.next = min(f.next, second)
	}
	f.high = max(f.high, second)
	f.waiting[second] = append(f.waiting[second], added{f.group(o), values, c})
	return second
}

// settled appends the samples of seconds that nothing is to come of any more, or of all.
func (f *runSeries) settled(points []Point, now time.Time, all bool) []Point {
	points = append(points, f.polls...)
	f.polls = nil
	if !f.any {
		return points
	}
	// A counter has a sample of each second, also while nothing ends,
	// until nothing is heard of the run any more.
	if !all {
		f.high = max(f.high, int32((f.lastSeen.UnixMilli()-f.baseMs)/1000)-1)
	}
	if f.high-f.next > maxGapSeconds {
		f.skip(f.high - maxGapSeconds)
	}
	for ; f.next <= f.high; f.next++ {
		end := f.baseMs + (int64(f.next)+1)*1000
		if !all && now.UnixMilli() < end+settleDelay.Milliseconds() {
			break
		}
		if f.startMs == 0 {
			f.startMs = end - 1000
		}
		for _, a := range f.waiting[f.next] {
			points = f.begin(points, a.to, end-1000)
			a.apply()
		}
		delete(f.waiting, f.next)
		for _, g := range f.order {
			if g.started {
				points = g.sample(points, end, f.startMs, false)
			}
		}
		points = f.endStale(f.appendLoads(points, f.next, end), end)
	}
	return points
}

// skip leaves out a long stretch in which nothing ended; what there was in it is counted in the second to.
func (f *runSeries) skip(to int32) {
	for second, a := range f.waiting {
		if second < to {
			f.waiting[to] = append(f.waiting[to], a...)
			delete(f.waiting, second)
			delete(f.loads, second)
		}
	}
	f.next = to
}

// begin lets the series of a group begin with 0.
func (f *runSeries) begin(points []Point, g *group, at int64) []Point {
	if g.started {
		return points
	}
	g.started = true
	return g.sample(points, at, f.startMs, false)
}

func (a *added) apply() {
	for i := range a.to.values {
		a.to.values[i] += a.values[i]
	}
	if a.cell != nil && a.to.latency != nil {
		a.to.sum.Merge(&a.cell.Latency)
		a.to.last = nil
	}
}

func (g *group) sample(points []Point, at, start int64, stale bool) []Point {
	for i, s := range g.counters {
		points = append(points, Point{Series: s, AtMs: at, StartMs: start, Value: float64(g.values[i]), Stale: stale})
	}
	if g.latency == nil {
		return points
	}
	if g.last == nil {
		d := g.sum.Data()
		g.last = &Latency{Schema: int32(d.Schema), Offset: int32(d.Offset), Counts: slices.Clone(d.Counts), SumNs: d.Sum}
		for _, c := range d.Counts {
			g.last.Count += c
		}
	}
	return append(points, Point{Series: g.latency, AtMs: at, StartMs: start, Latency: g.last, Stale: stale})
}

// markers ends all series, a second after the last sample.
func (f *runSeries) markers(points []Point) []Point {
	end := f.baseMs + (int64(f.next)+1)*1000
	for _, g := range f.order {
		if g.started {
			points = g.sample(points, end, f.startMs, true)
		}
	}
	for _, g := range f.gauges {
		if !g.ended {
			points = append(points, Point{Series: g.series, AtMs: max(end, g.atMs+1), Stale: true})
		}
	}
	return points
}

// endStale ends the gauges of run workers, nodes and warehouses of which nothing was heard for silence.
func (f *runSeries) endStale(points []Point, end int64) []Point {
	for _, g := range f.gauges {
		if !g.ended && g.series.Metric != credits && end-g.atMs >= staleAfter.Milliseconds() {
			points = append(points, g.end(end))
		}
	}
	return points
}

// end ends a gauge. It stays known, so that nothing of before that time is sent any more.
func (g *gauge) end(at int64) Point {
	g.ended, g.atMs = true, at
	return Point{Series: g.series, AtMs: at, Stale: true}
}

// poll takes what the warehouse was when it was asked.
func (f *runSeries) poll(p engine.WarehousePoint) {
	at := p.Timestamp.UnixMilli()
	if at <= f.polledMs {
		return
	}
	f.polledMs = at
	with := []string{"warehouse", p.Name, "warehouse_type", p.Type, "warehouse_size", p.Size}
	if !slices.Equal(with, f.polled) {
		f.polled = with
		for _, g := range f.gauges {
			switch g.series.Metric {
			case running, queued, clusters, state:
				if !g.ended && g.atMs < at {
					f.polls = append(f.polls, g.end(at))
				}
			}
		}
	}
	f.gauge(running, at, float64(p.Running), with...)
	f.gauge(queued, at, float64(p.Queued), with...)
	if p.StartedClusters != nil { // an edition without clusters tells none
		f.gauge(clusters, at, float64(*p.StartedClusters), with...)
	}
	if p.State == "" {
		return
	}
	now := f.gauge(state, at, 1, append(slices.Clone(with), "state", p.State)...)
	for _, g := range f.gauges {
		if g.series.Metric == state && g != now && !g.ended && g.atMs < at {
			g.atMs = at
			f.polls = append(f.polls, Point{Series: g.series, AtMs: at})
		}
	}
}

func (f *runSeries) gauge(m *metric.Metric, at int64, v float64, pairs ...string) *gauge {
	key := m.Name
	for _, p := range pairs {
		key += strconv.Quote(p)
	}
	g := f.gauges[key]
	if g == nil {
		g = &gauge{series: f.series(m, pairs...)}
		f.gauges[key] = g
	}
	if at > g.atMs {
		g.atMs, g.ended = at, false
		f.polls = append(f.polls, Point{Series: g.series, AtMs: at, Value: v})
	}
	return g
}
