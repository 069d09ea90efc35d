package simtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	streamsql "github.com/loadstone-db/loadstone/engine/stream/sql"
)

// request is what a client asks, with what it has to give, step by step, by a catalog of plain maps.
type request struct {
	name  string
	steps []step
	// outcome is how often it was carried out, and how that ended.
	committed int
	kind      streamsql.Kind
	answered  bool
}

// step is a statement.
type step struct {
	sql string
	do  func(b *book) streamsql.Kind
}

// requested is the key of the request in the context of a call.
type requested struct{}

// watching is the key of what is asked for those who watch, whichever of them asks.
type watching struct{}

func named(ctx context.Context) string {
	if r, ok := ctx.Value(requested{}).(*request); ok {
		return " " + r.name
	}
	if ctx.Value(watching{}) != nil {
		return " for who watches"
	}
	return ""
}

// book is a catalog of names.
type book struct {
	logical  map[string]bool
	physical map[string]string // by logical source, type and place: id
	sinks    map[string]string // with their place
	up       map[string]bool   // workers that are there
	queries  map[string]bookQuery
	lastID   int64
	free     map[string]int64
	// workers in their order, with whom they send rows to; wide are the sources that every worker reads, of itself.
	workers []string
	peers   map[string]string
	wide    map[string]bool
	// Of the group: left are queries that it has dropped and that were wanted, as they were; ids and places are of
	// physical sources and sinks that it has dropped.
	left        map[string]bookQuery
	ids, places map[string]string
}

type bookQuery struct {
	sink, sources  string
	hosts          string
	dropped, final bool
	wanted         bool
	// waits are the workers whose slot it keeps for its next attempt, unless it is dropped; held those of all its slots.
	waits, held string
	statement   string
}

// leaves reports whether a query needs its sources and its sink no more.
func (b *book) leaves(name string) bool {
	_, left := b.left[name]
	return left && b.queries[name].dropped
}

// asBefore reports whether the sink and the sources of a query that was dropped are there as they were.
func (b *book) asBefore(was bookQuery) bool {
	place, dropped := b.places[was.sink]
	if b.sinks[was.sink] == "" || dropped && place != b.sinks[was.sink] {
		return false
	}
	there := slices.Collect(maps.Values(b.physical))
	return !slices.ContainsFunc(strings.Fields(was.sources), func(id string) bool { return !slices.Contains(there, id) })
}

func bookOf(c catalog.Contents) *book {
	b := &book{logical: map[string]bool{}, physical: map[string]string{}, sinks: map[string]string{},
		queries: map[string]bookQuery{}, up: map[string]bool{}, free: map[string]int64{}, lastID: c.LastSourceID,
		peers: map[string]string{}, wide: map[string]bool{}, left: map[string]bookQuery{}, ids: map[string]string{},
		places: map[string]string{}}
	for _, l := range c.Logical {
		b.logical[l.Name] = true
	}
	for _, p := range c.Physical {
		b.physical[p.Logical+" "+p.Type+" "+p.Placement] = fmt.Sprint(p.ID)
		b.wide[fmt.Sprint(p.ID)] = p.OnEveryWorker()
	}
	for _, k := range c.Sinks {
		b.sinks[k.Name] = cmp.Or(k.Placement, "server")
	}
	for _, w := range c.Workers {
		b.free[w.Host], b.up[w.Host] = w.Slots, w.State == catalog.Active
		b.workers, b.peers[w.Host] = append(b.workers, w.Host), strings.Join(w.Peers, " ")
	}
	for _, q := range c.Queries {
		ids := strings.Trim(fmt.Sprint(q.Sources), "[]")
		there := bookQuery{sink: q.Sink, sources: ids, dropped: q.Desired == catalog.Stopped, final: q.State.Final(),
			wanted: q.Desired == catalog.Running && q.State != catalog.Terminating, statement: q.Statement}
		for _, f := range q.Fragments {
			there.hosts += f.Host + " "
			if holdsSlot(q, f) {
				b.free[f.Host]--
				there.held += f.Host + " "
				if f.State.Final() {
					there.waits += f.Host + " "
				}
			}
		}
		b.queries[q.Name] = there
	}
	return b
}

