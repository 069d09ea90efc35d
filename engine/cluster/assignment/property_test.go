package assignment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world follows a coordinator from outside and checks what it asks for.
type world struct {
	*rapid.T
	c   *Coordinator
	now time.Time
	// sessions are the streams that stand, by node; carried says which node was last
	// told to carry a work, and lastContact when a node answered last.
	sessions map[string]string
	stream   int
	works    map[Key]Work
	carried  map[Key]string
	fetching map[Key][]string // all checksums that were ever to be fetched
	ended    map[Key]WorkState
	reported map[Key]int // how often its owner was told an end
	leaves   map[string]time.Time
}

func (w *world) apply(h Event) {
	before := w.goesOn(h)
	for _, a := range w.c.Apply(w.now, h) {
		w.check(h, a)
		if c, ok := a.(Cancel); ok && before {
			w.Fatalf("%T%v: a node that was late goes on, and is told to end %v", h, h, c.Key)
		}
	}
	if before != w.goesOn(h) {
		w.Fatalf("%T%v: the node does not go on any more", h, h)
	}
	w.invariants(h)
}

// goesOn reports whether it is that a node accepts a work which another one was given, too, because it was late.
func (w *world) goesOn(h Event) bool {
	a, ok := h.(Accepted)
	if !ok {
		return false
	}
	x := w.c.works[a.Key]
	return x != nil && x.hedgeNode != nil && x.hedgeNode.id == a.Node && x.hedgeNode.session == a.Session
}

func (w *world) check(h Event, a Action) {
	switch a := a.(type) {
	case Assign:
		n := w.c.nodes[a.Node]
		if n.state != NodeActive || n.session != a.Session || w.sessions[a.Node] != a.Session {
			w.Fatalf("%T%v assigns %v to %s, which is %s on stream %q, not %q", h, h, a.Work.Key, a.Node, n.state,
				w.sessions[a.Node], a.Session)
		}
		if a.Work.Query && !n.acceptsQueries {
			w.Fatalf("%v is of a query, and was given to %s, which takes none", a.Work.Key, a.Node)
		}
		before := w.carried[a.Work.Key]
		if a.Work.OnLoss == StayInPlace && before != "" && before != a.Node {
			w.Fatalf("%v stays on %s and was given to %s too", a.Work.Key, before, a.Node)
		}
		w.carried[a.Work.Key] = a.Node
	case Fetch:
		w.fetching[a.Key] = append(w.fetching[a.Key], a.Checksum)
	case Done:
		if a.Checksum != "" && !slices.Contains(w.fetching[a.Key], a.Checksum) {
			w.Fatalf("%v is done with %q, and %q were fetched", a.Key, a.Checksum, w.fetching[a.Key])
		}
		w.reported[a.Key]++
	case Abandoned:
		w.reported[a.Key]++
	case Lost:
		w.reported[a.Key]++
		if _, greeted := h.(HelloReceived); !greeted && w.now.Before(w.leaves[a.Node].Add(w.c.policy.Hold)) {
			w.Fatalf("%v is lost %v after %s was left", a.Key, w.now.Sub(w.leaves[a.Node]), a.Node)
		}
	case NodeChanged:
		if a.To == NodeUnreachable {
			w.leaves[a.Node] = w.now
		}
		if a.To == NodeRemoved {
			w.leaves[a.Node] = w.now
			delete(w.sessions, a.Node)
		}
	}
	for key, n := range w.reported {
		if n > 1 {
			w.Fatalf("the end of %v was told %d times", key, n)
		}
	}
}

// invariants hold after everything.
func (w *world) invariants(h Event) {
	used := map[string]int{}
	for k, x := range w.c.works {
		if was, ok := w.ended[k]; ok && was != x.state {
			w.Fatalf("%T%v: %v was %s and is %s", h, h, k, was, x.state)
		}
		if x.state.Terminal() {
			w.ended[k] = x.state
		}
		if x.state == WorkAssigned || x.state == WorkAccepted {
			used[x.node.id] += x.Weight
		}
		if x.state == WorkWaiting && x.node != nil {
			w.Fatalf("%v waits on %s", k, x.node.id)
		}
		if n := x.hedgeNode; n != nil && (n == x.node || n.session == "" || n.state != NodeActive ||
			x.state != WorkWaiting && x.state != WorkAssigned && x.state != WorkAccepted) {
			w.Fatalf("%T%v: %v is %s, and %s, which is %s on stream %q, is to go on with it", h, h, k, x.state, n.id, n.state,
				n.session)
		}
	}
	for _, n := range w.c.nodes {
		if n.used != used[n.id] {
			w.Fatalf("%T%v: %s is said to carry %d, and carries %d", h, h, n.id, n.used, used[n.id])
		}
		if n.capacity != 0 && n.used > n.capacity {
			w.Fatalf("%s carries %d of %d", n.id, n.used, n.capacity)
		}
	}
	if _, ticked := h.(Tick); ticked {
		if due := w.c.Due(); !due.IsZero() && !due.After(w.now) {
			w.Fatalf("after a tick at %v the next is due at %v", w.now, due)
		}
	}
}

