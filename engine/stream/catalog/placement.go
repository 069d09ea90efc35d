package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Origin is a physical source with the worker that reads it.
type Origin struct {
	Source PhysicalSource
	Host   string
}

// TailOf is the worker of a sink: it merges what the heads of a query come to, and writes.
func (c *Catalog) TailOf(s Sink) string { return cmp.Or(s.Placement, Server) }

// OnEveryWorker reports whether every worker of a query reads the source, each what it tells of itself.
func (p PhysicalSource) OnEveryWorker() bool {
	return p.Placement == "" && p.Type == connector.System && connector.PerNode(p.Config.String("SOURCE.STREAM"))
}

// Origins are the physical sources of a logical one, with where they are read. hosts are the workers of the query: what
// every node tells of itself is read on each of them.
func (c *Catalog) Origins(logical string, hosts []string) []Origin {
	var list []Origin
	for _, p := range c.Physical(logical) {
		if p.OnEveryWorker() {
			for _, h := range hosts {
				list = append(list, Origin{p, h})
			}
			continue
		}
		list = append(list, Origin{p, cmp.Or(p.Placement, Server)})
	}
	return list
}

// reportingWorkers are the workers that tell of themselves: the server, and the nodes that are there. One that drains
// comes into a query by Spread, if it bears load.
func (c *Catalog) reportingWorkers() []string {
	hosts := []string{Server}
	for _, w := range c.workers {
		if w.State == Active && !sql.SameName(w.Host, Server) {
			hosts = append(hosts, w.Host)
		}
	}
	return hosts
}

// readOn are the ids of the physical sources of a plan that a worker reads, each once.
func (c *Catalog) readOn(p *plan.Plan, host string) (ids []int64) {
	for _, s := range p.Scans {
		for _, o := range c.Origins(s.Source, c.reportingWorkers()) {
			if sql.SameName(o.Host, host) && !slices.Contains(ids, o.Source.ID) {
				ids = append(ids, o.Source.ID)
			}
		}
	}
	return ids
}

// placeFragments returns the fragments of a query: the tail on the worker of its sink, and heads where sources are.
func (c *Catalog) placeFragments(source string, at int, into string, p *plan.Plan) ([]Fragment, error) {
	if c.host == "" {
		return nil, nil
	}
	sink, _ := c.Sink(into)
	tail := c.TailOf(sink)
	if local := []string{
		connector.File,
		connector.Print,
	}; !sql.SameName(tail, Server) &&
		!slices.Contains(local, sink.Type) {
		return nil, sql.Errorf(sql.PlacementError, source, at, "leave ON "+tail+" out",
			"the sink %s is of the type %s, which only the worker %s has, and is placed on %s", sink.Name, sink.Type,
			Server, tail)
	}
	reads, hosts := c.readers(p, tail, c.reportingWorkers(), nil)
	var list []Fragment
	for _, h := range hosts {
		w := c.workers[c.worker(h)]
		if w.State == Draining {
			return nil, sql.Errorf(sql.PlacementError, source, at, "loadstone node resume "+w.Host+
				" takes that back; or read and write on another worker", "the worker %s is DRAINING, and takes nothing new", w.Host)
		}
		if w.State != Active {
			return nil, sql.Errorf(sql.PlacementError, source, at, "SHOW WORKERS says which are there; its node "+
				"may be down, or is not known to the server: loadstone node list", "the worker %s is %s", w.Host, w.State)
		}
		if used := c.Used(h); used >= w.Slots {
			return nil, sql.Errorf(sql.InsufficientCapacity, source, at, fmt.Sprintf("DROP a query that is not needed any "+
				"more, or give it more: CREATE OR REPLACE WORKER `%s` SET(%d AS NUM_SLOTS)", w.Host, 2*w.Slots),
				"all %d slots of the worker %s are taken", w.Slots, w.Host)
		}
		f := Fragment{Host: w.Host, State: FragmentRegistered}
		f.Plan = reads.on(p, h, tail)
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b Fragment) int { return strings.Compare(a.Host, b.Host) })
	return list, nil
}

// readers are the hosts, in small letters, that read sources of each scan of a plan.
type readers map[int]map[string]bool

// readers returns who reads, and all workers of a query, that of its tail first. everywhere are those that read what
// each tells of itself; of the others it is the sources with some ids, nil for all.
func (c *Catalog) readers(p *plan.Plan, tail string, everywhere []string, ids []int64) (readers, []string) {
	hosts := []string{tail}
	reads := readers{}
	for _, s := range p.Scans {
		reads[s.Index] = map[string]bool{}
		for _, o := range c.Origins(s.Source, everywhere) {
			if ids != nil && !slices.Contains(ids, o.Source.ID) {
				continue
			}
			reads[s.Index][strings.ToLower(o.Host)] = true
			if !slices.ContainsFunc(hosts, func(h string) bool { return sql.SameName(h, o.Host) }) {
				hosts = append(hosts, o.Host)
			}
		}
	}
	return reads, hosts
}

// on is what a worker does, a line for each step.
func (r readers) on(p *plan.Plan, host, tail string) (steps string) {
	host = strings.ToLower(host)
	if sql.SameName(host, tail) {
		return p.Tail(func(scan int) bool { return len(r[scan]) > 1 || !r[scan][host] },
			func(scan int) bool { return r[scan][host] })
	}
	for _, head := range p.Heads() {
		if r[head.Scan.Index][host] {
			steps += head.Text()
		}
	}
	return steps
}