// sources are the physical sources of a logical one.
func (b *book) sources(logical string) (ids []string) {
	for key, id := range b.physical {
		if strings.HasPrefix(key, logical+" ") {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(x, y string) int { return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)) })
	return ids
}

// place returns where the fragments of a query are, or why there are none.
func (b *book) place(logical, sink string) (hosts []string, refused streamsql.Kind) {
	hosts = []string{b.sinks[sink]}
	for _, id := range b.sources(logical) {
		for key, of := range b.physical {
			read := []string{cmp.Or(strings.Split(key, " ")[2], "server")}
			if b.wide[id] {
				read = append(read, slices.DeleteFunc(slices.Clone(b.workers), func(h string) bool { return !b.up[h] })...)
			}
			for _, at := range read {
				if of == id && !slices.Contains(hosts, at) {
					hosts = append(hosts, at)
				}
			}
		}
	}
	for _, h := range hosts {
		switch {
		case !b.up[h]:
			return nil, streamsql.PlacementError
		case b.free[h] < 1:
			return nil, streamsql.InsufficientCapacity
		}
	}
	return hosts, fine
}

// names are all names, for comparisons.
func (b *book) names() string {
	var all []string
	all = append(all, slices.Sorted(maps.Keys(b.logical))...)
	for _, key := range slices.Sorted(maps.Keys(b.physical)) {
		all = append(all, key+"="+b.physical[key])
	}
	for _, host := range slices.Sorted(slices.Values(b.workers)) {
		all = append(all, host+">"+b.peers[host])
	}
	all = append(all, slices.Sorted(maps.Keys(b.sinks))...)
	all = append(all, slices.Sorted(maps.Values(b.sinks))...)
	for _, name := range slices.Sorted(maps.Keys(b.queries)) {
		there := b.queries[name]
		there.waits, there.hosts, there.held, there.statement = "", "", "", "" // no name
		all = append(all, fmt.Sprint(name, there))
	}
	return strings.Join(all, " ")
}

const fine = streamsql.Kind("")

func createLogical(name string) step {
	return step{"CREATE LOGICAL SOURCE " + name + "(ts TIMESTAMP, n INT64)", func(b *book) streamsql.Kind {
		if b.logical[name] {
			return streamsql.AlreadyExists
		}
		b.logical[name] = true
		return fine
	}}
}

func createPhysical(logical, kind, on string) step {
	config := "'h' AS SOURCE.SOCKET_HOST, 1 AS SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE"
	if kind == "FILE" {
		config = "'f.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE"
	}
	return step{"CREATE PHYSICAL SOURCE FOR " + logical + " TYPE " + kind + placed(on) + " SET(" + config + ")",
		func(b *book) streamsql.Kind {
			switch {
			case !b.logical[logical]:
				return streamsql.LogicalSourceDoesNotExistForPhysical
			case b.ofProduct(logical):
				return streamsql.ProtectedSource
			case on != "" && !b.has(on):
				return streamsql.WorkerDoesNotExistForPhysical
			case b.physical[logical+" "+kind+" "+on] != "":
				return streamsql.AlreadyExists
			}
			if id := b.ids[logical+" "+kind+" "+on]; id != "" { // as it was
				b.physical[logical+" "+kind+" "+on] = id
				return fine
			}
			b.lastID++
			b.physical[logical+" "+kind+" "+on] = fmt.Sprint(b.lastID)
			return fine
		}}
}

// ofProduct reports whether a logical source is one of the product, which nobody changes.
func (b *book) ofProduct(logical string) bool {
	return logical == executions && b.physical[executions+" SYSTEM "] != ""
}

func placed(on string) string {
	if on == "" {
		return ""
	}
	return " ON " + on
}

// has reports whether a worker is known.
func (b *book) has(worker string) bool {
	_, known := b.up[worker]
	return known
}

func createSink(name, on string) step {
	return step{"CREATE SINK " + name + " TYPE PRINT" + placed(on), func(b *book) streamsql.Kind {
		switch {
		case b.sinks[name] != "":
			return streamsql.AlreadyExists
		case on != "" && !b.has(on):
			return streamsql.WorkerDoesNotExistForSink
		}
		b.sinks[name] = cmp.Or(on, "server")
		return fine
	}}
}

