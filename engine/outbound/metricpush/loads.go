package metricpush

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/metric"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// loaded is what a run worker reported in a second.
type loaded struct {
	of   rollup.OfWorker
	load *rollup.Load
}

// load takes what a run worker reported. Its counts may be counted later; what it was is not sent once its second was.
func (f *flow) load(k rollup.OfWorker, l *rollup.Load) {
	f.note(k.Moment, of{worker: k.Worker, arrivals: true, warmup: k.Warmup},
		[3]int64{l.Scheduled, l.Dropped, l.Retries}, nil)
	if f.startMs == 0 || k.Second >= f.next {
		f.loads[k.Second] = append(f.loads[k.Second], loaded{k, l})
	}
}

// loaded appends what run workers and nodes were at the end of a second, as package series shows it of the record.
func (f *flow) loaded(points []Point, second int32, end int64) []Point {
	latest, nodes := map[string]loaded{}, map[string][]*rollup.Load{}
	for _, l := range f.loads[second] {
		if old, ok := latest[l.of.Worker]; !ok || old.of.Warmup || !l.of.Warmup {
			latest[l.of.Worker] = l
		}
		if l.load.Node != "" {
			nodes[l.load.Node] = append(nodes[l.load.Node], l.load)
		}
	}
	delete(f.loads, second)
	for worker, l := range latest {
		for _, g := range metric.OfWorker {
			if v := g.Of(l.load); v != rollup.Unknown {
				f.gauge(g.Metric, end, v, "worker", worker, "node", l.load.Node)
			}
		}
	}
	for node, loads := range nodes {
		for _, g := range metric.OfNode {
			most := g.Of(loads[0])
			for _, l := range loads[1:] {
				most = max(most, g.Of(l))
			}
			f.gauge(g.Metric, end, most, "node", node)
		}
	}
	points = append(points, f.polls...)
	f.polls = nil
	return points
}

// paid is what a warehouse has taken since it was first polled here, by its labels: another size is another series.
type paid struct {
	since, at int64
	// perHour is the rate from at on, 0 while nobody knows it.
	perHour float64
	labels  warehouse
	credits map[warehouse]float64
}

// warehouse has the labels of one.
type warehouse struct{ name, kind, size string }

// pay counts the credits from one poll to the next, at the rate and for the size of the former.
func (f *flow) pay(p engine.WarehousePoint, perHour rollup.PerHour) {
	if perHour == nil {
		return
	}
	each, known := perHour(p.Warehouse)
	at, of := p.Timestamp.UnixMilli(), &f.paid
	if of.credits == nil {
		if !known {
			return
		}
		of.credits, of.since = map[warehouse]float64{}, at
	} else if at <= of.at {
		return
	} else {
		f.owe(at)
	}
	if !known {
		each = 0
	}
	of.at, of.perHour, of.labels = at, each, warehouse{p.Name, p.Type, p.Size}
	f.credit(at)
}

// owe counts the credits since the last poll, and shows them.
func (f *flow) owe(at int64) {
	of := &f.paid
	of.credits[of.labels] += of.perHour * float64(at-of.at) / 3_600_000
	of.at = at
	f.credit(at)
}

// credit appends what a warehouse of these labels has taken.
func (f *flow) credit(at int64) {
	of, before := &f.paid, len(f.polls)
	f.gauge(credits, at, of.credits[of.labels], "warehouse", of.labels.name, "warehouse_type", of.labels.kind,
		"warehouse_size", of.labels.size)
	for i := range f.polls[before:] {
		f.polls[before+i].StartMs = of.since
	}
}
