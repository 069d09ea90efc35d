package assignment

import (
	"testing"
	"time"
)

func (c *course) changed(to NodeState) bool {
	for _, a := range c.last {
		if a, ok := a.(NodeChanged); ok && a.To == to {
			return true
		}
	}
	return false
}

// answers has the node answer what it is asked for a while, each time after rtt.
func (c *course) answers(id, session string, d, rtt time.Duration) *course {
	type answer struct {
		at  time.Time
		seq int64
	}
	var open []answer
	end := c.at.Add(d)
	ask := func() {
		for _, a := range c.last {
			if p, ok := a.(Ping); ok {
				open = append(open, answer{c.at.Add(rtt), p.Seq})
			}
		}
	}
	ask()
	for {
		next := c.Due()
		if len(open) > 0 && open[0].at.Before(next) {
			next = open[0].at
		}
		if next.After(end) {
			c.at = end
			return c
		}
		c.at = next
		if len(open) > 0 && !open[0].at.After(next) {
			c.apply(PongReceived{id, session, open[0].seq})
			open = open[1:]
		} else {
			c.apply(Tick{})
		}
		ask()
	}
}

func TestASilentNodeIsNoticedWithinFourSeconds(t *testing.T) {
	c := newCourse().apply(hello("a")).answers("a", "a1", 10*time.Second, time.Millisecond)
	// The last answer is up to a heartbeat old when it falls silent.
	silent := c.at
	for !c.changed(NodeUnreachable) {
		c.at = c.Due()
		c.apply(Tick{})
	}
	if took := c.at.Sub(silent); took < 2*time.Second || took > 4*time.Second {
		t.Fatalf("it was noticed after %v", took)
	}
}

func TestALinkThatBecomesSlowLosesNoNode(t *testing.T) {
	c := newCourse().apply(hello("a")).answers("a", "a1", 10*time.Second, time.Millisecond)
	// Each answer now takes 2.2 s: the first is late by the old timeout, the ones after by none.
	c.answers("a", "a1", time.Minute, 2200*time.Millisecond)
	if n := c.nodes["a"]; n.state != NodeActive || n.misses > 0 {
		t.Fatalf("the node is %s with %d misses", n.state, n.misses)
	}
	if got := c.policy.timeout(c.nodes["a"].rtt); got != 7100*time.Millisecond {
		t.Fatalf("the timeout is %v after a round trip of %v", got, c.nodes["a"].rtt)
	}
}

func TestAnUnreachableNodeIsProbedEveryTenSeconds(t *testing.T) {
	c := newCourse().apply(hello("a"), StreamLost{"a", "a1"})
	var probes []time.Duration
	for c.at.Before(begin.Add(time.Minute)) {
		c.at = c.Due()
		c.apply(Tick{})
		for _, a := range c.last {
			if _, ok := a.(Probe); ok {
				probes = append(probes, c.at.Sub(begin))
			}
		}
	}
	for i, at := range probes {
		if at != time.Duration(i+1)*10*time.Second {
			t.Fatalf("probes at %v", probes)
		}
	}
	if len(probes) != 6 {
		t.Fatalf("%d probes in a minute", len(probes))
	}
}

func TestRetriesPauseWhileTheNodeIsAway(t *testing.T) {
	w := Work{Key: key, OnLoss: StayInPlace}
	c := newCourse().apply(hello("a"), Submitted{[]Work{w}, false}, Accepted{"a", "a1", key}, Ready{"a", "a1", key, "sum"},
		FetchFailed{key, "sum", "503", false}, StreamLost{"a", "a1"})
	fetches := func() (n int) {
		for _, a := range c.last {
			if _, ok := a.(Fetch); ok {
				n++
			}
		}
		return n
	}
	for range 5 {
		c.at = c.Due()
		if c.apply(Tick{}); fetches() > 0 {
			t.Fatal("fetched from a node that is away")
		}
	}
	back := hello("a", key)
	back.Session = "a2"
	if c.apply(back); fetches() != 1 {
		t.Fatalf("%d fetches when it came back", fetches())
	}
}

func TestARestartedNodeHasLostWhatItCarried(t *testing.T) {
	c := newCourse().apply(hello("a"), Submitted{[]Work{{Key: key, OnLoss: StayInPlace}}, false}, Accepted{"a", "a1", key},
		StreamLost{"a", "a1"})
	other := HelloReceived{Node: "a", Session: "a2", Link: "elsewhere:9090", Process: "p2", Accepting: true}
	// The one before may go on at its place, out of sight: nothing is lost before it must have stopped.
	if c.apply(other); c.works[key].state != WorkAccepted {
		t.Fatalf("with the same identity at another place the work is %s", c.works[key].state)
	}
	c.answers("a", "a2", DefaultPolicy().Hold-time.Second, time.Millisecond)
	if c.works[key].state != WorkAccepted {
		t.Fatalf("before the node must have stopped the work is %s", c.works[key].state)
	}
	c.answers("a", "a2", 2*time.Second, time.Millisecond)
	if c.works[key].state != WorkLost {
		t.Fatalf("after the node must have stopped the work is %s", c.works[key].state)
	}
}

