// This part keeps the catalog of streams in memory, for tests.

package catalogtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Store implements catalog.Store. The zero value is empty; it is safe for concurrent use.
type Store struct {
	// Connections are those to which sinks may write; without them nobody asks whether they are still there.
	Connections Connections

	mu       sync.Mutex
	all      catalog.Contents
	leases   map[string]time.Time
	watchers []chan struct{}
	writes   int
	fail     func(call string) error
}

// Connections finds a connection by its id; any error means that it is not there. It does not wait for the store.
type Connections interface {
	Connection(ctx context.Context, id string) (store.Connection, error)
}

// Writes counts what has changed something.
func (k *Store) Writes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writes
}

// Fail has f called before each call that writes; its error is the call's. nil ends that.
func (k *Store) Fail(f func(call string) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = f
}

func copied(c catalog.Contents) catalog.Contents {
	c.Workers, c.Logical, c.Physical, c.Sinks = slices.Clone(c.Workers), slices.Clone(c.Logical), slices.Clone(c.Physical),
		slices.Clone(c.Sinks)
	c.Queries = slices.Clone(c.Queries)
	for i := range c.Queries {
		c.Queries[i].Fragments = slices.Clone(c.Queries[i].Fragments)
	}
	return c
}

// CatalogContents implements catalog.Store.
func (k *Store) CatalogContents(context.Context) (catalog.Contents, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return copied(k.all), nil
}

// notify tells who listens; the lock is held.
func (k *Store) notify() {
	k.writes++
	for _, h := range k.watchers {
		select {
		case h <- struct{}{}:
		default:
		}
	}
}

// injectFault is called with the lock held.
func (k *Store) injectFault(call string) error {
	if k.fail == nil {
		return nil
	}
	return k.fail(call)
}

// ChangeCatalog implements catalog.Store.
func (k *Store) ChangeCatalog(ctx context.Context, _ catalog.Scope, change func(*catalog.Catalog) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.injectFault("ChangeCatalog"); err != nil {
		return err
	}
	c := catalog.FromContents(copied(k.all))
	if err := change(c); err != nil {
		return err
	}
	is := copied(c.Contents())
	if err := k.connected(ctx, is.Sinks); err != nil {
		return err
	}
	k.all = is
	k.notify()
	return nil
}

// connected refuses new sinks whose connection was deleted after it was judged; the lock is held.
func (k *Store) connected(ctx context.Context, sinks []catalog.Sink) error {
	if k.Connections == nil {
		return nil
	}
	for _, s := range sinks {
		id := s.Config.String(catalog.ConnectionID)
		if id == "" || slices.ContainsFunc(k.all.Sinks, func(was catalog.Sink) bool { return was.Name == s.Name }) {
			continue
		}
		if _, err := k.Connections.Connection(ctx, id); err != nil {
			return catalog.ConnectionDeleted(s)
		}
	}
	return nil
}

// LockSinks calls do with the sinks that write to a connection, by name. Nothing changes until it returns.
func (k *Store) LockSinks(connectionID string, do func(sinks []string) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for _, s := range k.all.Sinks {
		if s.Config.String(catalog.ConnectionID) == connectionID {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return do(names)
}

// ClaimQueries implements catalog.Store.
func (k *Store) ClaimQueries(_ context.Context, owner string, lease time.Duration) (n int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.injectFault("ClaimQueries"); err != nil {
		return 0, err
	}
	if k.leases == nil {
		k.leases = map[string]time.Time{}
	}
	now := time.Now()
	k.leases[owner] = now.Add(lease)
	for i := range k.all.Queries {
		q := &k.all.Queries[i]
		if q.Owner == "" || q.Owner != owner && now.After(k.leases[q.Owner]) {
			q.Owner = owner
			q.Epoch++
			n++
		}
	}
	if n > 0 {
		k.notify()
	}
	return n, nil
}

// AdvanceQuery implements catalog.Store.
func (k *Store) AdvanceQuery(_ context.Context, q catalog.Query) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.injectFault("AdvanceQuery"); err != nil {
		return err
	}
	i := slices.IndexFunc(k.all.Queries, func(there catalog.Query) bool { return there.ID == q.ID })
	if i < 0 || k.all.Queries[i].Owner != q.Owner || k.all.Queries[i].Epoch != q.Epoch ||
		k.all.Queries[i].Revision != q.Revision {
		return fmt.Errorf("query %d in the epoch %d, revision %d: %w", q.ID, q.Epoch, q.Revision, store.ErrFenced)
	}
	defer k.notify()
	if q.State == catalog.Stopped {
		k.all.Queries = slices.Delete(k.all.Queries, i, i+1)
		return nil
	}
	there := &k.all.Queries[i]
	there.Revision++
	there.State, there.Since, there.Failure, there.Fragments = q.State, q.Since, q.Failure, slices.Clone(q.Fragments)
	return nil
}

// SetWorkers implements catalog.Store.
func (k *Store) SetWorkers(_ context.Context, workers []catalog.Worker) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := false
	for _, w := range workers {
		i := slices.IndexFunc(k.all.Workers, func(there catalog.Worker) bool { return sql.SameName(there.Host, w.Host) })
		if i < 0 {
			k.all.Workers, changed = append(k.all.Workers, w), true
		} else if k.all.Workers[i].State != w.State {
			k.all.Workers[i].State, changed = w.State, true
		}
	}
	if changed {
		k.notify()
	}
	return nil
}

// WatchCatalog implements catalog.Store.
func (k *Store) WatchCatalog(ctx context.Context, heard func()) error {
	h := make(chan struct{}, 1)
	k.mu.Lock()
	k.watchers = append(k.watchers, h)
	k.mu.Unlock()
	for {
		heard()
		select {
		case <-h:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
