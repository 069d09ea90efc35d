package simtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// streaming is one world of catalog, reconcilers and fragments. What servers carry out is the product's: statements,
// catalog, life, coordinator and streams. Their clients, what queries read and write, the store and all faults are
// played.
type streaming struct {
	t       testing.TB
	w       *world
	without lacking
	keeper  *catalogtest.Store
	lives   []*carrier
	slots   int64
	calm    atomic.Bool
	ending  bool

	// Of the store: away for all, slow, answers lost, commits late, transactions that meet others, one in so many.
	storeAway                     bool
	storeSlow                     time.Duration
	ambiguous, lateCommits, meets int
	locked                        bool
	waiting                       []func()
	// down are physical sources that cannot be opened.
	down map[int64]bool
	// refuses is one in so many sinks that cannot be opened for the moment; broken, for good.
	refuses, broken int
	// nodes are workers beside the server's own, with the state that each server believes them to have.
	nodes []string
	hosts map[string]*workerLife
	ways  []*way
	// draining are nodes that an operator has asked to rest; wide: queries spread over what nodes tell of themselves.
	draining map[string]bool
	wide     bool
	// going counts the goroutines of nodes; breaks is one in so many links that break.
	going  atomic.Int64
	breaks int

	mu        sync.Mutex
	opening   map[context.Context][]*rowSource
	instances []*instance
	// been are queries that are gone, states what the catalog was after each commit.
	been   map[int64]bool
	states []*state
	ran    map[ranIn]bool

	// over counts heads whose rows were compared.
	over     int
	clients  int
	asked    atomic.Int64
	asking   context.Context //nolint:containedctx // of the whole world
	enough   context.CancelFunc
	watchers []*watcher
	// accepted and refused count requests, by kind of error.
	accepted int
	refused  map[string]int
}

// lacking names the rule that is taken out.
type lacking string

const lacksNothing lacking = ""

// carrier is one life of a server.
type carrier struct {
	of     *streaming
	name   string
	owner  string
	c      *coordinator.Coordinator
	dead   atomic.Bool
	opened chan struct{}
	closed chan struct{}
	// cut: it does not reach the store, and is told so, or it hears nothing at all (hangs); held is what it hears later.
	cut, hangs bool
	held       []func()
	// followed: somebody watches by it.
	followed bool
	// hearing: it is on its way that the catalog has changed.
	hearing bool
	// sees is what it believes nodes to be, parted those that it does not reach.
	sees   map[string]catalog.WorkerState
	parted map[string]bool
	// off is how far its clock is off.
	off time.Duration
}

// stream lives one seed, and returns what was broken, with the trace.
func liveStreams(t *testing.T, seed uint64, missing lacking) (wrong []string, trace []byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &streaming{t: t, w: newWorld(seed), without: missing, keeper: &catalogtest.Store{}, ambiguous: never,
			lateCommits: never, meets: 4, refuses: never, broken: never, breaks: never,
			hosts: map[string]*workerLife{}, down: map[int64]bool{}, draining: map[string]bool{},
			opening: map[context.Context][]*rowSource{}, been: map[int64]bool{}, ran: map[ranIn]bool{},
			refused: map[string]int{}}
		s.asking, s.enough = context.WithCancel(context.Background())
		s.live()
		wrong, trace = s.w.verdict(), s.w.trace.Bytes()
	})
	return wrong, trace
}

// never is one in so many that it does not happen.
const never = 1_000_000_000