// TestANodeThatStillReportsMayBearItsLoadLonger: what it reports is acknowledged, and that may
// reach it although it answers nothing; its minute begins anew.
func TestANodeThatStillReportsMayBearItsLoadLonger(t *testing.T) {
	c := newCourse().apply(hello("a"), Submitted{[]Work{{Key: key, Weight: 1, OnLoss: StayInPlace}}, false},
		Accepted{"a", "a1", key}).advance(10 * time.Second)
	if !c.works[key].until.After(c.at) || c.nodes["a"].state != NodeUnreachable {
		t.Fatalf("%+v", c.nodes["a"])
	}
	c.advance(
		40 * time.Second,
	).apply(
		StatusReceived{Node: "a", Session: "a1", Accepting: true, Draining: false},
	).advance(
		60 * time.Second,
	)
	if s := c.works[key].state; s != WorkAccepted {
		t.Errorf("%s a minute after its node reported", s)
	}
	if c.advance(6 * time.Second); c.works[key].state != WorkLost {
		t.Errorf("%s 66 s after its node reported", c.works[key].state)
	}
}

// TestWhatANodeMissedOfBeingResumedIsSaidAgain: it was away then, or the stream broke on the way.
func TestWhatANodeMissedOfBeingResumedIsSaidAgain(t *testing.T) {
	resumes := func(c *course) (n int) {
		for _, a := range c.out {
			if _, ok := a.(Resume); ok {
				n++
			}
		}
		return n
	}
	again := HelloReceived{Node: "a", Session: "a2", Link: "here:9090", Process: "p", Accepting: true}
	away := newCourse().apply(hello("a"), DrainRequested{"a"}, StreamLost{"a", "a1"}, ResumeRequested{"a"})
	if away.apply(again); resumes(away) != 1 {
		t.Error("a node that was resumed while it was away is not told")
	}
	broken := newCourse().apply(
		hello("a"),
		DrainRequested{"a"},
		StatusReceived{Node: "a", Session: "a1", Accepting: true, Draining: true},
		ResumeRequested{"a"},
		StreamLost{"a", "a1"},
	)
	if broken.apply(again); resumes(broken) != 1 {
		t.Error("what may have been lost with the stream is not said again")
	}
	knows := newCourse().apply(
		hello("a"),
		DrainRequested{"a"},
		ResumeRequested{"a"},
		StatusReceived{Node: "a", Session: "a1", Accepting: true, Draining: false},
		StreamLost{"a", "a1"},
	)
	if knows.apply(again); resumes(knows) != 0 {
		t.Error("a node that knows is told again")
	}
	drained := newCourse().apply(
		hello("a"),
		DrainRequested{"a"},
		ResumeRequested{"a"},
		DrainRequested{"a"},
		StreamLost{"a", "a1"},
	)
	if drained.apply(again); resumes(drained) != 0 {
		t.Error("a node that is drained is resumed")
	}
}

// TestANodeBehindALongWayIsNotLostAtItsBeginning: the round trip of its stream's opening counts until the first answer.
func TestANodeBehindALongWayIsNotLostAtItsBeginning(t *testing.T) {
	for _, rtt := range []time.Duration{0, 400 * time.Millisecond, 4500 * time.Millisecond} {
		h := hello("a")
		h.RTT = rtt
		c := newCourse().apply(h)
		c.answers("a", "a1", time.Minute, max(rtt, time.Millisecond))
		if c.lost > 0 || c.nodes["a"].misses > 0 {
			t.Errorf("after %v: lost %d times, %d misses", rtt, c.lost, c.nodes["a"].misses)
		}
	}
}

// TestAWorkCanBeLateAgain: whatever has become of the node that was late first.
func TestAWorkCanBeLateAgain(t *testing.T) {
	restarted := hello("a")
	restarted.Session, restarted.Process = "a2", "a-p2"
	for name, becomes := range map[string][]Event{
		"it fails":        {Failed{"a", "a1", key, "broken", false}},
		"it rejects":      {Rejected{"a", "a1", key, "draining"}},
		"it is lost":      {StreamLost{"a", "a1"}},
		"it is removed":   {Removed{"a"}},
		"it restarts":     {restarted},
		"it is out there": {StreamLost{"a", "a1"}, restarted},
	} {
		c := newCourse().apply(hello("a"), Submitted{[]Work{{Key: key, OnLoss: Reassign}}, false}, Accepted{"a", "a1", key},
			hello("b"), HedgeRequested{key}, Accepted{"b", "b1", key})
		if w := c.works[key]; w.node.id != "b" || w.hedgeNode == nil {
			t.Fatalf("late, it is on %s", w.node.id)
		}
		c.apply(becomes...).apply(hello("c"))
		if c.apply(
			HedgeRequested{key},
		); c.works[key].node.id == "b" || c.works[key].hedgeNode == nil ||
			c.works[key].hedgeNode.id != "b" {
			t.Errorf("%s: late again, it stays on %s", name, c.works[key].node.id)
		}
	}
	// A failure that would come anywhere is the end of both.
	c := newCourse().apply(hello("a"), Submitted{[]Work{{Key: key, OnLoss: Reassign}}, false}, Accepted{"a", "a1", key},
		hello("b"), HedgeRequested{key}, Accepted{"b", "b1", key}, Failed{"a", "a1", key, "broken", true})
	if c.works[key].state != WorkFailed || len(c.last) != 2 {
		t.Errorf("it is %s, %v", c.works[key].state, c.last)
	}
}

