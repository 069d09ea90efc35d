package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// state is the catalog after a commit.
type state struct {
	queries map[string]string // as watchers see them
}

// noteState keeps how the catalog is now.
func (s *streaming) noteState() {
	st := &state{queries: map[string]string{}}
	for _, q := range s.contents().Queries {
		st.queries[fmt.Sprintf("%020d", q.ID)] = fmt.Sprint(q.Name, q.State, q.Desired, q.Sink)
	}
	s.states = append(s.states, st)
}

// committed holds a change of the catalog against the properties.
func (s *streaming) committed(l *carrier, before, after catalog.Contents) {
	s.noteState()
	s.integrity(after)
	s.mu.Lock()
	defer s.mu.Unlock()
	was := map[int64]catalog.Query{}
	for _, q := range before.Queries {
		was[q.ID] = q
	}
	for _, q := range after.Queries {
		b, known := was[q.ID]
		delete(was, q.ID)
		if known && !b.CreatedAt.Equal(q.CreatedAt) {
			for _, i := range s.instances {
				i.replaced = i.replaced || i.query == q.ID && i.lives()
			}
		}
		if !known {
			s.created(q, after)
			continue
		}
		s.moved(l, b, q)
	}
	for id := range was {
		s.been[id] = true
		s.gone(id, "is not in the catalog any more")
	}
}

// created holds a new query against the properties.
func (s *streaming) created(q catalog.Query, c catalog.Contents) {
	if s.been[q.ID] {
		s.broke("exactly once", "the id %d was given out twice", q.ID)
	}
	if q.State != catalog.Pending {
		s.broke("exactly once", "the query %d is accepted as %s", q.ID, q.State)
	}
	for _, f := range q.Fragments {
		for _, w := range c.Workers {
			if sql.SameName(w.Host, f.Host) && w.State != catalog.Active {
				s.broke("reachable", "the query %d is placed on %s, which is %s", q.ID, w.Host, w.State)
			}
		}
	}
}

// moved holds a step of a query against the properties.
func (s *streaming) moved(l *carrier, b, q catalog.Query) {
	step := fmt.Sprintf("the query %d went from %s to %s", q.ID, b.State, q.State)
	if q.Epoch < b.Epoch || q.Epoch == b.Epoch && q.Owner != b.Owner {
		s.broke("epoch", "the query %d had the epoch %d of %s and has %d of %s", q.ID, b.Epoch, b.Owner, q.Epoch, q.Owner)
	}
	if b.Desired == catalog.Stopped && q.Desired != catalog.Stopped {
		s.broke("exactly once", "the query %d was dropped and is wanted again", q.ID)
	}
	if q.State == b.State {
		return
	}
	ending := func(st catalog.State) bool { return st == catalog.Stopping || st == catalog.StoppingStuck }
	switch {
	case b.State.Final():
		s.broke("final", "%s", step)
	case b.State == catalog.Terminating && q.State != catalog.Failed && !ending(q.State):
		s.broke("final", "%s", step)
	case ending(b.State) && !ending(q.State):
		s.broke("final", "%s", step)
	}
	switch q.State {
	case catalog.Running:
		for _, f := range q.Fragments {
			if f.State == catalog.FragmentRunning && s.sees(q, f.Host) && !s.ran[ranIn{q.ID, q.Epoch, f.Host}] {
				s.broke("running is true", "%s calls the query %d RUNNING, and nothing of it was opened on %s", l.name, q.ID,
					f.Host)
			}
		}
	case catalog.Failed, catalog.Terminated:
		s.gone(q.ID, "is "+string(q.State))
	}
}

// gone says that nothing of a query may run; the simulation is locked.
func (s *streaming) gone(id int64, why string) {
	for _, i := range s.instances {
		if i.query == id && i.lives() && !i.tells() {
			s.broke("name lock", "the query %d %s, and runs on %s", id, why, i.at.label())
		}
	}
}

// begins holds the start of a fragment against the properties; the simulation is locked.
func (s *streaming) begins(i *instance) {
	if s.been[i.query] && !i.tells() {
		s.broke("no zombies", "a fragment of the query %d begins on %s, which is gone", i.query, i.at.label())
	}
	running, slots := int64(1), int64(nodeSlots)
	if i.at.worker() == coordinator.Server {
		slots = s.slots
	}
	for _, other := range s.instances {
		if !other.lives() || other.at.worker() != i.at.worker() {
			continue
		}
		if !other.tells() && !other.replaced { // what is replaced gives its slots to what takes its place
			running++
		}
		if other.query == i.query {
			s.broke("exactly once", "the query %d in the epoch %d begins on %s, and runs on %s in %d", i.query, i.epoch,
				i.at.label(), other.at.label(), other.epoch)
		}
	}
	s.ran[ranIn{i.query, i.epoch, i.at.worker()}] = true
	if running > slots {
		s.broke("capacity", "%d fragments run in %d slots of %s", running, slots, i.at.worker())
	}
}

// nodeSlots are those of a node.
const nodeSlots = 2