// live is the whole life of a world.
func (s *streaming) live() {
	s.slots, s.wide = 1+s.w.chance.Int64N(5), s.w.oneIn(2)
	for i := range s.w.chance.IntN(3) {
		s.nodes = append(s.nodes, fmt.Sprintf("n%d", i))
		s.startNode(s.nodes[i])
	}
	err := s.keeper.ChangeCatalog(context.Background(), catalog.Scope{All: true}, func(c *catalog.Catalog) error {
		c.SetDefaultHost(coordinator.Server, s.slots)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.noteState()
	s.boot("a")
	if s.w.oneIn(2) {
		s.boot("b")
	}
	s.plan()
	for range 1 + s.w.chance.IntN(3) {
		s.client()
	}
	s.watch()
	if len(s.lives) > 1 {
		s.watch()
	}
	s.w.after(s.w.between(0, time.Second), s.rows)
	s.w.run(s.w.between(30*time.Second, 3*time.Minute), func() bool { return false })
	s.heal()
	s.converge("once everything was healed")
	s.dropAll()
	s.converge("once everything was dropped")
	s.end()
}

// converge waits until all that was accepted has come to rest, and nothing is written any more.
func (s *streaming) converge(when string) {
	if !s.w.run(mostToSettle, s.settled) {
		s.broke("liveness", "%v after everything is healed, %s: %s", mostToSettle, when, s.unsettled())
		return
	}
	// What was decided is written, and watched, a moment later; what a dead server had is claimed after its lease.
	// Ways that broke before are found broken within a minute.
	s.w.run(time.Minute, func() bool { return false })
	s.w.run(mostToSettle, s.settled)
	s.w.run(25*time.Second, func() bool { return false })
	if !s.settled() {
		s.broke("liveness", "it did not stay settled %s: %s", when, s.unsettled())
	}
	before := s.keeper.Writes()
	s.w.run(time.Minute, func() bool { return false })
	if n := s.keeper.Writes() - before; n > 0 {
		s.broke("quiet", "%s the catalog was written %d times in a minute in which nothing changed", when, n)
	}
	s.watched(when)
}

// mostToSettle is how long everything that was accepted may take once faults are healed: a query that cannot be
// deployed fails after two minutes, and its lease may have to end before.
const mostToSettle = 5 * time.Minute

func (s *streaming) broke(property, format string, args ...any) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if len(s.w.wrong) < 20 {
		s.w.wrong = append(s.w.wrong, fmt.Sprintf("%.9f %s: ", time.Since(s.w.begun).Seconds(), property)+
			fmt.Sprintf(format, args...))
	}
}

// boot starts a server.
func (s *streaming) boot(owner string) {
	if s.ending {
		return
	}
	l := &carrier{of: s, name: fmt.Sprintf("%s%d", owner, len(s.lives)), owner: owner, opened: make(chan struct{}),
		closed: make(chan struct{}), sees: map[string]catalog.WorkerState{}, parted: map[string]bool{}}
	for _, n := range s.nodes {
		if l.sees[n] = catalog.Active; s.hosts[n].dead.Load() {
			l.sees[n] = catalog.Unreachable
		}
	}
	if s.w.oneIn(3) {
		l.off = s.w.between(-time.Hour, time.Hour)
	}
	s.lives = append(s.lives, l)
	s.w.note("the server %s begins, its clock is off by %v", l.name, l.off)
	go func() {
		c, err := coordinator.Open(context.Background(), coordinator.Options{Store: catalogStore{s.keeper, l},
			Connectors: feeds{l}, Runner: ways{l}, Owner: l.owner, Cluster: l,
			Now: func() time.Time { return time.Now().Add(l.off) }, Sources: s.sources(), Log: zerolog.Nop()})
		l.c = c
		close(l.opened)
		s.w.hand("open "+l.name, func() {
			s.w.note("the server %s is open: %s", l.name, short(err))
			if err != nil && !l.dead.Load() {
				l.kill()
				s.w.after(s.w.between(time.Second, 5*time.Second), func() { s.reboot(owner) })
			}
		})
	}()
}

// sources are what the product makes by itself: what every node tells of itself.
func (s *streaming) sources() string {
	if !s.wide {
		return ""
	}
	parsed, err := sql.Parse(system.Sources)
	if err != nil {
		s.t.Fatal(err)
	}
	var list []string
	for _, p := range parsed {
		switch st := p.Statement.(type) {
		case *sql.CreateLogicalSource:
			if st.Name.Text == executions {
				list = append(list, p.Text)
			}
		case *sql.CreatePhysicalSource:
			if st.Logical.Text == executions {
				list = append(list, p.Text)
			}
		}
	}
	return strings.Join(list, ";\n")
}

// executions is the stream that every node tells of itself.
const executions = connector.Executions

// reboot starts a server unless one of its name lives.
func (s *streaming) reboot(owner string) {
	if !slices.ContainsFunc(s.lives, func(l *carrier) bool { return l.owner == owner && !l.dead.Load() }) {
		s.boot(owner)
	}
}

// Workers are the nodes as the server sees them.
func (l *carrier) Workers() (list []catalog.Worker) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	for _, n := range l.of.nodes {
		list = append(list, catalog.Worker{Host: n, Slots: nodeSlots, State: l.sees[n]})
	}
	return list
}