func (w *world) greet(id string, held []Key) {
	w.stream++
	s := fmt.Sprintf("%s-%d", id, w.stream)
	if n := w.c.nodes[id]; n == nil || n.state != NodeRemoved {
		w.sessions[id] = s
	}
	// The capacity of a node does not change.
	w.apply(HelloReceived{Node: id, Session: s, Link: id, Process: "p", Capacity: 10, Accepting: true, Works: held,
		AcceptsQueries: id != "c"})
}

func newWorld(t *rapid.T) *world {
	return &world{T: t, c: New(DefaultPolicy()), now: begin, sessions: map[string]string{}, works: map[Key]Work{},
		carried:  map[Key]string{},
		fetching: map[Key][]string{}, ended: map[Key]WorkState{}, reported: map[Key]int{}, leaves: map[string]time.Time{}}
}

// TestCoursesKeepTheInvariants plays random courses, old messages among them.
func TestCoursesKeepTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		ids := []string{"a", "b", "c"}
		var keys []Key
		node := func(t *rapid.T) (id, session string) {
			id = rapid.SampledFrom(ids).Draw(t, "node")
			session = w.sessions[id]
			if rapid.IntRange(0, 9).Draw(t, "old") == 0 {
				session = "old"
			}
			return id, session
		}
		some := func(t *rapid.T) Key {
			if len(keys) == 0 {
				return Key{Query: "unknown"}
			}
			return rapid.SampledFrom(keys).Draw(t, "key")
		}
		sum := func(t *rapid.T) string { return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "sum") }
		t.Repeat(map[string]func(*rapid.T){
			"greet": func(t *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(t, "node")
				var held []Key
				for _, k := range keys {
					if w.carried[k] == id && rapid.Bool().Draw(t, "held") {
						held = append(held, k)
					}
				}
				w.greet(id, held)
			},
			"report": func(t *rapid.T) {
				id, s := node(t)
				w.apply(StatusReceived{Node: id, Session: s, Accepting: rapid.Bool().Draw(t, "accepts"),
					Draining: rapid.IntRange(0, 5).Draw(t, "drains") == 0})
			},
			"answer": func(t *rapid.T) {
				id, s := node(t)
				n := w.c.nodes[id]
				if n != nil && n.seq > 0 {
					w.apply(PongReceived{id, s, rapid.Int64Range(max(1, n.seq-4), n.seq).Draw(t, "seq")})
				}
			},
			"lose": func(t *rapid.T) {
				id, s := node(t)
				if s == w.sessions[id] {
					delete(w.sessions, id)
				}
				w.apply(StreamLost{id, s})
			},
			"accept": func(t *rapid.T) { id, s := node(t); w.apply(Accepted{id, s, some(t)}) },
			"reject": func(t *rapid.T) { id, s := node(t); w.apply(Rejected{id, s, some(t), "busy"}) },
			"ready":  func(t *rapid.T) { id, s := node(t); w.apply(Ready{id, s, some(t), sum(t)}) },
			"fail": func(t *rapid.T) {
				id, s := node(t)
				w.apply(Failed{id, s, some(t), "no", rapid.Bool().Draw(t, "final")})
			},
			"end": func(t *rapid.T) {
				id, s := node(t)
				if k := some(t); len(w.fetching[k]) == 0 {
					w.apply(Ended{id, s, k})
				}
			},
			"fetched": func(t *rapid.T) { w.apply(Fetched{some(t), sum(t)}) },
			"fetch failed": func(t *rapid.T) {
				w.apply(FetchFailed{some(t), sum(t), "503", rapid.Bool().Draw(t, "gone")})
			},
			"late": func(t *rapid.T) { w.apply(HedgeRequested{some(t)}) },
			"submit": func(t *rapid.T) {
				var works []Work
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					k := Key{Query: rapid.SampledFrom([]string{"q", "r"}).Draw(t, "query"), Work: fmt.Sprint(len(keys))}
					keys = append(keys, k)
					works = append(works, Work{Key: k, Weight: rapid.IntRange(0, 6).Draw(t, "weight"),
						OnLoss: OnLoss(rapid.IntRange(0, 1).Draw(t, "loss")), Query: rapid.Bool().Draw(t, "of a query")})
					w.works[k] = works[len(works)-1]
				}
				w.apply(Submitted{works, rapid.Bool().Draw(t, "together")})
			},
			"cancel": func(t *rapid.T) { w.apply(CancelRequested{some(t)}) },
			"drain":  func(t *rapid.T) { w.apply(DrainRequested{rapid.SampledFrom(ids).Draw(t, "node")}) },
			"resume": func(t *rapid.T) { w.apply(ResumeRequested{rapid.SampledFrom(ids).Draw(t, "node")}) },
			"remove": func(t *rapid.T) { w.apply(Removed{rapid.SampledFrom(ids).Draw(t, "node")}) },
			"add":    func(t *rapid.T) { w.apply(Added{rapid.SampledFrom(ids).Draw(t, "node")}) },
			"no way": func(t *rapid.T) { w.apply(DialStopped{rapid.SampledFrom(ids).Draw(t, "node")}) },
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "wait")))
				w.apply(Tick{})
			},
		})
		w.heal()
	})
}

