package rules_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/rules"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// farNode is a node that runs fragments, or does not.
type farNode struct {
	protocol.ServerEnd // which nobody asks for

	mu sync.Mutex
	// why it refuses; nil where it does not. hangs has it not answer at all.
	why   error
	hangs bool
	asked int
	links []*farLink
	ends  int64 // that of its links
}

func (n *farNode) RunFragment(ctx context.Context, _ protocol.FragmentKey, _ []byte) (protocol.FragmentLink, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if n.hangs {
		n.mu.Unlock()
		<-ctx.Done()
		n.mu.Lock()
		return nil, ctx.Err()
	}
	if n.why != nil {
		return nil, n.why
	}
	l := &farLink{words: make(chan fragment.Message, 4), lost: make(chan struct{}), ends: n.ends}
	l.words <- fragment.Message{Kind: fragment.Ready}
	n.links = append(n.links, l)
	return l, nil
}

func (*farNode) StopFragment(context.Context, protocol.FragmentKey) error { return nil }
func (*farNode) ListFragments(context.Context, string, int64) (protocol.FragmentList, error) {
	return protocol.FragmentList{}, nil
}

// is has it refuse from now on, and lose what it runs, or be as it should.
func (n *farNode) is(why error, hangs bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.why, n.hangs = why, hangs; why != nil || hangs {
		for _, l := range n.links {
			l.lose()
		}
		n.links = nil
	}
}

type farLink struct {
	words chan fragment.Message
	lost  chan struct{}
	once  sync.Once
	// ends: told to drain, it ends, and says a while later that it has read so many rows.
	ends int64
}

func (l *farLink) lose() { l.once.Do(func() { close(l.lost) }) }

func (l *farLink) Close() error { l.lose(); return nil }

func (l *farLink) Send(_ context.Context, w fragment.Message) error {
	if w.Kind != fragment.Drain || l.ends == 0 {
		return nil
	}
	out := flow.NewWriter(func(frame []byte) error {
		l.words <- fragment.Message{Kind: fragment.Frame, Body: frame}
		return nil
	})
	if err := errors.Join(out.Ended(0, 1), out.Sync()); err != nil {
		return err
	}
	go func() {
		time.Sleep(time.Second)
		e := fragment.EndReport{}
		e.Counts.In = l.ends
		body, _ := json.Marshal(e)
		l.words <- fragment.Message{Kind: fragment.End, Body: body}
	}()
	return nil
}

func (l *farLink) Receive(ctx context.Context) (fragment.Message, error) {
	select {
	case w := <-l.words:
		return w, nil
	case <-l.lost:
		return fragment.Message{}, fragment.ErrLost
	case <-ctx.Done():
		return fragment.Message{}, ctx.Err()
	}
}

// onFar has the rule slow over a node, and lets seconds pass in which the run has a run worker there, or not. The clock
// of the run is off by so much.
func onFar(t *testing.T, n *farNode, off time.Duration) (*rules.Set, func(n int, there bool) engine.RuleState) {
	return onFarWith(t, n, off, slow, &executions.Fanout{})
}

// onFarWith is onFar with a rule over what an exchange tells.
func onFarWith(t *testing.T, n *farNode, off time.Duration, when string, e *executions.Fanout) (s *rules.Set,
	seconds func(n int, there bool) engine.RuleState) {
	o := beside(e, "r")
	o.Account = &system.Account{}
	o.Nodes = func(id string) protocol.FragmentRunner {
		if id != "far" {
			t.Errorf("it asks for the node %s", id)
		}
		return n
	}
	s = rules.Start([]engine.Rule{{Name: "slow", When: when, Do: engine.RuleStop}}, nil, o)
	return s, func(n int, there bool) engine.RuleState {
		for range n {
			rows := []store.WorkerRow{{RunID: "r", WorkerID: "w0", NodeID: "local", Status: engine.WorkerRunning,
				LastHeartbeat: time.Now().Add(off)}}
			if there {
				far := rows[0]
				far.WorkerID, far.NodeID = "w1", "far"
				rows = append(rows, far)
			}
			s.Tick(&store.Tick{RunID: "r", Workers: rows}, time.Now().Add(off))
			time.Sleep(time.Second)
		}
		return s.States()[0]
	}
}

var errBusy = errors.New("it takes no more fragments")