// TestWhatDoesNotComeIsDoneByAnother: a node that was cut off after it announced what it made is not waited for. Of its
// answer and the other's the first counts.
func TestWhatDoesNotComeIsDoneByAnother(t *testing.T) {
	for name, then := range map[string]struct {
		happens []Event
		done    string // by which node
	}{
		"the other's comes": {[]Event{Ready{"b", "b1", key, "other"}, Fetched{key, "other"}}, "b"},
		"it comes after all, before the other has begun": {[]Event{Fetched{key, "sum"}}, "a"},
		"it comes after all, before the other's":         {[]Event{Accepted{"b", "b1", key}, Fetched{key, "sum"}}, "a"},
		"it does not come": {[]Event{FetchFailed{key, "sum", "timeout", false}, Accepted{"b", "b1", key},
			Fetched{key, "sum"}, Ready{"b", "b1", key, "other"}, Fetched{key, "other"}}, "b"},
		"it comes too late":  {[]Event{Ready{"b", "b1", key, "other"}, Fetched{key, "sum"}, Fetched{key, "other"}}, "b"},
		"both made the same": {[]Event{Ready{"b", "b1", key, "sum"}, Fetched{key, "sum"}}, "b"},
	} {
		c := newCourse().apply(hello("a"), Submitted{[]Work{{Key: key, OnLoss: Reassign}}, false}, Accepted{"a", "a1", key},
			hello("b"), Ready{"a", "a1", key, "sum"}, HedgeRequested{key})
		if w := c.works[key]; w.state != WorkAssigned || w.node.id != "b" || w.hedgeNode == nil {
			t.Fatalf("%s: late, it is %s on %s", name, w.state, w.node.id)
		}
		for _, h := range then.happens {
			if c.works[key].state == WorkDone {
				t.Errorf("%s: it is done before %T%v", name, h, h)
			}
			c.apply(h)
		}
		if w := c.works[key]; w.state != WorkDone || w.node.id != then.done || w.hedgeNode != nil || c.nodes["b"].used != 0 {
			t.Errorf("%s: it is %s by %s, %+v", name, w.state, w.node.id, w)
		}
	}
	// Where there is no other node, it is waited for.
	c := newCourse().apply(hello("a"), Submitted{[]Work{{Key: key, OnLoss: Reassign}}, false}, Accepted{"a", "a1", key},
		Ready{"a", "a1", key, "sum"}, HedgeRequested{key})
	if w := c.works[key]; w.state != WorkReady {
		t.Errorf("alone, it is %s", w.state)
	}
}

// TestWhatANodeHasLostIsDoneByAnother: a node whose disk loses what it makes would lose it again, and one that answers
// twice with an error may do so for ever. Where there is no other it tries once more.
func TestWhatANodeHasLostIsDoneByAnother(t *testing.T) {
	lost := []Event{FetchFailed{key, "sum", "404", true}}
	refused := []Event{FetchFailed{key, "sum", "500", false}, FetchFailed{key, "sum", "500", false}}
	for _, nodes := range [][]string{{"a", "b"}, {"a"}} {
		for _, then := range [][]Event{lost, refused} {
			c := newCourse()
			for _, id := range nodes {
				c.apply(hello(id))
			}
			assigned := func() string {
				t.Helper()
				for _, a := range c.last {
					if a, ok := a.(Assign); ok {
						return a.Node
					}
				}
				t.Fatalf("nobody does it after %+v: %+v", then, c.last)
				return ""
			}
			c.apply(Submitted{[]Work{{Key: key, OnLoss: Reassign}}, false})
			first := assigned()
			session := first + "1"
			c.apply(Accepted{first, session, key}, Ready{first, session, key, "sum"})
			c.apply(then...)
			if second := assigned(); (second == first) != (len(nodes) == 1) {
				t.Errorf("of %v it was done by %s and after %+v by %s", nodes, first, then, second)
			}
		}
	}
}
