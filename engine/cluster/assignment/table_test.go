package assignment

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the tables of testdata anew; read them before they are committed")

var (
	begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	key   = Key{Query: "q", Leaf: "l", Work: "w"}
)

// course is a coordinator with the clock of the test.
type course struct {
	*Coordinator
	at   time.Time
	last []Action
	// lost counts how often a node became unreachable.
	lost int
}

func newCourse() *course { return &course{Coordinator: New(DefaultPolicy()), at: begin} }

// apply takes events in, one after the other.
func (c *course) apply(hs ...Event) *course {
	for _, h := range hs {
		c.last = c.Apply(c.at, h)
		if c.changed(NodeUnreachable) {
			c.lost++
		}
	}
	return c
}

// advance lets time pass with a tick at each moment that is due.
func (c *course) advance(d time.Duration) *course {
	end := c.at.Add(d)
	for {
		due := c.Due()
		if due.IsZero() || due.After(end) {
			break
		}
		c.at = due
		c.apply(Tick{})
	}
	c.at = end
	return c.apply(Tick{})
}

func hello(id string, held ...Key) HelloReceived {
	return HelloReceived{
		Node:      id,
		Session:   id + "1",
		Link:      id + ":9090",
		Process:   id + "-p1",
		Accepting: true,
		Works:     held,
	}
}

// events are one of each type, about the node a and the work key.
func events() []Event {
	a, s := "a", "a1"
	return []Event{
		hello(a),
		hello(a, key),
		HelloReceived{Node: a, Session: "a2", Link: "a:9090", Process: "a-p1", Accepting: true},
		HelloReceived{Node: a, Session: "a2", Link: "a:9090", Process: "a-p1", Accepting: true, Works: []Key{key}},
		HelloReceived{Node: a, Session: "a2", Link: "a:9090", Process: "a-p2", Accepting: true},
		HelloReceived{Node: a, Session: "x1", Link: "x:9090", Process: "x-p1", Accepting: true},
		HelloReceived{Node: a, Session: "a2", Link: "a:9090", Process: "a-p2", Accepting: true, Unfit: "too old"},
		StatusReceived{Node: a, Session: s, Accepting: true, Draining: false},
		StatusReceived{Node: a, Session: s, Accepting: false, Draining: false},
		StatusReceived{Node: a, Session: s, Accepting: false, Draining: true},
		StatusReceived{Node: a, Session: "old", Accepting: false, Draining: true},
		PongReceived{a, s, 1},
		PongReceived{a, "old", 1},
		StreamLost{a, s},
		StreamLost{a, "old"},
		Accepted{a, s, key},
		Accepted{a, "old", key},
		Rejected{a, s, key, "no room"},
		Ready{a, s, key, "sum"},
		Ready{a, s, key, "other"},
		Ready{a, "old", key, "sum"},
		Failed{a, s, key, "broken", false},
		Failed{a, s, key, "broken", true},
		Ended{a, s, key},
		Submitted{[]Work{{Key: key, Weight: 2}}, false},
		Submitted{[]Work{{Key: key, Weight: 2}}, true},
		Adopted{[]HeldWork{{"a", Work{Key: key, Weight: 2, OnLoss: StayInPlace}}}},
		CancelRequested{
			key,
		},
		CancelRequested{Key{Query: "q"}},
		Fetched{key, "sum"},
		Fetched{key, "other"},
		FetchFailed{key, "sum",
			"503", false},
		FetchFailed{key, "sum", "404", true},
		FetchFailed{key, "other", "503", false},
		HedgeRequested{key},
		Released{Query: "q"},
		Released{"q", true},
		DrainRequested{a},
		ResumeRequested{a},
		Removed{a},
		Added{a},
		DialStopped{a},
		Tick{},
	}
}

// TestTheTablesHoldEveryMessage: a type that is added has its lines in the tables.
func TestTheTablesHoldEveryMessage(t *testing.T) {
	source, err := os.ReadFile("events.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, h := range events() {
		used[strings.TrimPrefix(fmt.Sprintf("%T", h), "assignment.")] = true
	}
	for _, m := range regexp.MustCompile(`func \((\w+)\) event\(\)`).FindAllStringSubmatch(string(source), -1) {
		if !used[m[1]] {
			t.Errorf("%s is in no table", m[1])
		}
	}
}

// show writes what a message led to.
func show(c *course) string {
	state := "-"
	if n := c.nodes["a"]; n != nil {
		state = string(n.state)
		for _, flag := range []struct {
			set  bool
			name string
		}{{n.session == "", "no stream"}, {!n.accepting, "accepts nothing"}, {n.draining, "drains"}, {n.drainRequested,
			"drain asked"}} {
			if flag.set && n.state != NodeRemoved {
				state += ", " + flag.name
			}
		}
	}
	if w := c.works[key]; w != nil {
		state += " | " + string(w.state)
		if w.node != nil && !w.state.Terminal() {
			state += " on " + w.node.id
		}
		if w.hedgeNode != nil {
			state += ", also on " + w.hedgeNode.id
		}
		if !w.until.IsZero() {
			state += " at most " + w.until.Sub(c.at).String()
		}
	}
	var done []string
	for _, a := range c.last {
		done = append(done, strings.TrimPrefix(fmt.Sprintf("%T%v", a, a), "assignment."))
	}
	if len(done) == 0 {
		return state
	}
	return state + "\n        → " + strings.Join(done, "\n        → ")
}