func createQuery(name, logical, sink string) step {
	column := "n"
	if logical == executions {
		column = "seq"
	}
	statement := "SELECT " + column + " FROM " + logical + " INTO " + sink
	return step{"CREATE QUERY " + name + " AS " + statement, func(b *book) streamsql.Kind {
		there, taken := b.queries[name]
		was := b.left[name]
		leaves := b.leaves(name)
		if leaves && was.statement == statement && b.asBefore(was) {
			for _, h := range strings.Fields(was.waits) {
				b.free[h]--
			}
			b.queries[name] = was
			return fine
		}
		switch {
		case leaves:
		case taken && there.dropped && !there.final:
			return streamsql.NameLocked
		case taken:
			return streamsql.AlreadyExists
		}
		switch {
		case b.sinks[sink] == "":
			return streamsql.SinkDoesNotExistForQuery
		case !b.logical[logical]:
			return streamsql.BinderError
		case len(b.sources(logical)) == 0:
			return streamsql.PlacementError
		}
		if leaves { // its slots are those of what takes its place
			for _, h := range strings.Fields(there.held) {
				b.free[h]++
			}
		}
		hosts, refused := b.place(logical, sink)
		if refused != fine {
			return refused
		}
		for _, h := range hosts {
			b.free[h]--
		}
		b.queries[name] = bookQuery{sink: sink, sources: strings.Join(b.sources(logical), " "),
			hosts: strings.Join(hosts, " "), held: strings.Join(hosts, " "), wanted: true, statement: statement}
		return fine
	}}
}

func dropLogical(name string) step {
	return step{"DROP LOGICAL SOURCE " + name, func(b *book) streamsql.Kind {
		if b.ofProduct(name) {
			return streamsql.ProtectedSource
		}
		if len(b.sources(name)) > 0 {
			return streamsql.ReferencedPhysicalSourceExists
		}
		delete(b.logical, name)
		return fine
	}}
}

func dropPhysical(id string) step {
	return step{"DROP PHYSICAL SOURCE " + id, func(b *book) streamsql.Kind {
		for key, there := range b.physical {
			if there != id {
				continue
			}
			if logical, _, _ := strings.Cut(key, " "); b.ofProduct(logical) {
				return streamsql.ProtectedSource
			}
			for name, q := range b.queries {
				if slices.Contains(strings.Fields(q.sources), id) && !b.leaves(name) {
					return streamsql.ReferencedQueryExists
				}
			}
			for name, q := range b.queries {
				q.sources = strings.Join(slices.DeleteFunc(strings.Fields(q.sources),
					func(of string) bool { return of == id }), " ")
				b.queries[name] = q
			}
			b.ids[key] = id
			delete(b.physical, key)
		}
		return fine
	}}
}

func dropSink(name string) step {
	return step{"DROP SINK " + name, func(b *book) streamsql.Kind {
		for of, q := range b.queries {
			if q.sink == name && !b.leaves(of) {
				return streamsql.ReferencedQueryExists
			}
		}
		for of, q := range b.queries {
			if q.sink == name {
				q.sink = ""
				b.queries[of] = q
			}
		}
		if _, before := b.places[name]; !before && b.sinks[name] != "" {
			b.places[name] = b.sinks[name]
		}
		delete(b.sinks, name)
		return fine
	}}
}

func dropQuery(name, mode string) step {
	return step{"DROP QUERY " + name + mode, func(b *book) streamsql.Kind {
		if q, there := b.queries[name]; there && q.final {
			delete(b.queries, name)
		} else if there {
			if q.wanted {
				b.left[name] = q
			}
			held := strings.Fields(q.held)
			for _, host := range strings.Fields(q.waits) {
				b.free[host]++
				held = slices.DeleteFunc(held, func(h string) bool { return h == host })
			}
			q.dropped, q.waits, q.held, q.wanted = true, "", strings.Join(held, " "), false
			b.queries[name] = q
		}
		return fine
	}}
}

