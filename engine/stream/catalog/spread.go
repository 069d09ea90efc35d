package catalog

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// SpreadsToNodes reports whether a query reads what every node tells of itself, and goes on: it has a fragment on each
// node that is there.
func (c *Catalog) SpreadsToNodes(q Query) bool {
	return q.Desired == Running && !q.State.Final() && q.State != Terminating &&
		slices.ContainsFunc(c.physical, func(p PhysicalSource) bool {
			return p.OnEveryWorker() && slices.Contains(q.Sources, p.ID)
		})
}

// Spread gives queries of an owner that spread a fragment on each worker that is there now and may come, as far as it
// has a slot, and takes away those whose workers are not there: these tell of themselves, and read nothing else. Such a
// fragment writes nowhere, and ends with the way to its owner; what a later look finds of it is stopped.
func (c *Catalog) Spread(owner string, active, comes func(host string) bool) {
	for i, q := range c.queries {
		come, stay, due := c.moves(owner, q, active, comes)
		if !due {
			continue
		}
		p, err := c.Plan(q)
		if err != nil {
			continue // what is no query fails when it is started
		}
		sink, _ := c.Sink(q.Sink)
		tail := c.TailOf(sink)
		var hosts []string
		for _, f := range stay {
			hosts = append(hosts, f.Host)
		}
		// An attempt is one of all fragments, and later than each of theirs before: it ends what is left of those.
		attempts := int64(0)
		for _, f := range q.Fragments {
			attempts = max(attempts, f.Attempts)
		}
		reads, _ := c.readers(p, tail, append(hosts, come...), q.Sources)
		for _, host := range come {
			stay = append(stay, Fragment{Host: host, State: FragmentRegistered})
		}
		for k := range stay {
			stay[k].Plan, stay[k].Attempts = reads.on(p, stay[k].Host, tail), attempts
		}
		slices.SortFunc(stay, func(a, b Fragment) int { return strings.Compare(a.Host, b.Host) })
		q.Fragments = stay
		if len(come) > 0 && q.State == Running { // until it is that again
			q.Failure = "it begins anew with " + strings.Join(come, ", ") + ": windows that were open are lost"
		}
		q.Revision++ // what its owner has decided before does not count
		c.queries = slices.Clone(c.queries)
		c.queries[i] = q
	}
}

// SpreadDue reports whether Spread may have something to do.
func (c *Catalog) SpreadDue(owner string, active, comes func(host string) bool) bool {
	return slices.ContainsFunc(c.queries, func(q Query) bool {
		_, _, due := c.moves(owner, q, active, comes)
		return due
	})
}

// moves are the workers that a query that spreads has to have besides, and the fragments that it keeps; due says that
// these are others than it has.
func (c *Catalog) moves(owner string, q Query,
	active, comes func(host string) bool) (come []string, stay []Fragment, due bool) {
	if q.Owner != owner || !c.SpreadsToNodes(q) {
		return nil, nil, false
	}
	for _, w := range c.workers {
		if sql.SameName(w.Host, Server) || !active(w.Host) || !comes(w.Host) || c.Used(w.Host) >= w.Slots ||
			slices.ContainsFunc(q.Fragments, func(f Fragment) bool { return sql.SameName(f.Host, w.Host) }) {
			continue
		}
		come = append(come, w.Host)
	}
	for _, f := range q.Fragments {
		if sql.SameName(f.Host, Server) || active(f.Host) || c.needsHost(q, f.Host) {
			stay = append(stay, f)
		}
	}
	return come, stay, len(come) > 0 || len(stay) < len(q.Fragments)
}

// needsHost reports whether a worker has more of a query than what it tells of itself.
func (c *Catalog) needsHost(q Query, host string) bool {
	if sink, there := c.Sink(q.Sink); !there || sql.SameName(c.TailOf(sink), host) {
		return true
	}
	return slices.ContainsFunc(c.physical, func(p PhysicalSource) bool {
		return slices.Contains(q.Sources, p.ID) && sql.SameName(p.Placement, host)
	})
}

// OnlySelfReports reports whether a worker has nothing of a query but what it tells of itself.
func (c *Catalog) OnlySelfReports(q Query, host string) bool {
	return !sql.SameName(host, Server) && c.SpreadsToNodes(q) && !c.needsHost(q, host)
}