// sees reports whether it is seen that a fragment has begun: of one in the server that has sources alone it is not.
func (s *streaming) sees(q catalog.Query, host string) bool {
	if host != coordinator.Server {
		return true
	}
	k, _ := catalog.FromContents(s.contents()).Sink(q.Sink)
	return k.Placement == ""
}

// reads holds what a fragment has opened against what its query holds; the simulation is locked.
func (s *streaming) reads(i *instance) {
	q, there := s.query(i.query)
	for _, r := range i.sources {
		// What is replaced or dropped may be opened still, until its owner has heard of that.
		old := i.replaced || q.Desired != catalog.Running || q.State == catalog.Pending
		if there && !old && !slices.Contains(q.Sources, r.physical) {
			s.broke("reads", "the query %d reads the physical source %d, and holds %v", i.query, r.physical, q.Sources)
		}
	}
}

// integrity holds the catalog by itself against the rules of the seed.
func (s *streaming) integrity(c catalog.Contents) {
	unique := func(what string, names []string) map[string]bool {
		all := map[string]bool{}
		for _, n := range names {
			if key := strings.ToLower(n); all[key] {
				s.broke("integrity", "two %s are %s", what, n)
			} else {
				all[key] = true
			}
		}
		return all
	}
	var hosts, logical, physical, sinks, queries []string
	for _, w := range c.Workers {
		hosts = append(hosts, w.Host)
	}
	workers := unique("workers", hosts)
	for _, l := range c.Logical {
		logical = append(logical, l.Name)
		if len(l.Columns) == 0 || slices.ContainsFunc(l.Columns, func(c column.Column) bool { return c.Name == "" }) {
			s.broke("integrity", "the schema of %s is %v", l.Name, l.Columns)
		}
	}
	schemas := unique("logical sources", logical)
	ids := map[int64]bool{}
	for _, p := range c.Physical {
		physical = append(physical, p.Logical+" ON "+p.Placement+" TYPE "+p.Type)
		if ids[p.ID] || !schemas[strings.ToLower(p.Logical)] || p.Placement != "" && !workers[strings.ToLower(p.Placement)] {
			s.broke("integrity", "the physical source %d of %s on %q", p.ID, p.Logical, p.Placement)
		}
		ids[p.ID] = true
	}
	unique("physical sources", physical)
	for _, k := range c.Sinks {
		sinks = append(sinks, k.Name)
		if k.Placement != "" && !workers[strings.ToLower(k.Placement)] {
			s.broke("integrity", "the sink %s is on %s", k.Name, k.Placement)
		}
	}
	there := unique("sinks", sinks)
	used := map[string]int64{}
	for _, q := range c.Queries {
		queries = append(queries, q.Name)
		left := q.Desired == catalog.Stopped && q.Sink == "" // it was dropped with its sink
		if !there[strings.ToLower(q.Sink)] && !left {
			s.broke("integrity", "the query %s writes to %s, which is not there", q.Name, q.Sink)
		}
		if slices.ContainsFunc(q.Sources, func(id int64) bool { return !ids[id] }) {
			s.broke("integrity", "the query %s reads %v, of which one is not there", q.Name, q.Sources)
		}
		if len(q.Fragments) == 0 {
			s.broke("integrity", "the query %s has no fragment", q.Name)
		}
		for _, f := range q.Fragments {
			if !workers[strings.ToLower(f.Host)] {
				s.broke("integrity", "a fragment of %s is on %s", q.Name, f.Host)
			}
			if holdsSlot(q, f) {
				used[strings.ToLower(f.Host)]++
			}
		}
	}
	unique("queries", queries)
	for _, w := range c.Workers {
		if n := used[strings.ToLower(w.Host)]; n > w.Slots {
			s.broke("capacity", "%d of %d slots of %s are taken", n, w.Slots, w.Host)
		}
		if n, told := used[strings.ToLower(w.Host)], catalog.FromContents(c).Used(w.Host); n != told {
			s.broke("capacity", "%d slots of %s are taken, %d are said to be", n, w.Host, told)
		}
	}
	s.acyclic(c.Workers)
}

// holdsSlot reports whether a fragment runs, or is going to.
func holdsSlot(q catalog.Query, f catalog.Fragment) bool {
	if q.State.Final() {
		return false
	}
	if q.Desired == catalog.Running && q.State != catalog.Terminating {
		return true // also one that has ended: it begins anew when another is lost
	}
	return !f.State.Final()
}

// acyclic: rows go no way that leads back.
func (s *streaming) acyclic(list []catalog.Worker) {
	to := map[string][]string{}
	for _, w := range list {
		to[strings.ToLower(w.Host)] = w.Peers
	}
	var visit func(host string, on map[string]bool)
	visit = func(host string, on map[string]bool) {
		if on[host] {
			s.broke("integrity", "links lead from %s back to it", host)
			return
		}
		on = maps.Clone(on)
		on[host] = true
		for _, p := range to[host] {
			visit(strings.ToLower(p), on)
		}
	}
	for host := range to {
		visit(host, map[string]bool{})
	}
}
