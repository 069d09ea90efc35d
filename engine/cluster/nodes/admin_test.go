package nodes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/store/fake"
)

// told is a fleet that notes what it is told.
type told struct {
	mu    sync.Mutex
	said  []string
	nodes []nodes.NodeInfo
	watch func(nodes.NodeEvent)
}

func (f *told) note(what, id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, what+" "+id)
	if f.watch != nil {
		f.watch(nodes.NodeEvent{NodeID: id, Kind: nodes.NodeChangedState}) // as a fleet does, before it returns
	}
}

func (f *told) Nodes() []nodes.NodeInfo { return f.nodes }
func (f *told) Drain(id string)         { f.note("drain", id) }
func (f *told) Resume(id string)        { f.note("resume", id) }
func (f *told) Remove(id string)        { f.note("remove", id) }
func (f *told) Admit(id string)         { f.note("admit", id) }

func (f *told) want(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.said, want) {
		t.Errorf("told %v, want %v", f.said, want)
	}
	f.said = nil
}

// TestADesiredStateReachesEveryServer: also one that was made before, that changes, and that is taken back.
func TestADesiredStateReachesEveryServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.New()
		if err := s.SetNodeDesiredState(t.Context(), "before", nodes.DesiredRemove, "ada"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		one, two := nodes.NewAdmin(
			nodes.AdminOptions{Store: s, Server: "s1", Log: zerolog.Nop()},
		), nodes.NewAdmin(
			nodes.AdminOptions{Store: s, Server: "s2",
				Log: zerolog.Nop()},
		)
		f := told{nodes: []nodes.NodeInfo{{NodeID: "a"}, {NodeID: "before", DesiredState: nodes.DesiredRemove},
			{NodeID: "local", Local: true}}}
		var g told
		wg.Go(func() { one.Run(ctx, &f) })
		wg.Go(func() { two.Run(ctx, &g) })
		synctest.Wait()
		f.want(t, "remove before")
		g.want(t, "remove before")
		request := func(id string, w nodes.DesiredState) {
			t.Helper()
			if _, err := one.SetDesiredState(t.Context(), id, w, "ada"); err != nil {
				t.Fatal(err)
			}
		}
		request("a", nodes.DesiredDrain)
		f.want(t, "drain a") // at once
		time.Sleep(nodes.PollInterval + time.Millisecond)
		synctest.Wait()
		g.want(t, "drain a")
		request("a", nodes.DesiredRemove)
		request("before", nodes.DesiredNone)
		f.want(t, "resume a", "remove a", "admit before")
		request("local", nodes.DesiredDrain) // the server's own, and no other server's
		f.want(t, "drain local")
		time.Sleep(2 * nodes.PollInterval)
		synctest.Wait()
		slices.Sort(g.said)
		g.want(t, "admit before", "remove a", "resume a")
		f.want(t)
		cancel()
		wg.Wait()
		events, err := s.NodeEvents(t.Context(), nodes.NodeEventFilter{})
		if err != nil || len(events) != 4 || events[3].NodeID != "a" || events[3].Kind != nodes.NodeRequested ||
			events[3].By != "ada" || events[3].Server != "s1" {
			t.Errorf("%+v, %v", events, err)
		}
	})
}

// away is a store that refuses events for a while.
type away struct {
	nodes.Nodes
	mu  sync.Mutex
	err error
}

func (a *away) AppendNodeEvents(ctx context.Context, events []nodes.NodeEvent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	return a.Nodes.AppendNodeEvents(ctx, events)
}