// createWorker makes a worker that sends rows to another one, or to none.
func createWorker(host, peer string) step {
	set := " SET(1 AS NUM_SLOTS)"
	if peer != "" {
		set = " SET(1 AS NUM_SLOTS, ('" + peer + "') AS PEERS)"
	}
	return step{"CREATE WORKER " + host + set, func(b *book) streamsql.Kind {
		switch {
		case b.has(host):
			return streamsql.AlreadyExists
		case host == peer:
			return streamsql.InvalidTopology
		case peer != "" && !b.has(peer):
			return streamsql.DoesNotExist
		}
		b.up[host], b.free[host], b.peers[host] = false, 1, peer
		b.workers = append(b.workers, host)
		return fine
	}}
}

func dropWorker(host string) step {
	return step{"DROP WORKER " + host, func(b *book) streamsql.Kind {
		for key := range b.physical {
			if strings.HasSuffix(key, " "+host) {
				return streamsql.ReferencedSourceExists
			}
		}
		for _, at := range b.sinks {
			if at == host {
				return streamsql.ReferencedSinkExists
			}
		}
		for _, q := range b.queries {
			if slices.Contains(strings.Fields(q.hosts), host) {
				return streamsql.ReferencedQueryExists
			}
		}
		for _, to := range b.peers {
			if to == host {
				return streamsql.InvalidTopology
			}
		}
		delete(b.up, host)
		delete(b.free, host)
		delete(b.peers, host)
		b.workers = slices.DeleteFunc(b.workers, func(h string) bool { return h == host })
		return fine
	}}
}

// client asks one thing after another of servers that are there.
func (s *streaming) client() {
	s.clients++
	name := fmt.Sprintf("c%d", s.clients)
	first := []step{createLogical("l0"), createPhysical("l0", "TCP", ""), createSink("s0", "")}
	var next func()
	n := 0
	next = func() {
		if s.calm.Load() || s.ending {
			return
		}
		steps := first
		if first = nil; steps == nil {
			steps = s.anything()
		}
		n++
		r := &request{name: fmt.Sprintf("%s.%d", name, n), steps: steps}
		s.ask(r, func() { s.w.after(s.w.between(10*time.Millisecond, 8*time.Second), next) })
	}
	s.w.after(s.w.between(0, 2*time.Second), next)
}

// anything is one statement, or a few that belong together.
func (s *streaming) anything() (steps []step) {
	pick := func(prefix string, of int) string { return fmt.Sprintf("%s%d", prefix, s.w.chance.IntN(of)) }
	n := 1
	if s.w.oneIn(3) {
		n = 2 + s.w.chance.IntN(3)
	}
	for range n {
		l, k, q := pick("l", 3), pick("s", 3), pick("q", 6)
		kind := []string{"TCP", "FILE"}[s.w.chance.IntN(2)]
		of := 23
		if s.wide {
			of = 27
		}
		switch s.w.chance.IntN(of) {
		case 20:
			steps = append(steps, createWorker(pick("w", 3), ""))
		case 21:
			steps = append(steps, createWorker(pick("w", 3), pick("w", 3)))
		case 22:
			steps = append(steps, dropWorker(pick([]string{"w", "n"}[s.w.chance.IntN(2)], 3)))
		case 23, 24, 25, 26:
			steps = append(steps, createQuery(q, executions, []string{k, "s0"}[s.w.chance.IntN(2)]))
		case 0:
			steps = append(steps, createLogical(l))
		case 1, 2:
			steps = append(steps, createPhysical(l, kind, s.anywhere()))
		case 3:
			steps = append(steps, createSink(k, s.anywhere()))
		case 4, 5, 6, 7, 8:
			steps = append(steps, createQuery(q, l, k))
		case 9:
			steps = append(steps, dropLogical(l))
		case 10:
			steps = append(steps, dropPhysical(fmt.Sprint(1+s.w.chance.IntN(6))))
		case 11:
			steps = append(steps, dropSink(k))
		case 12, 13:
			steps = append(steps, dropQuery(q, ""))
		case 14:
			steps = append(steps, dropQuery(q, " GRACEFUL"))
		case 15, 16:
			steps = append(steps, createLogical("l0"), createPhysical("l0", "TCP", ""), createSink("s0", ""))
		default:
			steps = append(steps, createQuery(q, "l0", "s0"))
		}
	}
	return steps
}