// TestARuleThatLacksANodeFailsAfterAWhile: a node that refuses its part, or does not answer, has twenty seconds; then
// the rule fails, and says which node it lacks, why, and what to read instead.
func TestARuleThatLacksANodeFailsAfterAWhile(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := &farNode{}
			n.is(errBusy, hangs)
			s, seconds := onFar(t, n, 0)
			defer s.End(false)
			if r := seconds(19, true); r.Status != engine.RuleRunning {
				t.Fatalf("hangs %t: after 19 s %+v", hangs, r)
			}
			r := seconds(5, true)
			why := "the node far: " + errBusy.Error()
			if hangs {
				why = "the node far: "
			}
			if r.Status != engine.RuleFailed || !strings.Contains(r.Failure, "PlacementError: the rule does not have the "+
				"executions of "+why) || !strings.Contains(r.Failure, "worker_statistics") {
				t.Errorf("hangs %t: after 24 s %+v", hangs, r)
			}
			if n.asked < 10 != hangs {
				t.Errorf("hangs %t: it was asked %d times", hangs, n.asked)
			}
		})
	}
}

// TestANodeThatComesBackHasItsTwentySecondsAnew: one that was lost, and comes back when the run has been without it for
// a while, may refuse for a moment. What it lacked before does not count, nor for another loss.
func TestANodeThatComesBackHasItsTwentySecondsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &farNode{}
		s, seconds := onFar(t, n, 0)
		defer s.End(false)
		for range 3 {
			if r := seconds(30, true); r.Status != engine.RuleRunning {
				t.Fatalf("%+v", r)
			}
			n.is(errBusy, false)
			if r := seconds(60, false); r.Status != engine.RuleRunning {
				t.Fatalf("without the node: %+v", r)
			}
			if r := seconds(10, true); r.Status != engine.RuleRunning {
				t.Fatalf("when it is back, and busy: %+v", r)
			}
			n.is(nil, false)
		}
		before := n.asked
		seconds(30, true)
		if got := n.asked - before; got != 1 {
			t.Errorf("it was asked %d times", got)
		}
	})
}

// TestTheClockOfARunMayBeOff: who has taken a run over goes on by the clock of the server before. Its nodes are there
// nonetheless, and one that was not heard of is not.
func TestTheClockOfARunMayBeOff(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			n := &farNode{}
			s, seconds := onFar(t, n, off)
			defer s.End(false)
			seconds(3, true)
			if n.asked != 1 {
				t.Errorf("off by %v it asked the node %d times", off, n.asked)
			}
			n.is(errBusy, false)
			s.SetNodes([]store.WorkerRow{{RunID: "r", WorkerID: "w2", NodeID: "gone", Status: engine.WorkerRunning,
				LastHeartbeat: time.Now().Add(off - 6*time.Second)}}, time.Now().Add(off))
			seconds(3, false) // or it would be asked for
		})
	}
}

// TestARuleThatHasNotReadAllFails: when the run is over and a node has not told all of its part in time, what is in the
// rest is not known, and the rule does not look as if nothing was. A process that ends says nothing of the kind.
func TestARuleThatHasNotReadAllFails(t *testing.T) {
	for over, want := range map[bool]engine.RuleStatus{true: engine.RuleFailed, false: engine.RuleEnded} {
		synctest.Test(t, func(t *testing.T) {
			s, seconds := onFar(t, &farNode{}, 0)
			seconds(3, true)
			s.End(over)
			if r := s.States()[0]; r.Status != want || strings.HasPrefix(r.Failure, rules.Unread) != over {
				t.Errorf("over: %t, %+v", over, r)
			}
		})
	}
}

// TestARuleHasReadWhatItsNodesHaveRead: how many rows those were comes behind the last of what they came to, and a rule
// that had not waited for it was ENDED over fewer than there are.
func TestARuleHasReadWhatItsNodesHaveRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, seconds := onFar(t, &farNode{ends: 89}, 0)
		seconds(3, true)
		s.End(true)
		if r := s.States()[0]; r.Status != engine.RuleEnded || r.In != 89 {
			t.Errorf("%+v", r)
		}
	})
}

// TestWhatHasTriggeredStaysSo: a rule that loses a node afterwards has stopped its run nonetheless, and does not say
// that the run goes on.
func TestWhatHasTriggeredStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, e := &farNode{}, &executions.Fanout{}
		s, seconds := onFarWith(t, n, 0, "SELECT runId FROM executions WHERE latencyMs > 200", e)
		defer s.End(false)
		w := opened(e, "r", "w0")
		defer w.tap.Close()
		seconds(2, true)
		w.record(3, 300*time.Millisecond)
		if r := seconds(2, true); r.Status != engine.RuleRunning || r.Out != 3 {
			t.Fatalf("%+v", r)
		}
		s.TakeMessages(false)
		n.is(errBusy, false)
		if r := seconds(30, true); r.Status != engine.RuleTriggered || r.Failure != "" || n.asked < 10 {
			t.Errorf("it was asked for %d times: %+v", n.asked, r)
		}
		if said := s.TakeMessages(false); len(said) > 0 {
			t.Errorf("%+v", said)
		}
	})
}