// heal brings healthy nodes and has them finish what they are given: everything then ends.
func (w *world) heal() {
	for _, id := range []string{"a", "b", "c"} {
		delete(w.sessions, id)
		w.apply(Removed{id})
	}
	w.now = w.now.Add(2 * w.c.policy.Hold)
	w.apply(Tick{})
	w.greet("d", nil)
	for range 200 {
		w.now = w.now.Add(w.c.policy.RetryDelay * 40)
		w.apply(Tick{})
		w.apply(PongReceived{"d", w.sessions["d"], w.c.nodes["d"].seq})
		for k, x := range w.c.works {
			switch x.state {
			case WorkAssigned:
				w.apply(Accepted{"d", w.sessions["d"], k})
			case WorkAccepted:
				w.apply(Ready{"d", w.sessions["d"], k, "healed"})
			case WorkReady:
				w.apply(Fetched{k, x.checksum})
			}
		}
	}
	for k, x := range w.c.works {
		if !x.state.Terminal() {
			w.Fatalf("%v is %s although a healthy node is there", k, x.state)
		}
	}
}

// TestANodeThatLeavesMovesOnlyItsOwn: rendezvous hashing.
func TestANodeThatLeavesMovesOnlyItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 9).Draw(t, "nodes")
		gone := fmt.Sprint("n", rapid.IntRange(0, n-1).Draw(t, "gone"))
		place := func(skip string) map[Key]string {
			c := newCourse()
			for i := range n {
				if id := fmt.Sprint("n", i); id != skip {
					c.apply(hello(id))
				}
			}
			var works []Work
			for i := range 200 {
				works = append(works, Work{Key: Key{"q", "l", fmt.Sprint(i)}})
			}
			c.apply(Submitted{works, false})
			at := map[Key]string{}
			for _, a := range c.last {
				if a, ok := a.(Assign); ok {
					at[a.Work.Key] = a.Node
				}
			}
			return at
		}
		with, without := place(""), place(gone)
		moved := 0
		for k, node := range with {
			if node == gone {
				moved++
			} else if without[k] != node {
				t.Fatalf("%v moved from %s to %s, and only %s left", k, node, without[k], gone)
			}
		}
		// An even spread gives each 200/n; a skewed hash would give one node most of it.
		if moved > 3*200/n {
			t.Fatalf("%s had %d of 200 works among %d nodes", gone, moved, n)
		}
	})
}

// TestWhatIsPlacedTogetherIsSpreadEvenly, or not placed at all.
func TestWhatIsPlacedTogetherIsSpreadEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "nodes")
		count := rapid.IntRange(1, 40).Draw(t, "works")
		capacity := rapid.IntRange(0, 12).Draw(t, "capacity")
		c := newCourse()
		for i := range n {
			h := hello(fmt.Sprint("n", i))
			h.Capacity = capacity
			c.apply(h)
		}
		var works []Work
		for i := range count {
			works = append(works, Work{Key: Key{"run", "", fmt.Sprint("worker-", i)}, Weight: 1, OnLoss: StayInPlace})
		}
		c.apply(Submitted{works, true})
		got := map[string]int{}
		for _, a := range c.last {
			switch a := a.(type) {
			case Assign:
				got[a.Node]++
			case NoCapacity:
				if capacity == 0 || count <= n*capacity {
					t.Fatalf("%d works do not fit on %d nodes of %d: %s", count, n, capacity, a.Reason)
				}
				if len(c.works) != 0 || len(c.last) != 1 {
					t.Fatalf("nothing was placed, and %d works are there", len(c.works))
				}
				return
			}
		}
		if capacity != 0 && count > n*capacity {
			t.Fatalf("%d works on %d nodes of %d were placed: %v", count, n, capacity, got)
		}
		most, least := 0, count
		for i := range n {
			most, least = max(most, got[fmt.Sprint("n", i)]), min(least, got[fmt.Sprint("n", i)])
		}
		if most-least > 1 {
			t.Fatalf("unevenly placed: %v", got)
		}
	})
}

func TestTheTimeoutFollowsTheRoundTrip(t *testing.T) {
	p := DefaultPolicy()
	rapid.Check(t, func(t *rapid.T) {
		a := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "a"))
		b := time.Duration(rapid.Int64Range(int64(a), int64(1<<62)).Draw(t, "b"))
		x, y := p.timeout(a), p.timeout(b)
		if x < p.MinTimeout || y > p.MaxTimeout || x > y {
			t.Fatalf("%v gives %v, %v gives %v", a, x, b, y)
		}
		if want := 3*a + p.BaseTimeout; want >= p.MinTimeout && want < p.MaxTimeout && x != want {
			t.Fatalf("%v gives %v, want %v", a, x, want)
		}
	})
}
