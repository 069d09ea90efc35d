package coordinator

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/catalog"
	"github.com/loadstone-db/loadstone/engine/catalog/life"
	"github.com/loadstone-db/loadstone/engine/statement"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	// lookEvery is how often the catalog is looked at though nothing was heard.
	lookEvery = 5 * time.Second
	// apart is how far looks are apart at least: many changes at once are one.
	apart = 50 * time.Millisecond
	// soon is how long a query waits that is on its way to another state.
	soon = 500 * time.Millisecond
	// lookWithin bounds one look.
	lookWithin = 30 * time.Second
	// atOnce is how many queries are moved at a time.
	atOnce = 4
)

// poke has the reconciler look.
func (c *Coordinator) poke() {
	select {
	case c.wake <- struct{}{}:
	default: // it is going to look
	}
}

// listen hears of changes that other servers have made.
func (c *Coordinator) listen(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.o.Keeper.HearCatalog(ctx, func() { c.poke(); c.watching.told() })
		if ctx.Err() == nil {
			c.o.Log.Warn().Err(err).Msg("the catalog of streams cannot be listened to; it is looked at every few seconds")
		}
		select {
		case <-time.After(lookEvery):
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
		looking, cancel := context.WithTimeout(ctx, lookWithin)
		unsettled, err := c.look(looking)
		cancel()
		if next = lookEvery; unsettled {
			next = soon
		}
		if err != nil && ctx.Err() == nil {
			if !failing {
				c.o.Log.Warn().Err(err).Msg("continuous queries cannot be looked after while their catalog is away")
			}
		}
		failing = err != nil
		select {
		case <-time.After(apart):
		case <-ctx.Done():
		}
	}
}

// abandon ends all that runs here, and waits for it.
func (c *Coordinator) abandon() {
	c.mu.Lock()
	parts := c.parts
	c.parts = map[int64]*part{}
	c.term++
	c.mu.Unlock()
	for _, p := range parts {
		p.cancel()
	}
	for _, p := range parts {
		<-p.done
	}
}

// look compares once, and reports whether a query is on its way to another state.
func (c *Coordinator) look(ctx context.Context) (unsettled bool, err error) {
	if c.o.Workers != nil {
		if err := c.o.Keeper.SetWorkers(ctx, c.o.Workers()); err != nil {
			return true, err
		}
	}
	term, holds := c.holding()
	contents, err := c.o.Keeper.CatalogContents(ctx)
	if err != nil {
		return true, err
	}
	if !holds || slices.ContainsFunc(contents.Queries, func(q catalog.Query) bool { return q.Owner == "" }) {
		n, err := c.claim(ctx)
		if err != nil {
			return true, err
		}
		if n > 0 || !holds {
			term, _ = c.holding()
			if contents, err = c.o.Keeper.CatalogContents(ctx); err != nil {
				return true, err
			}
		}
	}
	active := func(host string) bool {
		return slices.ContainsFunc(contents.Workers, func(w catalog.Worker) bool {
			return statement.Same(w.Host, host) && w.State == catalog.Active
		})
	}
	c.forget(contents)
	turns := make(chan catalog.Query)
	var mu sync.Mutex
	var working sync.WaitGroup
	for range atOnce {
		working.Go(func() {
			for q := range turns {
				open, failed := c.move(ctx, q, contents, term, active)
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

// forget ends what runs here though it is not this server's: zombies.
func (c *Coordinator) forget(contents catalog.Contents) {
	epochs := map[int64]int64{}
	for _, q := range contents.Queries {
		if q.Owner == c.o.Owner {
			epochs[q.ID] = q.Epoch
		}
	}
	c.mu.Lock()
	var gone []*part
	for id, p := range c.parts {
		if epoch, mine := epochs[id]; !mine || epoch != p.epoch {
			gone = append(gone, p)
			delete(c.parts, id)
		}
	}
	c.mu.Unlock()
	for _, p := range gone {
		p.cancel()
	}
	for _, p := range gone {
		<-p.done
	}
}

// observe returns a query with its fragments as they are known to be. What does not run here, in the epoch of its
// owner, runs nowhere.
func observe(q catalog.Query, p *part) catalog.Query {
	q.Fragments = slices.Clone(q.Fragments)
	for i := range q.Fragments {
		f := &q.Fragments[i]
		switch {
		case f.State.Final() && p == nil || f.State == catalog.FragmentRegistered:
		case p != nil:
			*f = p.observe(*f)
		case q.Desired == catalog.Running && q.State != catalog.Terminating:
			f.State = catalog.FragmentRegistered
		default:
			f.State = catalog.FragmentStopped
		}
	}
	return q
}

// move brings one query nearer to what is desired of it.
func (c *Coordinator) move(ctx context.Context, kept catalog.Query, contents catalog.Contents, term int64,
	active func(string) bool) (unsettled bool, err error) {
	c.mu.Lock()
	here := c.parts[kept.ID]
	c.mu.Unlock()
	q := observe(kept, here)
	var do []life.Action
	now := time.Now().UTC().Truncate(time.Microsecond)
	for {
		next, actions := life.Decide(q, active, now)
		same := reflect.DeepEqual(next, q)
		if q = next; same || len(actions) > 0 || q.State == catalog.Stopped {
			do = actions
			break
		}
	}
	if !reflect.DeepEqual(q, kept) {
		if err := c.o.Keeper.AdvanceQuery(ctx, q); err != nil {
			if errors.Is(err, store.ErrFenced) {
				c.poke() // it is another server's, or something else by now: the next look says
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
		c.tell(a, q, contents, term)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.State.Final() {
		delete(c.parts, q.ID) // it has ended, and that is kept
	} else if p := c.parts[q.ID]; p != nil && p == here && failedHere(p, q) {
		delete(c.parts, q.ID)
	}
	return !q.State.Final() && q.State != catalog.Running, nil
}

// failedHere reports whether a fragment has ended here, and its query is going to start it again.
func failedHere(p *part, q catalog.Query) bool {
	return isClosed(p.done) && q.Desired == catalog.Running && q.State == catalog.Deploying
}

// tell carries an action out. Nothing is started that another server may have started since the catalog was read.
func (c *Coordinator) tell(a life.Action, q catalog.Query, contents catalog.Contents, term int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parts[q.ID]
	switch {
	case a.Do == life.Start && (c.term != term || !c.holds()):
	case a.Do == life.Start && (p == nil || isClosed(p.done)):
		c.parts[q.ID] = begin(c.o.Feeds, q, contents, c.poke)
	case p == nil:
	case a.Do == life.Stop:
		p.cancel()
	case a.Do == life.Drain:
		p.drain()
	}
}