// table runs every message in every state and compares what comes of it with the
// committed table, which was read line by line.
func table(t *testing.T, file string, names []string, states map[string]func() *course) {
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "## %s: %s\n", name, strings.SplitN(show(states[name]().reset()), "\n", 2)[0])
		for _, h := range events() {
			c := states[name]().reset()
			before := show(c)
			c.apply(h)
			after := show(c)
			if after == before {
				after = "(nothing)"
			}
			fmt.Fprintf(&text, "    %s%v: %s\n", strings.TrimPrefix(fmt.Sprintf("%T", h), "assignment."), h, after)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(text.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(lines)) {
		if i >= len(got) || i >= len(lines) || got[i] != lines[i] {
			t.Fatalf("%s, line %d:\n got %s\nwant %s", file, i+1, strings.Join(got[min(i, len(got)):min(i+3, len(got))], "\n"),
				strings.Join(lines[min(i, len(lines)):min(i+3, len(lines))], "\n"))
		}
	}
}

// reset forgets what the way into a state gave.
func (c *course) reset() *course {
	c.last = nil
	return c
}

func TestEveryMessageInEveryStateOfANode(t *testing.T) {
	states := map[string]func() *course{
		"unknown": newCourse,
		"active":  func() *course { return newCourse().apply(hello("a")) },
		"accepts nothing": func() *course {
			return newCourse().apply(hello("a"), StatusReceived{Node: "a", Session: "a1", Accepting: false, Draining: false})
		},
		"draining": func() *course {
			return newCourse().apply(hello("a"), StatusReceived{Node: "a", Session: "a1", Accepting: false, Draining: true})
		},
		"drain asked":           func() *course { return newCourse().apply(hello("a"), DrainRequested{"a"}) },
		"missed heartbeats":     func() *course { return newCourse().apply(hello("a")).advance(4 * time.Second) },
		"lost its stream":       func() *course { return newCourse().apply(hello("a"), StreamLost{"a", "a1"}) },
		"removed":               func() *course { return newCourse().apply(hello("a"), Removed{"a"}) },
		"active, another there": func() *course { return newCourse().apply(hello("a"), hello("b")) },
	}
	table(t, "testdata/nodes.txt", []string{"unknown", "active", "active, another there", "accepts nothing", "draining",
		"drain asked",
		"missed heartbeats", "lost its stream", "removed"}, states)
}

// workStates are the states of a work on node a, with node b there to take over.
func workStates(on OnLoss) ([]string, map[string]func() *course) {
	w := Work{Key: key, Weight: 2, OnLoss: on}
	begun := func() *course {
		// b comes later, so that the work is on a.
		return newCourse().apply(hello("a"), Submitted{[]Work{w}, false}, hello("b"))
	}
	accepted := func() *course { return begun().apply(Accepted{"a", "a1", key}) }
	ready := func() *course { return accepted().apply(Ready{"a", "a1", key, "sum"}) }
	return []string{"waiting", "assigned", "accepted", "accepted, missed heartbeats", "accepted, stream lost",
			"elsewhere", "late", "late before it was accepted", "late when it was ready", "ready", "fetch failed",
			"done", "failed", "cancelled", "lost"},
		map[string]func() *course{
			"waiting":                     func() *course { return newCourse().apply(Submitted{[]Work{w}, false}) },
			"assigned":                    begun,
			"accepted":                    accepted,
			"accepted, missed heartbeats": func() *course { return accepted().apply(Removed{"b"}).advance(4 * time.Second) },
			"accepted, stream lost":       func() *course { return accepted().apply(Removed{"b"}, StreamLost{"a", "a1"}) },
			"elsewhere": func() *course {
				return newCourse().apply(hello("b"), Submitted{[]Work{w}, false}, Accepted{"b", "b1", key}, hello("a"))
			},
			"late":                        func() *course { return accepted().apply(HedgeRequested{key}, Accepted{"b", "b1", key}) },
			"late before it was accepted": func() *course { return begun().apply(HedgeRequested{key}, Accepted{"b", "b1", key}) },
			"ready":                       ready,
			"late when it was ready":      func() *course { return ready().apply(HedgeRequested{key}, Accepted{"b", "b1", key}) },
			"fetch failed":                func() *course { return ready().apply(FetchFailed{key, "sum", "503", false}) },
			"done":                        func() *course { return ready().apply(Fetched{key, "sum"}) },
			"failed":                      func() *course { return accepted().apply(Failed{"a", "a1", key, "broken", true}) },
			"cancelled":                   func() *course { return accepted().apply(CancelRequested{key}) },
			"lost": func() *course {
				c := accepted()
				c.markLost(c.works[key], "test")
				return c
			},
		}
}

func TestEveryMessageInEveryStateOfAWork(t *testing.T) {
	for file, on := range map[string]OnLoss{"testdata/works_done_again.txt": Reassign,
		"testdata/works_that_stay.txt": StayInPlace} {
		names, states := workStates(on)
		if on == Reassign {
			names = slices.DeleteFunc(names, func(n string) bool { return n == "lost" })
		} else {
			names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "late") })
		}
		table(t, file, names, states)
	}
}
