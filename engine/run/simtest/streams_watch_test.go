package simtest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/watch"
)

// watcher follows a table, is slow now and then, is cut off, and goes on where it was.
type watcher struct {
	name     string
	rows     map[string]string
	position string
	// at is the state of the catalog that it has seen last.
	at      int
	began   bool
	follows bool // it watches by a server: it knows what there is
	resumed int
}

const watchedTable = "WATCH SELECT id, name, state, desired_state, sink FROM queries"

type watchedRow struct {
	ID                int64
	Name, State, Sink string
	Desired           string `json:"desired_state"`
}

// watch has a client watch the queries until the end of the world.
func (s *streaming) watch() {
	o := &watcher{name: fmt.Sprintf("w%d", len(s.watchers)), rows: map[string]string{}}
	s.watchers = append(s.watchers, o)
	s.asks(func(ctx context.Context) {
		for ctx.Err() == nil {
			on := make(chan *carrier, 1)
			s.w.hand("watch "+o.name, func() {
				s.w.after(s.w.between(0, time.Second), func() {
					// Of two on one server either may read for both.
					list := slices.DeleteFunc(s.alive(), func(l *carrier) bool { return l.followed })
					if len(list) == 0 {
						on <- nil
						return
					}
					l := list[s.w.chance.IntN(len(list))]
					l.followed, o.follows = true, true
					on <- l
				})
			})
			if l := <-on; l != nil {
				s.follow(ctx, o, l)
				s.w.hand("left "+o.name, func() { l.followed, o.follows = false, false })
			}
		}
	})
}

// follow watches by one server, until that ends or the client has enough of it.
func (s *streaming) follow(ctx context.Context, o *watcher, l *carrier) {
	v, err := watch.Parse(watchedTable)
	if err != nil {
		s.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, watching{}, true))
	defer cancel()
	_ = l.c.Watch(ctx, "", v, o.position, func(events []watch.Event) error {
		next := make(chan error, 1)
		s.w.hand("events "+o.name, func() {
			if l.dead.Load() {
				next <- errGone
				return
			}
			s.w.note("%s is told %d events by %s", o.name, len(events), l.name)
			s.takes(o, events)
			if !s.calm.Load() && s.w.oneIn(10) {
				next <- errGone // it goes away, and comes back with its position
				return
			}
			slow := time.Duration(1)
			if !s.calm.Load() && s.w.oneIn(4) {
				slow = s.w.between(0, 10*time.Second)
			}
			s.w.after(slow, func() { next <- nil })
		})
		select {
		case err := <-next:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// takes in what a watch tells. Afterwards the rows are those that the catalog had at one moment, not before the last.
func (s *streaming) takes(o *watcher, events []watch.Event) {
	for _, e := range events {
		if s.without == lacksEvents && e.Kind == watch.Update && s.w.oneIn(5) {
			continue
		}
		if e.Kind == watch.Snapshot {
			o.rows, o.began = map[string]string{}, true
		} else if !o.began {
			s.broke("watch", "%s was told %s before it knew anything", o.name, e.Kind)
		}
		if e.Kind == watch.Resumed {
			o.resumed++
		}
		for _, text := range e.Rows {
			var r watchedRow
			if err := json.Unmarshal(text, &r); err != nil {
				s.broke("watch", "%s: %v", text, err)
			}
			key := fmt.Sprintf("%020d", r.ID)
			_, there := o.rows[key]
			if e.Kind == watch.Create && there || (e.Kind == watch.Update || e.Kind == watch.Drop) && !there {
				s.broke("watch", "%s was told %s of the query %d: there %t", o.name, e.Kind, r.ID, there)
			}
			if o.rows[key] = fmt.Sprint(r.Name, r.State, r.Desired, r.Sink); e.Kind == watch.Drop {
				delete(o.rows, key)
			}
		}
		if e.Position != "" {
			o.position = e.Position
		}
	}
	if len(events) == 0 {
		return
	}
	for at := o.at; at < len(s.states); at++ {
		if reflect.DeepEqual(s.states[at].queries, o.rows) {
			o.at = at
			return
		}
	}
	s.broke("watch", "%s has seen what the catalog never was, or was before: %v", o.name, o.rows)
}

// watched compares what watchers know with what there is.
func (s *streaming) watched(when string) {
	now := s.states[len(s.states)-1].queries
	for _, o := range s.watchers {
		if o.follows && !reflect.DeepEqual(now, o.rows) {
			s.broke("watch", "%s: %s knows %v of %v", when, o.name, o.rows, now)
		}
	}
}