// TestEventsWaitForTheStore: in order and within bounds, and what waits at the end is written.
func TestEventsWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &away{Nodes: fake.New(), err: errors.New("away")}
		r := nodes.NewAdmin(nodes.AdminOptions{Store: s, Log: zerolog.Nop()})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx, &told{}) })
		for i := range nodes.MaxPending + 3 {
			r.RecordEvent(nodes.NodeEvent{NodeID: fmt.Sprint("n", i), Kind: nodes.NodeChangedState})
			if i%1000 == 0 {
				synctest.Wait() // between two attempts
			}
		}
		s.mu.Lock()
		s.err = nil
		s.mu.Unlock()
		time.Sleep(nodes.RetryDelay + time.Second)
		synctest.Wait()
		r.RecordEvent(nodes.NodeEvent{NodeID: "last", Kind: nodes.NodeChangedState})
		cancel()
		wg.Wait()
		events, err := s.NodeEvents(t.Context(), nodes.NodeEventFilter{Limit: 2 * nodes.MaxPending})
		if err != nil {
			t.Fatal(err)
		}
		if len(events) != nodes.MaxPending+1 || events[0].NodeID != "last" || events[nodes.MaxPending].NodeID != "n3" {
			t.Errorf("%d events, from %s to %s", len(events), events[len(events)-1].NodeID, events[0].NodeID)
		}
	})
}

// TestAFleetThatIsToldSomethingMayTellOfIt while it does what it is told.
func TestAFleetThatIsToldSomethingMayTellOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := nodes.NewAdmin(nodes.AdminOptions{Store: fake.New(), Log: zerolog.Nop()})
		f := &told{nodes: []nodes.NodeInfo{{NodeID: "a"}}, watch: r.RecordEvent}
		r.SetFleet(f)
		if _, err := r.SetDesiredState(t.Context(), "a", nodes.DesiredDrain, "ada"); err != nil {
			t.Fatal(err)
		}
		f.want(t, "drain a")
	})
}

// TestOldEventsAreDeleted: the newest stay.
func TestOldEventsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fake.New()
		if err := s.AppendNodeEvents(t.Context(), make([]nodes.NodeEvent, nodes.MaxEvents+5)); err != nil {
			t.Fatal(err)
		}
		r := nodes.NewAdmin(nodes.AdminOptions{Store: s, Log: zerolog.Nop()})
		ctx, cancel := context.WithTimeout(t.Context(), nodes.PruneInterval+time.Second)
		defer cancel()
		r.Run(ctx, &told{})
		events, err := s.NodeEvents(t.Context(), nodes.NodeEventFilter{Limit: 2 * nodes.MaxEvents})
		if err != nil || len(events) != nodes.MaxEvents {
			t.Errorf("%d events are left, %v", len(events), err)
		}
	})
}

// TestWhatCannotBeWanted: of whom nobody knows, and of the server's own node.
func TestWhatCannotBeWanted(t *testing.T) {
	s := fake.New()
	if err := s.SetNodeDesiredState(t.Context(), "gone", nodes.DesiredRemove, "bob"); err != nil {
		t.Fatal(err)
	}
	r := nodes.NewAdmin(nodes.AdminOptions{Store: s, Log: zerolog.Nop()})
	if got := r.Nodes(); len(got) != 0 {
		t.Errorf("before there is a fleet: %v", got)
	}
	f := &told{nodes: []nodes.NodeInfo{{NodeID: ""}, {NodeID: "local", Local: true},
		{NodeID: "gone", DesiredState: nodes.DesiredRemove}}}
	r.SetFleet(f)
	for _, c := range []struct {
		id      string
		desired nodes.DesiredState
		code    engine.Code
	}{
		{"nobody", nodes.DesiredDrain, engine.CodeNotFound}, {"", nodes.DesiredDrain, engine.CodeNotFound},
		{"local", nodes.DesiredRemove, engine.CodeConflict}, {"gone", nodes.DesiredDrain, engine.CodeConflict},
	} {
		if _, err := r.SetDesiredState(t.Context(), c.id, c.desired, "ada"); !engine.HasCode(err, c.code) {
			t.Errorf("%s of %q: %v", c.desired, c.id, err)
		}
	}
	f.want(t)
	// What is wanted already is done here, if it was not.
	if _, err := r.SetDesiredState(t.Context(), "gone", nodes.DesiredRemove, "ada"); err != nil {
		t.Error(err)
	}
	f.want(t, "remove gone")
}

// late is a store in which the first who reads what is wanted has it when goOn is closed.
type late struct {
	nodes.Nodes
	goOn chan struct{}
	read *atomic.Bool
}

