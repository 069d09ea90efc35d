package coordinator

import (
	"context"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// restartDelay is how long ago a worker has to have told the end of what it tells of itself until it is asked again:
// one that ends its process tells that, and is there for a moment.
const restartDelay = 5 * time.Second

// leaveGrace is how long the link of a fragment may go on whose worker is not there any more. One that has left in
// order has sent its last rows and its end, on a connection of their own: the loss of the worker's stream may overtake
// them. The link of one that is lost breaks by itself.
const leaveGrace = 3 * time.Second

// Wake has the reconciler look now: who calls it knows that something has changed.
func (c *Coordinator) Wake() { c.wakeLoop() }

// spread gives the queries of this server that read what nodes tell of themselves a fragment on each that is there, and
// returns the catalog with them.
func (c *Coordinator) spread(ctx context.Context, contents catalog.Contents,
	active func(host string) bool) (catalog.Contents, error) {
	comes := func(host string) bool {
		return !slices.ContainsFunc(contents.Workers, func(w catalog.Worker) bool {
			return sql.SameName(w.Host, host) && w.State == catalog.Draining
		}) || c.o.Cluster != nil && c.o.Cluster.HasLoad(host)
	}
	if !catalog.FromContents(contents).SpreadDue(c.o.Owner, active, comes) {
		return contents, nil
	}
	err := c.o.Store.ChangeCatalog(ctx, catalog.Scope{All: true}, func(to *catalog.Catalog) error {
		to.Spread(c.o.Owner, active, comes)
		return nil
	})
	if err != nil {
		return contents, err
	}
	return c.o.Store.CatalogContents(ctx)
}

// fit ends a deployment whose query has other workers by now, so that it begins anew on those, and says why. Who has
// told that its rows are at an end is not missed.
func (d *deployment) fit(q catalog.Query, c *catalog.Catalog) (why string) {
	if !c.SpreadsToNodes(q) || isClosed(d.done) {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	named := map[string]bool{}
	for _, f := range q.Fragments {
		named[f.Host] = true
		p := d.parts[f.Host]
		switch {
		case p == nil:
			why = "the worker " + f.Host + " is there"
		case p.state == catalog.FragmentTerminated && c.OnlySelfReports(q, f.Host) && time.Since(p.endedAt) > restartDelay:
			p.state = catalog.FragmentStopped
			why = "the worker " + f.Host + " is there again"
		}
	}
	for host, p := range d.parts {
		if named[host] {
			p.missingSince = time.Time{}
		} else if !p.state.Final() && !sql.SameName(host, d.tail) && !d.mayBeEnding(p) {
			p.lost, p.state, p.failure = true, catalog.FragmentFailed, "the worker "+host+" is not there"
			why = p.failure
		}
	}
	if why != "" {
		d.fail()
	}
	return why
}

// mayBeEnding reports whether the last rows and the end of a fragment may be on their way whose worker is not there any
// more. It needs mu.
func (d *deployment) mayBeEnding(p *deployedFragment) bool {
	if p.link == nil || !d.started || p.lost {
		return false
	}
	if p.missingSince.IsZero() {
		p.missingSince = time.Now()
		time.AfterFunc(leaveGrace, d.notify)
	}
	return time.Since(p.missingSince) < leaveGrace
}
