package coordinator

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

const (
	// pollInterval is how often the catalog is looked at though nothing was heard.
	pollInterval = 5 * time.Second
	// minPassInterval is how far looks are apart at least: many changes at once are one.
	minPassInterval = 50 * time.Millisecond
	// unsettledDelay is how long a query waits that is on its way to another state.
	unsettledDelay = 500 * time.Millisecond
	// passTimeout bounds one look.
	passTimeout = 30 * time.Second
	// maxConcurrent is how many queries are moved at a time.
	maxConcurrent = 4
)

// wakeLoop has the reconciler look.
func (c *Coordinator) wakeLoop() {
	select {
	case c.wake <- struct{}{}:
	default: // it is going to look
	}
}

// listen hears of changes that other servers have made.
func (c *Coordinator) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.o.Store.WatchCatalog(ctx, func() { c.wakeLoop(); c.watches.notify() })
		if ctx.Err() == nil {
			c.o.Log.Warn().Err(
				err,
			).Msg(
				"notifications of the catalog of streams failed; the catalog is polled every few seconds",
			)
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
}

// loop looks whenever something has changed, and every few seconds besides.
func (c *Coordinator) loop(ctx context.Context) {
	failing := false
	for next := time.Duration(0); ; {
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.wake:
			timer.Stop()
		case <-timer.C:
		}
		looking, cancel := context.WithTimeout(ctx, passTimeout)
		unsettled, err := c.runPass(looking)
		cancel()
		if next = pollInterval; unsettled {
			next = unsettledDelay
		}
		if err != nil && ctx.Err() == nil {
			if !failing {
				c.o.Log.Warn().Err(err).Msg("continuous queries are not supervised while their catalog is unavailable")
			}
		}
		failing = err != nil
		select {
		case <-time.After(minPassInterval):
		case <-ctx.Done():
		}
	}
}

// abandon ends all that runs here, and waits for it.
func (c *Coordinator) abandon() {
	c.mu.Lock()
	running := c.running
	c.running, c.failed = map[int64]*deployment{}, map[int64]*deployment{}
	c.term++
	c.mu.Unlock()
	for _, d := range running {
		d.fail()
	}
	for _, d := range running {
		<-d.done
	}
}

