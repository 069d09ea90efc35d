package simtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
)

// catalogStore is the catalog as one server reaches it. Each commit is held against the properties.
type catalogStore struct {
	*catalogtest.Store
	l *carrier
}

var _ catalog.Store = catalogStore{}

// commit is a write that has been carried out; late says that it may still be given up.
type kept[T any] struct {
	v   T
	err error
}

// reach lets a call to the store happen when the loop says so.
func reach[T any](k catalogStore, ctx context.Context, name string, writes bool, do func() (T, error)) (T, error) {
	l, s := k.l, k.l.of
	away := fmt.Errorf("%s: %w", name, store.ErrUnavailable)
	var none T
	if l.dead.Load() {
		return none, away
	}
	reply := make(chan kept[T], 2)
	happens := func() {
		switch {
		case ctx.Err() != nil: // rolled back
		case l.dead.Load(), s.storeAway, l.cut:
			s.w.note("%s %s: away", l.name, name)
			if s.without == lacksAnswers && writes && !l.dead.Load() {
				away = nil
			}
			reply <- kept[T]{err: away}
		case writes && s.w.oneIn(s.lateCommits):
			late := s.w.between(time.Millisecond, []time.Duration{300 * time.Millisecond, 4 * time.Second,
				20 * time.Second}[s.w.chance.IntN(3)])
			s.w.note("%s %s: is committed in %v", l.name, name, late)
			if s.w.oneIn(2) {
				s.w.after(s.w.between(0, late), func() { l.hears(func() { reply <- kept[T]{err: away} }) })
			}
			s.locked = true // until then nobody else writes, and what is read is as it was
			s.w.after(late, func() {
				_, err := do()
				s.w.note("%s %s, late: %s", l.name, name, short(err))
				l.hears(func() { reply <- kept[T]{err: away} })
				s.locked = false
				waiting := s.waiting
				s.waiting = nil
				for i, again := range waiting {
					s.w.after(s.apart(i), func() { s.unlocked(again) })
				}
			})
		default:
			v, err := do()
			s.w.note("%s %s: %s", l.name, name, short(err))
			if s.w.oneIn(s.ambiguous) {
				s.w.note("%s %s: the answer is lost", l.name, name)
				if s.without == lacksOnce && writes && err == nil {
					v, err = do()
				} else {
					v, err = none, away
				}
			}
			l.hears(func() { reply <- kept[T]{v, err} })
		}
	}
	// A lease may be renewed by two goroutines at one moment, of which one waits longer than the other.
	deadline, _ := ctx.Deadline()
	s.w.hand(fmt.Sprint("store ", l.name, " ", name, " ", deadline.UnixNano()), func() {
		s.w.note("%s asks for %s", l.name, name)
		delay := 200*time.Microsecond + s.w.between(0, 2*time.Millisecond)
		if s.storeSlow > 0 {
			delay += s.w.between(0, s.storeSlow)
		}
		s.w.after(delay, func() {
			l.hears(func() {
				if writes {
					s.unlocked(happens)
				} else {
					happens()
				}
			})
		})
	})
	select {
	case a := <-reply:
		return a.v, a.err
	case <-ctx.Done():
		return none, fmt.Errorf("%s: %w", name, ctx.Err())
	}
}

// apart is a time after which the next of several things happens that were waiting for one: what two goroutines hear at
// one moment they take in any order.
func (s *streaming) apart(i int) time.Duration {
	return time.Duration(i)*300*time.Microsecond + s.w.between(time.Microsecond, 200*time.Microsecond)
}

// unlocked does something when no commit is under way.
func (s *streaming) unlocked(do func()) {
	if s.locked {
		s.waiting = append(s.waiting, do)
		return
	}
	do()
}

// CatalogContents implements catalog.Store.
func (k catalogStore) CatalogContents(ctx context.Context) (catalog.Contents, error) {
	return reach(k, ctx, "CatalogContents"+named(ctx), false, func() (catalog.Contents, error) {
		c, err := k.Store.CatalogContents(ctx)
		return k.l.damaged(c), err
	})
}

// wrote holds a commit against the properties.
func (k catalogStore) wrote(do func() error) error {
	before := k.l.of.contents()
	err := do()
	after := k.l.of.contents()
	if err != nil && !reflect.DeepEqual(before, after) {
		k.l.of.broke("atomic", "%s was refused with %v, and the catalog is another one", k.l.name, err)
	}
	if err == nil {
		k.l.of.committed(k.l, before, after)
	}
	return err
}