// kill ends a server as SIGKILL does: what ran in it runs no more.
func (l *carrier) kill() {
	if l.dead.Swap(true) {
		return
	}
	s := l.of
	s.w.note("the server %s is killed", l.name)
	for _, hear := range l.held {
		hear()
	}
	l.held = nil
	go func() {
		defer close(l.closed)
		<-l.opened
		if l.c != nil {
			_ = l.c.Close(context.Background())
		}
	}()
}

// alive are the servers that clients reach.
func (s *streaming) alive() (list []*carrier) {
	for _, l := range s.lives {
		if !l.dead.Load() && isClosed(l.opened) && l.c != nil {
			list = append(list, l)
		}
	}
	return list
}

// hears lets something reach the server, when it goes on if it hears nothing for the moment.
func (l *carrier) hears(what func()) {
	if l.hangs {
		l.held = append(l.held, what)
		return
	}
	what()
}

// plan decides by the seed what fails, and when.
func (s *streaming) plan() {
	slow := []time.Duration{0, 0, 30 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second}
	s.storeSlow = slow[s.w.chance.IntN(len(slow))]
	s.ambiguous = []int{never, 40, 12, 5}[s.w.chance.IntN(4)]
	s.lateCommits = []int{never, 40, 12, 5}[s.w.chance.IntN(4)]
	s.refuses = []int{never, 8, 3, 2}[s.w.chance.IntN(4)]
	s.broken = []int{never, 12, 5}[s.w.chance.IntN(3)]
	if s.without == lacksFencing || s.without == lacksExpiry { // an owner hears nothing for longer than its lease
		s.w.after(s.w.between(15*time.Second, 25*time.Second), func() {
			l := s.lives[0]
			l.hangs = true
			s.w.after(20*time.Second, l.goesOn)
			s.boot("z")
		})
	}
	s.breaks = []int{never, 20, 6, 3}[s.w.chance.IntN(4)]
	for range s.w.chance.IntN(12) {
		s.w.after(s.w.between(0, 150*time.Second), s.fault)
	}
}

// fault is one of those that pass.
func (s *streaming) fault() {
	if s.calm.Load() {
		return
	}
	l := s.lives[s.w.chance.IntN(len(s.lives))]
	long := []time.Duration{2 * time.Second, 12 * time.Second, 50 * time.Second}[s.w.chance.IntN(3)]
	long = s.w.between(long/2, long)
	switch s.w.chance.IntN(13) {
	case 0:
		s.w.note("the store is away for %v", long)
		s.storeAway = true
		s.w.after(long, func() { s.storeAway = false })
	case 1, 2:
		if l.dead.Load() {
			return
		}
		l.kill()
		owner := l.owner
		if s.w.oneIn(3) {
			owner = string(rune('c' + len(s.lives)))
		}
		s.w.after(long/4, func() { s.reboot(owner) })
	case 3:
		s.w.note("%s is cut off from the store for %v", l.name, long)
		l.cut = true
		s.w.after(long, func() { l.cut = false })
		s.also()
	case 4:
		s.w.note("%s hears nothing from the store for %v", l.name, long)
		l.hangs = true
		s.w.after(long, l.goesOn)
		s.also()
	case 5, 8, 9:
		if len(s.nodes) == 0 {
			return
		}
		if n := s.nodes[s.w.chance.IntN(len(s.nodes))]; s.w.oneIn(2) {
			s.part(l, n, long)
		} else if !s.hosts[n].dead.Load() {
			s.killNode(n, long)
		}
	case 6:
		id := 1 + s.w.chance.Int64N(4)
		s.w.note("the physical source %d is down for %v", id, long)
		s.down[id] = true
		s.w.after(long, func() { delete(s.down, id) })
	case 7:
		s.also()
	case 10: // all nodes at once
		for _, n := range s.nodes {
			s.killNode(n, s.w.between(long/2, long))
		}
	case 11: // many ways at once
		s.w.note("half of the ways break")
		for i, w := range s.ways {
			if s.w.oneIn(2) {
				s.w.after(s.apart(i%4), w.breaks)
			}
		}
	case 12:
		if len(s.nodes) > 0 {
			s.drain(s.nodes[s.w.chance.IntN(len(s.nodes))], long)
		}
	}
}