// runPass compares once, and reports whether a query is on its way to another state.
func (c *Coordinator) runPass(ctx context.Context) (unsettled bool, err error) {
	if err := c.awaitStopped(ctx); err != nil {
		return true, err
	}
	term, holds := c.leaseTerm()
	contents, err := c.o.Store.CatalogContents(ctx)
	if err != nil {
		return true, err
	}
	if changed := c.sent.Due(c.workers(contents), time.Now()); len(changed) > 0 {
		if err := c.o.Store.SetWorkers(ctx, changed); err != nil {
			return true, err
		}
		c.sent.MarkSent(changed, time.Now())
		if contents, err = c.o.Store.CatalogContents(ctx); err != nil {
			return true, err
		}
	}
	if !holds || slices.ContainsFunc(contents.Queries, func(q catalog.Query) bool { return q.Owner == "" }) {
		n, err := c.claim(ctx)
		if err != nil {
			return true, err
		}
		if n > 0 || !holds {
			term, _ = c.leaseTerm()
			if contents, err = c.o.Store.CatalogContents(ctx); err != nil {
				return true, err
			}
		}
	}
	workers := Workers{Active: c.reaches(contents), AwaySince: c.awaySince, ReleaseAfter: c.o.ReleaseAfter}
	if c.o.Cluster != nil {
		workers.Removed = c.o.Cluster.Removed
	}
	if contents, err = c.spread(ctx, contents, workers.Active); err != nil {
		return true, err
	}
	c.forget(contents)
	c.lookAway(contents, workers.Active)
	turns := make(chan catalog.Query)
	var mu sync.Mutex
	var working sync.WaitGroup
	for range maxConcurrent {
		working.Go(func() {
			for q := range turns {
				open, failed := c.reconcile(ctx, q, contents, term, workers)
				mu.Lock()
				unsettled = unsettled || open
				err = errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	for _, q := range contents.Queries {
		if q.Owner == c.o.Owner {
			turns <- q
		}
	}
	close(turns)
	working.Wait()
	return unsettled, err
}

// workers are those of the cluster that the catalog has in another state, or not at all. Of those that this server does
// not know another one may tell. What was the server's own node once is a worker no more.
func (c *Coordinator) workers(contents catalog.Contents) (changed []catalog.Worker) {
	if c.o.Cluster == nil {
		return nil
	}
	there := c.o.Cluster.Workers()
	c.sent.Reconcile(there)
	named := func(list []catalog.Worker, host string) int {
		return slices.IndexFunc(list, func(w catalog.Worker) bool { return sql.SameName(w.Host, host) })
	}
	for _, w := range there {
		i := named(contents.Workers, w.Host)
		if i < 0 && c.o.Cluster.Removed(w.Host) {
			continue // it may have been dropped
		}
		if i < 0 || contents.Workers[i].State != w.State {
			changed = append(changed, w)
		}
	}
	for _, w := range contents.Workers {
		if w.State.Reachable() && w.Host == protocol.OwnNode && named(there, w.Host) < 0 {
			w.State = catalog.Unreachable
			changed = append(changed, w)
		}
	}
	return changed
}

// reaches says which workers are there for this server: its fragments go over its own streams, whatever another server
// sees.
func (c *Coordinator) reaches(contents catalog.Contents) func(host string) bool {
	there := contents.Workers
	if c.o.Cluster != nil {
		there = append(c.o.Cluster.Workers(), catalog.Worker{Host: Server, State: catalog.Active})
	}
	return func(host string) bool {
		return slices.ContainsFunc(there, func(w catalog.Worker) bool {
			return sql.SameName(w.Host, host) && w.State.Reachable()
		})
	}
}

// lookAway notes since when workers of queries, and of what ran of them before, are not there.
func (c *Coordinator) lookAway(contents catalog.Contents, active func(host string) bool) {
	now := c.o.Now().UTC()
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.away
	c.away = map[string]time.Time{}
	look := func(host string) {
		if host = strings.ToLower(host); active(host) {
			return
		}
		since, known := was[host]
		if !known {
			since = now
		}
		c.away[host] = since
	}
	for _, q := range contents.Queries {
		for _, f := range q.Fragments {
			look(f.Host)
		}
	}
	for _, of := range []map[int64]*deployment{c.running, c.failed} {
		for _, d := range of {
			for _, host := range d.hosts() {
				look(host)
			}
		}
	}
}

// awaySince is since when a worker is not there, as far as this server has seen it.
func (c *Coordinator) awaySince(host string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since, known := c.away[strings.ToLower(host)]; known {
		return since
	}
	return c.o.Now().UTC()
}

// sweeping sweeps every few seconds, beside what is looked at: a worker that does not answer holds nothing up.
func (c *Coordinator) sweeping(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if contents, err := c.o.Store.CatalogContents(ctx); err == nil {
			c.sweep(ctx, contents)
		}
	}
}

// sweep ends fragments on the workers of other processes that the catalog does not know: zombies. Any server may do it;
// what is of a later epoch than the catalog had when it was read is left alone.
func (c *Coordinator) sweep(ctx context.Context, contents catalog.Contents) {
	known := map[int64]catalog.Query{}
	for _, q := range contents.Queries {
		known[q.ID] = q
	}
	var asking sync.WaitGroup
	for _, w := range contents.Workers {
		if !w.State.Reachable() || sql.SameName(w.Host, Server) {
			continue
		}
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, stopTimeout)
			defer cancel()
			held, err := c.o.Runner.Status(ctx, w.Host)
			if err != nil {
				return // it is asked again
			}
			for _, k := range held {
				of, there := known[k.QueryID]
				has := slices.ContainsFunc(of.Fragments, func(f catalog.Fragment) bool { return sql.SameName(f.Host, w.Host) })
				if there && k.Epoch >= of.Epoch && !of.State.Final() && (has || k.Epoch > of.Epoch) ||
					!there && k.QueryID > contents.LastQueryID {
					continue
				}
				err := c.o.Runner.Stop(ctx, w.Host, k)
				c.o.Log.Warn().Err(err).Str("worker", w.Host).Int64("query_id", k.QueryID).Int64("epoch", k.Epoch).
					Msg("a worker ran a fragment that the catalog does not know; the fragment was stopped")
			}
		})
	}
	asking.Wait()
}