// ChangeCatalog implements catalog.Store. A transaction that has met another one is made again.
func (k catalogStore) ChangeCatalog(ctx context.Context, needs catalog.Scope,
	change func(*catalog.Catalog) error) error {
	s := k.l.of
	r, _ := ctx.Value(requested{}).(*request)
	if s.without != lacksNothing {
		change = s.damages(change, s.contents())
	}
	_, err := reach(k, ctx, "ChangeCatalog"+named(ctx), true, func() (struct{}, error) {
		before := s.contents()
		if s.w.oneIn(s.meets) {
			_ = change(catalog.FromContents(before))
			before = s.contents()
		}
		var out error
		err := k.wrote(func() error {
			return k.Store.ChangeCatalog(ctx, needs, func(c *catalog.Catalog) error {
				out = change(c)
				return out
			})
		})
		if r != nil {
			s.holds(r, before, s.contents(), out)
		}
		return struct{}{}, err
	})
	return err
}

// ClaimQueries implements catalog.Store.
func (k catalogStore) ClaimQueries(ctx context.Context, owner string, lease time.Duration) (int, error) {
	n, err := reach(k, ctx, "ClaimQueries", true, func() (n int, err error) {
		err = k.wrote(func() error {
			n, err = k.Store.ClaimQueries(ctx, owner, lease)
			return err
		})
		return n, err
	})
	if k.l.of.without == lacksExpiry && !k.l.dead.Load() {
		return n, nil
	}
	return n, err
}

// AdvanceQuery implements catalog.Store.
func (k catalogStore) AdvanceQuery(ctx context.Context, q catalog.Query) error {
	s := k.l.of
	name := fmt.Sprintf("AdvanceQuery %d@%d to %s", q.ID, q.Epoch, q.State)
	for _, f := range q.Fragments {
		name += fmt.Sprintf(" %s:%s/%d", f.Host, f.State, f.Attempts)
	}
	_, err := reach(k, ctx, name, true, func() (struct{}, error) {
		there, found := s.query(q.ID)
		q, told := q, q
		if s.without == lacksFencing {
			q.Owner, q.Epoch = there.Owner, there.Epoch
		}
		if s.without == lacksTruth && q.State == catalog.Deploying {
			q.State = catalog.Running
			q.Fragments = slices.Clone(q.Fragments)
			for i := range q.Fragments {
				q.Fragments[i].State = catalog.FragmentRunning
			}
		}
		err := k.wrote(func() error { return k.Store.AdvanceQuery(ctx, q) })
		q = told
		if err == nil && (!found || there.Owner != q.Owner || there.Epoch != q.Epoch) {
			s.broke("epoch", "%s has moved the query %d in the epoch %d, which is %s's in %d", k.l.name, q.ID, q.Epoch,
				there.Owner, there.Epoch)
		}
		if err != nil && !errors.Is(err, store.ErrFenced) {
			s.t.Error(err)
		}
		return struct{}{}, err
	})
	return err
}

// SetWorkers implements catalog.Store.
func (k catalogStore) SetWorkers(ctx context.Context, workers []catalog.Worker) error {
	name := "SetWorkers"
	for _, w := range workers {
		name += fmt.Sprintf(" %s %s", w.Host, w.State)
	}
	_, err := reach(k, ctx, name, true, func() (struct{}, error) {
		return struct{}{}, k.wrote(func() error { return k.Store.SetWorkers(ctx, workers) })
	})
	return err
}

// WatchCatalog implements catalog.Store. Who is cut off hears nothing; what changed meanwhile is not repeated.
func (k catalogStore) WatchCatalog(ctx context.Context, heard func()) error {
	l, s := k.l, k.l.of
	err := k.Store.WatchCatalog(ctx, func() {
		s.w.hand("hear "+l.name, func() {
			if l.hearing {
				return // of several changes at one moment the store may tell once, or several times
			}
			l.hearing = true
			s.w.after(s.w.between(time.Millisecond, 20*time.Millisecond), func() {
				l.hearing = false
				s.w.note("%s hears of a change", l.name)
				if !l.dead.Load() && !l.cut && !s.storeAway {
					l.hears(heard)
				}
			})
		})
	})
	return err
}

// query is a query of the catalog; the simulation is locked.
func (s *streaming) query(id int64) (catalog.Query, bool) {
	all := s.contents().Queries
	i := slices.IndexFunc(all, func(q catalog.Query) bool { return q.ID == id })
	if i < 0 {
		return catalog.Query{}, false
	}
	return all[i], true
}
