package enrich

import (
	"math"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// serverTimes are sums over matched executions of the measurement, in ms.
type serverTimes struct {
	n                                           int64
	client, server                              float64
	compilation, overload, provisioning, repair float64
	blocked, execution                          float64
}

func (p *serverTimes) add(row *engine.EnrichedExecution) {
	p.n++
	p.client += row.ClientMs
	p.server += row.ServerMs
	p.compilation += row.CompilationMs
	p.overload += row.QueuedOverloadMs
	p.provisioning += row.QueuedProvisioningMs
	p.repair += row.QueuedRepairMs
	p.blocked += row.BlockedMs
	p.execution += row.ExecutionMs
}

func (p *serverTimes) merge(o *serverTimes) {
	p.n += o.n
	p.client += o.client
	p.server += o.server
	p.compilation += o.compilation
	p.overload += o.overload
	p.provisioning += o.provisioning
	p.repair += o.repair
	p.blocked += o.blocked
	p.execution += o.execution
}

func (p *serverTimes) split() engine.ServerSplitMs {
	n := float64(p.n)
	queued := p.overload + p.provisioning + p.repair
	return engine.ServerSplitMs{Compilation: p.compilation / n, Queued: queued / n, QueuedOverload: p.overload / n,
		QueuedProvisioning: p.provisioning / n,
		QueuedRepair:       p.repair / n, Blocked: p.blocked / n, Execution: p.execution / n,
		Other: (p.server - p.compilation - queued - p.blocked - p.execution) / n, Overhead: (p.client - p.server) / n}
}

// figures are the figures of the matched executions of the measurement, of one
// kind or (all) of every kind; nil when there are none.
func (x *index) figures(sums *[engine.NumKinds]serverTimes, kind engine.Kind, all bool) *engine.ServerFigures {
	var p serverTimes
	for k := range sums {
		if all || engine.Kind(k) == kind {
			p.merge(&sums[k])
		}
	}
	if p.n == 0 {
		return nil
	}
	client, server := make([]float64, 0, p.n), make([]float64, 0, p.n)
	for i := range x.entries {
		e := &x.entries[i]
		if e.matched && !e.warmup && (all || e.kind == kind) {
			client, server = append(client, e.service), append(server, float64(e.server))
		}
	}
	return &engine.ServerFigures{
		Matched:  p.n,
		ClientMs: percentiles(client),
		ServerMs: percentiles(server),
		Split:    p.split(),
	}
}

// percentiles sorts the values, of which there is one at least, and returns their figures (PERCENTILE_CONT).
func percentiles(v []float64) engine.LatencyMs {
	slices.Sort(v)
	n := len(v)
	at := func(q float64) float64 {
		row := q * float64(n-1)
		i := int(row)
		if i+1 >= n {
			return v[n-1]
		}
		return v[i] + (v[i+1]-v[i])*(row-float64(i))
	}
	var sum, square float64
	for _, x := range v {
		sum += x
	}
	mean := sum / float64(n)
	for _, x := range v {
		square += (x - mean) * (x - mean)
	}
	l := engine.LatencyMs{P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), P999: at(0.999), Avg: mean, Min: v[0],
		Max: v[n-1]}
	if n > 1 {
		l.StdDev = math.Sqrt(square / float64(n-1))
	}
	return l
}