// forget ends what runs here though it is not this server's: zombies.
func (c *Coordinator) forget(contents catalog.Contents) {
	epochs := map[int64]int64{}
	for _, q := range contents.Queries {
		if q.Owner == c.o.Owner {
			epochs[q.ID] = q.Epoch
		}
	}
	c.mu.Lock()
	for id := range c.stays {
		if _, mine := epochs[id]; !mine {
			delete(c.stays, id)
		}
	}
	for id, d := range c.failed {
		if epoch, mine := epochs[id]; !mine || epoch != d.key.Epoch {
			delete(c.failed, id)
		}
	}
	for id := range c.ended {
		if !slices.ContainsFunc(contents.Queries, func(q catalog.Query) bool { return q.ID == id }) {
			delete(c.ended, id)
		}
	}
	var gone []*deployment
	for id, d := range c.running {
		if epoch, mine := epochs[id]; !mine || epoch != d.key.Epoch {
			gone = append(gone, d)
			delete(c.running, id)
		}
	}
	c.mu.Unlock()
	for _, d := range gone {
		d.fail()
	}
	for _, d := range gone {
		<-d.done
	}
}

// observe returns a query with its fragments as they are known to be. What does not run in this process, in the epoch
// of its owner, does not run in another server's; where it is on a node, a start ends it first.
func observe(q catalog.Query, d *deployment) catalog.Query {
	q.Fragments = slices.Clone(q.Fragments)
	for i := range q.Fragments {
		f := &q.Fragments[i]
		switch {
		case f.State.Final() && d == nil || f.State == catalog.FragmentRegistered:
		case d != nil:
			*f = d.observe(*f)
		default: // it is wanted: see adopt
			f.State = catalog.FragmentRegistered
		}
	}
	return q
}

// adopt returns the deployment of a query. One that is to end, and whose fragments may be on nodes since this server or
// another one has given them to these, gets one that ends them.
func (c *Coordinator) adopt(q catalog.Query) *deployment {
	c.mu.Lock()
	defer c.mu.Unlock()
	ends := q.Desired != catalog.Running || q.State == catalog.Terminating
	if d := c.running[q.ID]; d != nil || !ends || q.State.Final() {
		return d
	}
	c.running[q.ID] = adoptedDeployment(c.o, q, c.wakeLoop)
	return c.running[q.ID]
}