// anywhere is a worker, one that is not there now and then, or none.
func (s *streaming) anywhere() string {
	if len(s.nodes) == 0 || s.w.oneIn(2) {
		return ""
	}
	if s.w.oneIn(12) {
		return []string{"n9", "w0", "w1"}[s.w.chance.IntN(3)]
	}
	return s.nodes[s.w.chance.IntN(len(s.nodes))]
}

// ask has a server carry out a request.
func (s *streaming) ask(r *request, then func()) {
	list := s.alive()
	if len(list) == 0 {
		s.w.after(time.Second, then)
		return
	}
	l := list[s.w.chance.IntN(len(list))]
	var text []string
	for _, st := range r.steps {
		text = append(text, st.sql)
	}
	s.w.note("%s asks %s: %s", r.name, l.name, strings.Join(text, "; "))
	s.asks(func(ctx context.Context) {
		limited, cancel := context.WithTimeout(context.WithValue(ctx, requested{}, r), 20*time.Second)
		defer cancel()
		_, err := l.c.Execute(limited, strings.Join(text, "; "), catalog.Author{Name: r.name}, nil)
		s.w.hand("answer "+r.name, func() {
			s.w.note("%s: %s", r.name, short(err))
			s.answered(r, err)
			then()
		})
	})
}

// holds compares what a request has done at its commit with what it had to do.
func (s *streaming) holds(r *request, before, after catalog.Contents, err error) {
	b := bookOf(before)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		// Nobody waits for the answer any more, and nothing of the request may be carried out.
		if is := bookOf(after); is.names() != b.names() {
			s.broke("atomic", "%s (%s): the catalog has\n  %s\nand had\n  %s", r.name, short(err), is.names(), b.names())
		}
		r.kind = kindOf(err)
		return
	}
	want, at := fine, 0
	for i, st := range r.steps {
		if want = st.do(b); want != fine {
			at = i
			b = bookOf(before) // nothing of it
			break
		}
	}
	got := kindOf(err)
	if got != want {
		s.broke("typed error", "%s: %s has to give %q and gave %q: %v", r.name, r.steps[at].sql, want, got, err)
	}
	if is := bookOf(after); is.names() != b.names() {
		s.broke("atomic", "%s (%s): the catalog has\n  %s\nand has to have\n  %s", r.name, short(err), is.names(), b.names())
	}
	if err == nil {
		r.committed++
	}
	r.kind = got
	if r.committed > 1 {
		s.broke("atomic", "%s was carried out %d times", r.name, r.committed)
	}
}

func kindOf(err error) streamsql.Kind {
	var e *streamsql.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	if err != nil {
		return "?"
	}
	return fine
}

// answered compares the answer that a client got with what became of its request.
func (s *streaming) answered(r *request, err error) {
	r.answered = true
	switch {
	case err == nil:
		s.accepted++
		if r.committed != 1 {
			s.broke("answer", "%s was accepted, and committed %d times", r.name, r.committed)
		}
	case kindOf(err) != "?":
		s.refused[string(kindOf(err))]++
		if r.committed > 0 || r.kind != kindOf(err) {
			s.broke("answer", "%s was refused with %v, and committed %d times", r.name, err, r.committed)
		}
	default: // whether it was carried out is not known
		s.refused["unknown"]++
	}
}

// dropAll drops all queries, then the rest, until there is nothing.
func (s *streaming) dropAll() {
	var again func()
	again = func() {
		c := s.contents()
		var steps []step
		for _, q := range c.Queries {
			if q.Desired == catalog.Running {
				steps = append(steps, dropQuery(q.Name, []string{"", " GRACEFUL"}[s.w.chance.IntN(2)]))
			}
		}
		if len(steps) == 0 {
			return
		}
		s.ask(&request{name: fmt.Sprintf("drop %d", len(s.states)), steps: steps},
			func() { s.w.after(time.Second, again) })
	}
	again()
	s.w.run(mostToSettle, func() bool { return len(s.contents().Queries) == 0 })
	if n := len(s.contents().Queries); n > 0 {
		s.broke("name lock", "%d names are still taken %v after everything was dropped: %s", n, mostToSettle, s.unsettled())
	}
}
