package metricpush

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/metric"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// workerLoad is what a run worker reported in a second.
type workerLoad struct {
	key  rollup.WorkerKey
	load *rollup.Load
}

// load takes what a run worker reported. Its counts may be counted later; what it was is not sent once its second was.
func (f *runSeries) load(k rollup.WorkerKey, l *rollup.Load) {
	f.note(k.Moment, groupKey{worker: k.Worker, arrivals: true, warmup: k.Warmup},
		[3]int64{l.Scheduled, l.Dropped, l.Retries}, nil)
	if f.startMs == 0 || k.Second >= f.next {
		f.loads[k.Second] = append(f.loads[k.Second], workerLoad{k, l})
	}
}

// appendLoads appends what run workers and nodes were at the end of a second, as package series shows it of the record.
func (f *runSeries) appendLoads(points []Point, second int32, end int64) []Point {
	latest, nodes := map[string]workerLoad{}, map[string][]*rollup.Load{}
	for _, l := range f.loads[second] {
		if old, ok := latest[l.key.Worker]; !ok || old.key.Warmup || !l.key.Warmup {
			latest[l.key.Worker] = l
		}
		if l.load.Node != "" {
			nodes[l.load.Node] = append(nodes[l.load.Node], l.load)
		}
	}
	delete(f.loads, second)
	for worker, l := range latest {
		for _, g := range metric.WorkerGauges {
			if v := g.Value(l.load); v != rollup.Unknown {
				f.gauge(g.Metric, end, v, "worker", worker, "node", l.load.Node)
			}
		}
	}
	for node, loads := range nodes {
		for _, g := range metric.NodeGauges {
			most := g.Value(loads[0])
			for _, l := range loads[1:] {
				most = max(most, g.Value(l))
			}
			f.gauge(g.Metric, end, most, "node", node)
		}
	}
	points = append(points, f.polls...)
	f.polls = nil
	return points
}

// creditTotals is what a warehouse has taken since it was first polled here, by its labels: another size is another
// series.
type creditTotals struct {
	since, at int64
	// perHour is the rate from at on, 0 while nobody knows it.
	perHour float64
	labels  warehouse
	credits map[warehouse]float64
}

// warehouse has the labels of one.
type warehouse struct{ name, kind, size string }

// countCredits counts the credits from one poll to the next, at the rate and for the size of the former.
func (f *runSeries) countCredits(p engine.WarehousePoint, perHour rollup.CreditRateFunc) {
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
		f.accrueCredits(at)
	}
	if !known {
		each = 0
	}
	of.at, of.perHour, of.labels = at, each, warehouse{p.Name, p.Type, p.Size}
	f.appendCredits(at)
}

// accrueCredits counts the credits since the last poll, and shows them.
func (f *runSeries) accrueCredits(at int64) {
	of := &f.paid
	of.credits[of.labels] += of.perHour * float64(at-of.at) / 3_600_000
	of.at = at
	f.appendCredits(at)
}

// appendCredits appends what a warehouse of these labels has taken.
func (f *runSeries) appendCredits(at int64) {
	of, before := &f.paid, len(f.polls)
	f.gauge(credits, at, of.credits[of.labels], "warehouse", of.labels.name, "warehouse_type", of.labels.kind,
		"warehouse_size", of.labels.size)
	for i := range f.polls[before:] {
		f.polls[before+i].StartMs = of.since
	}
}