// reconcile brings one query nearer to what is desired of it.
func (c *Coordinator) reconcile(ctx context.Context, kept catalog.Query, contents catalog.Contents, term int64,
	workers Workers) (unsettled bool, err error) {
	now := c.o.Now().UTC().Truncate(time.Microsecond)
	if before := c.replacedAttempt(kept); before != nil {
		why := c.endReplaced(before, kept, workers, now) //nolint:contextcheck // what it asks outlasts the look
		if why != "" {
			return true, c.noteWait(ctx, kept, why, now) // its end wakes the reconciler
		}
	}
	here, active := c.adopt(kept), workers.Active
	if here != nil {
		for _, f := range kept.Fragments {
			if !sql.SameName(f.Host, Server) && !active(f.Host) {
				here.markLost(f.Host, "is UNREACHABLE")
			}
		}
		if why := here.fit(kept, catalog.FromContents(contents)); why != "" {
			c.o.Log.Info().Str("query", kept.Name).Int64("query_id", kept.ID).Msg("a continuous query restarts: " + why)
		}
	}
	q := observe(kept, here)
	var do []Action
	since := c.stay(kept, now)
	q.Since = since
	for {
		next, actions := Decide(q, workers, now)
		same := reflect.DeepEqual(next, q)
		if q = next; same || len(actions) > 0 || q.State == catalog.Stopped || q.State == catalog.Suspended {
			do = actions
			break
		}
	}
	if q.Since.Equal(since) {
		q.Since = kept.Since
	}
	if !reflect.DeepEqual(q, kept) {
		if err := c.o.Store.AdvanceQuery(ctx, q); err != nil {
			if errors.Is(err, store.ErrFenced) {
				c.wakeLoop() // it is another server's, or something else by now: the next look says
				return true, nil
			}
			return true, err
		}
		if q.State != kept.State {
			c.o.Log.Info().Str("query", q.Name).Int64("query_id", q.ID).Str("state", string(q.State)).Str("failure", q.Failure).
				Msg("a continuous query has another state")
		}
	}
	for _, a := range do {
		c.perform(a, q, contents, term)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.State.Final() {
		c.keepCounts(q.ID)
		delete(c.running, q.ID) // it has ended, and that is kept
		delete(c.failed, q.ID)
	} else if d := c.running[q.ID]; d != nil && d == here && failedHere(d, q) {
		c.keepCounts(q.ID)
		delete(c.running, q.ID)
		c.failed[q.ID] = d
	}
	return !q.State.Final() && q.State != catalog.Running, nil
}

// replacedAttempt is what ran of a query that another one has taken the place of, until it is known to have ended; nil
// where nothing did.
func (c *Coordinator) replacedAttempt(q catalog.Query) *deployment {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range []*deployment{c.running[q.ID], c.failed[q.ID]} {
		if d != nil && !d.created.Equal(q.CreatedAt) {
			return d
		}
	}
	return nil
}

// endReplaced ends what runs of a query that another one has taken the place of, and says what has not ended, nothing
// once all of it is known to be gone. Rows on their way reach the sink where the one before was dropped so, unless that
// takes too long.
func (c *Coordinator) endReplaced(d *deployment, q catalog.Query, workers Workers, now time.Time) (why string) {
	since := c.stay(q, now)
	drains := q.Graceful && now.Sub(since) <= maxReplacedDrain
	for _, host := range d.hosts() {
		if !sql.SameName(host, Server) && !workers.Active(host) {
			d.markLost(host, "is UNREACHABLE")
			drains = false
		}
	}
	if drains {
		d.drain()
	} else {
		d.fail()
	}
	if !isClosed(d.done) {
		if why = "what ran of it before has not ended"; drains {
			why += ": its last rows are on their way to the sink"
		}
		return why
	}
	ask, all := leftovers(d.fragments(), workers, since, now)
	for _, host := range ask {
		d.confirm(host)
	}
	if len(all) > 0 {
		return "what ran of it before is not known to have ended on " + strings.Join(all, ", ")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range []map[int64]*deployment{c.running, c.failed} {
		if of[q.ID] == d {
			delete(of, q.ID)
		}
	}
	return ""
}

// noteWait keeps why a query that is wanted has not begun, where that takes a while.
func (c *Coordinator) noteWait(ctx context.Context, q catalog.Query, why string, now time.Time) error {
	if q.Desired != catalog.Running || q.Failure == why || now.Sub(c.stay(q, now)) < tellReplacedAfter {
		return nil
	}
	q.Failure = why
	err := c.o.Store.AdvanceQuery(ctx, q)
	if errors.Is(err, store.ErrFenced) {
		c.wakeLoop()
		return nil
	}
	return err
}

// stay is how long a query is in its state, as its owner has seen it.
type stay struct {
	state catalog.State
	epoch int64
	kept  time.Time
	since time.Time
}

// stay returns since when a query is in its state, by the clock of this server: who wrote that down may have had
// another one. Of one that is taken over it counts from then.
func (c *Coordinator) stay(q catalog.Query, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, there := c.stays[q.ID]
	if !there || s.state != q.State || s.epoch != q.Epoch || !s.kept.Equal(q.Since) {
		s = stay{q.State, q.Epoch, q.Since, now}
		c.stays[q.ID] = s
	}
	return s.since
}

// failedHere reports whether an attempt has ended here, and its query is going to be started again.
func failedHere(d *deployment, q catalog.Query) bool {
	return isClosed(d.done) && q.Desired == catalog.Running && q.State == catalog.Deploying
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// perform carries an action out. Nothing is started that another server may have started since the catalog was read.
func (c *Coordinator) perform(a Action, q catalog.Query, contents catalog.Contents, term int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.running[q.ID]
	switch {
	case a.Do == Start && (c.term != term || !c.leaseValid()):
	case a.Do == Start && (d == nil || isClosed(d.done)):
		delete(c.failed, q.ID)
		// All fragments begin together: what is told to one of them is told to all.
		c.running[q.ID] = deploy(c.o, q, contents, c.wakeLoop)
	case a.Do == Start || d == nil:
	case isClosed(d.done):
		d.confirm(a.Host)
	case a.Do == Stop:
		d.fail()
	case a.Do == Drain:
		d.drain()
	}
}
