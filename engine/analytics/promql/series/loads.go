package series

import (
	"cmp"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine/results/metric"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// loadSample is what a run worker reported.
type loadSample struct {
	second int32
	warmup bool
	rollup.Load
}

// arrivals are the counters of a run worker's generator.
func (r *reader) arrivals(s *Set, rows *rows) {
	with := r.labels("worker", rows.labels.WorkerID, "node", rows.labels.NodeID, "phase", phase(rows.labels.Warmup))
	for _, m := range metric.ArrivalCounters {
		r.added = r.added[:0]
		for i := range rows.loads {
			r.added = append(r.added, m.Value(&rows.loads[i].Load))
		}
		r.counter(s, m.Name, with, rows, r.added)
	}
}

// workerNode is a run worker on a node, or a node where there is no run worker.
type workerNode struct{ worker, node string }

// gauges are what run workers and nodes were in each second, whatever the phase.
func (r *reader) gauges(s *Set) {
	workers, nodes := map[workerNode][]*loadSample{}, map[workerNode][]*loadSample{}
	for _, rows := range r.order {
		for i := range rows.loads {
			l, at := &rows.loads[i], workerNode{rows.labels.WorkerID, rows.labels.NodeID}
			workers[at] = append(workers[at], l)
			if at.worker = ""; at.node != "" {
				nodes[at] = append(nodes[at], l)
			}
		}
	}
	of := func(all map[workerNode][]*loadSample, values []metric.LoadMetric, both func(a, b float64) float64) {
		for at, loads := range all {
			// Of one second the warm-up comes first.
			slices.SortStableFunc(loads, func(a, b *loadSample) int {
				return cmp.Or(cmp.Compare(a.second, b.second), -compareBools(a.warmup, b.warmup))
			})
			for _, m := range values {
				r.gauge(s, m, r.labels("worker", at.worker, "node", at.node), loads, both)
			}
		}
	}
	of(workers, metric.WorkerGauges, func(_, later float64) float64 { return later })
	// What several run workers say of their node's process is one thing, seen at slightly different times.
	of(nodes, metric.NodeGauges, func(a, b float64) float64 { return max(a, b) })
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// gauge has a sample at the end of each second of which something is known.
func (r *reader) gauge(s *Set, m metric.LoadMetric, with *labels.Builder, loads []*loadSample,
	both func(earlier, later float64) float64) {
	g := points{r.points.times[:0], r.points.values[:0]}
	for _, l := range loads {
		at, v := r.base+(int64(l.second)+1)*1000, m.Value(&l.Load)
		if v == rollup.Unknown {
			continue
		}
		if last, ok := g.last(); ok && last == at {
			n := len(g.values)
			g.values[n-1] = both(g.values[n-1], v)
			continue
		}
		g.add(at, v)
	}
	if len(g.times) > 0 {
		o := seriesData{after: staleAfterSecond, labels: with.Set(model.MetricNameLabel, m.Name).Labels()}
		g.moveTo(&o)
		s.all = append(s.all, o)
	}
	r.points = g
}

func (r *reader) warehouseLabels(rows *rows) *labels.Builder {
	return r.labels("warehouse", rows.labels.Warehouse, "warehouse_type", rows.labels.WarehouseType,
		"warehouse_size", rows.labels.WarehouseSize)
}

// credits count what a run's warehouses take: a poll counts from when it was made until the next one, the first from
// the start of the run, the last to its end. There is a sample at each poll, and at the end.
func (r *reader) credits(s *Set) {
	type polled struct {
		poll
		rows *rows
	}
	var polls []polled
	for _, rows := range r.order {
		for _, p := range rows.polls {
			polls = append(polls, polled{p, rows})
		}
	}
	if !slices.ContainsFunc(polls, func(p polled) bool { return p.perHour != rollup.Unknown }) {
		return
	}
	slices.SortStableFunc(polls, func(a, b polled) int { return cmp.Compare(a.at, b.at) })
	counters := map[*rows]*points{}
	add := func(p polled, at int64, ms int64) {
		c := counters[p.rows]
		if c == nil {
			c = &points{}
			counters[p.rows] = c
		}
		sum := max(p.perHour, 0) * float64(ms) / 3_600_000
		if last, ok := c.last(); ok {
			n := len(c.values)
			if sum += c.values[n-1]; last >= at {
				c.values[n-1] = sum
				return
			}
		}
		c.add(at, sum)
	}
	before := int64(0)
	if r.low <= r.high {
		before = max(polls[0].at-r.base, 0)
	}
	if before > 0 {
		add(polls[0], r.base, 0)
	}
	add(polls[0], polls[0].at, before)
	end := r.base + (int64(r.high)+1)*1000
	for i, p := range polls {
		until := end
		if i+1 < len(polls) {
			until = polls[i+1].at
			add(polls[i+1], p.at, 0)
		}
		if until > p.at {
			add(p, until, until-p.at)
		}
	}
	for rows, c := range counters {
		o := seriesData{after: staleAfterPoll, labels: r.warehouseLabels(rows).
			Set(model.MetricNameLabel, "loadstone_warehouse_credits_total").Labels()}
		c.moveTo(&o)
		s.all = append(s.all, o)
	}
}