func (s late) NodeDesiredStates(ctx context.Context) (map[string]nodes.DesiredState, error) {
	states, err := s.Nodes.NodeDesiredStates(ctx)
	if s.read.CompareAndSwap(false, true) {
		<-s.goOn
	}
	return states, err
}

// TestADesiredStateIsNotUndoneByWhatWasReadBeforeIt: between the two a run could be placed on a node that drains.
func TestADesiredStateIsNotUndoneByWhatWasReadBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := late{fake.New(), make(chan struct{}), &atomic.Bool{}}
		ctx, cancel := context.WithCancel(t.Context())
		f := told{nodes: []nodes.NodeInfo{{NodeID: "a"}}}
		r := nodes.NewAdmin(nodes.AdminOptions{Store: s, Server: "s1", Log: zerolog.Nop()})
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx, &f) })
		synctest.Wait() // it has read, and does not have it yet
		if _, err := r.SetDesiredState(ctx, "a", nodes.DesiredDrain, "ada"); err != nil {
			t.Fatal(err)
		}
		close(s.goOn)
		time.Sleep(time.Minute)
		f.want(t, "drain a")
		cancel()
		wg.Wait()
	})
}

// TestADesiredStateIsSetAgainstWhatOtherServersWereTold: this one has not read it yet.
func TestADesiredStateIsSetAgainstWhatOtherServersWereTold(t *testing.T) {
	s := fake.New()
	one := nodes.NewAdmin(nodes.AdminOptions{Store: s, Server: "s1", Log: zerolog.Nop()})
	// This server still shows a drain that another one was told to end a moment ago.
	f := told{nodes: []nodes.NodeInfo{{NodeID: "a", DesiredState: nodes.DesiredDrain}}}
	one.SetFleet(&f)
	if _, err := one.SetDesiredState(t.Context(), "a", nodes.DesiredDrain, "bob"); err != nil {
		t.Fatal(err)
	}
	if states, err := s.NodeDesiredStates(t.Context()); err != nil || states["a"] != nodes.DesiredDrain {
		t.Errorf("what is wanted is %v, %v", states, err)
	}
	f.want(t, "drain a")
	if _, err := one.SetDesiredState(t.Context(), "a", nodes.DesiredDrain, "bob"); err != nil {
		t.Fatal(err)
	}
	f.want(t)
}

// strict is a store that refuses events of nodes without a name, as Postgres does, and has no room for some calls.
type strict struct {
	nodes.Nodes
	calls, away int
}

func (s *strict) AppendNodeEvents(ctx context.Context, events []nodes.NodeEvent) error {
	if s.calls++; s.calls == s.away {
		return errors.New("away")
	}
	for _, e := range events {
		if e.NodeID == "" {
			return fmt.Errorf("writing: %w", &engine.Error{Code: engine.CodeInvalid, Message: "refused"})
		}
	}
	return s.Nodes.AppendNodeEvents(ctx, events)
}

// TestAnEventThatIsRefusedHoldsUpNoOther: whatever else waits with it, in order and once, also when the store goes away
// midway; what is lost is said.
func TestAnEventThatIsRefusedHoldsUpNoOther(t *testing.T) {
	for away := range 12 { // the first call that fails, 0 for none
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &strict{Nodes: fake.New(), away: away}
			r := nodes.NewAdmin(nodes.AdminOptions{Store: s, Log: zerolog.New(&log)})
			want := ""
			for i := range 9 {
				id := fmt.Sprint(i)
				if i == 0 || i == 4 {
					id = ""
				}
				want = id + want
				r.RecordEvent(nodes.NodeEvent{NodeID: id, Kind: nodes.NodeChangedState})
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { r.Run(ctx, &told{}) })
			time.Sleep(nodes.RetryDelay + time.Second)
			synctest.Wait()
			cancel()
			wg.Wait()
			events, err := s.NodeEvents(t.Context(), nodes.NodeEventFilter{})
			got := ""
			for _, e := range events {
				got += e.NodeID
			}
			if err != nil || got != want || r.Refused() != 2 || !strings.Contains(log.String(), `"refused":2`) {
				t.Errorf("away at call %d: %s, %d refused, %v\n%s", away, got, r.Refused(), err, &log)
			}
		})
	}
}