// also has a second server begin that may take over what the first one has.
func (s *streaming) also() {
	if len(s.alive()) < 3 {
		s.boot(string(rune('c' + len(s.lives))))
	}
}

func (s *streaming) set(l *carrier, node string, state catalog.WorkerState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.sees[node] = state
}

// goesOn lets a server hear again.
func (l *carrier) goesOn() {
	held := l.held
	l.hangs, l.held = false, nil
	for i, hear := range held {
		l.of.w.after(l.of.apart(i), func() { l.hears(hear) })
	}
}

// heal ends all faults.
func (s *streaming) heal() {
	s.w.note("everything is healed")
	s.calm.Store(true)
	s.storeAway, s.storeSlow, s.ambiguous, s.lateCommits, s.refuses = false, 0, never, never, never
	s.breaks = never
	for _, n := range s.nodes {
		s.revive(n)
		s.resume(n)
	}
	clear(s.down)
	for _, l := range s.lives {
		l.cut = false
		l.goesOn()
		for _, n := range s.nodes {
			s.join(l, n)
		}
	}
	if len(s.alive()) == 0 {
		s.reboot(s.lives[len(s.lives)-1].owner)
	}
}

// settled reports whether what the catalog wants is what there is.
func (s *streaming) settled() bool {
	return s.unsettled() == "" && !s.locked && s.asked.Load() == int64(len(s.watchers))
}

// unsettled says what is not as it is wanted.
func (s *streaming) unsettled() string {
	c := s.contents()
	var open []string
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[int64]int{}
	for _, q := range c.Queries {
		switch {
		case q.Desired == catalog.Stopped, q.State != catalog.Running && !q.State.Final():
			open = append(open, fmt.Sprintf("%d %s is %s, wanted %s: %s", q.ID, q.Name, q.State, q.Desired, q.Failure))
		case q.State == catalog.Running:
			for _, f := range q.Fragments {
				if f.State == catalog.FragmentRunning && s.sees(q, f.Host) {
					wanted[q.ID]++
				}
			}
		}
	}
	for _, i := range s.instances {
		if i.lives() {
			wanted[i.query]--
		}
	}
	for id, n := range wanted {
		if n != 0 {
			open = append(open, fmt.Sprintf("of the query %d run %d fragments too few", id, n))
		}
	}
	slices.Sort(open)
	return strings.Join(open, "; ")
}

// contents is the catalog as it is.
func (s *streaming) contents() catalog.Contents {
	c, err := s.keeper.CatalogContents(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// end ends all processes.
func (s *streaming) end() {
	s.ending = true
	s.enough()
	for _, l := range s.lives {
		l.kill()
	}
	for _, n := range s.hosts {
		n.dead.Store(true)
		n.end()
	}
	for _, w := range s.ways {
		w.breaks()
	}
	for _, l := range s.lives {
		s.w.run(time.Hour, func() bool { return isClosed(l.closed) })
	}
	s.w.run(time.Hour, func() bool { return s.going.Load() == 0 })
	s.w.run(time.Hour, func() bool { return s.asked.Load() == 0 })
	s.w.run(time.Minute, func() bool { return false }) // what was asked of nodes gives up by itself
}

// asks has a goroutine ask something, until the end of the world.
func (s *streaming) asks(do func(ctx context.Context)) {
	s.asked.Add(1)
	go func() {
		defer s.asked.Add(-1)
		do(s.asking)
	}()
}
