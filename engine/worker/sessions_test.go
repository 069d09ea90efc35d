package worker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// peer is a node's end of a stream to a server with a name.
type peer struct {
	protocol.NodeEnd
	name string
}

func (p peer) Server() string { return p.name }

// another connects a further server to the node of s, which owns the run in that epoch.
func (s *server) another(name string, epoch int64) *server { return s.anotherMute(name, epoch, false) }

// anotherMute is another that acknowledges nothing while it is mute.
func (s *server) anotherMute(name string, epoch int64, mute bool) *server {
	o := &server{t: s.t, node: s.node, load: s.load, mute: mute, served: make(chan error, 1)}
	var end protocol.NodeEnd
	o.link, end = protocol.Pipe(nil)
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(context.Background())
	go func() { o.served <- s.node.Serve(context.Background(), peer{end, name}) }()
	go func() {
		for {
			m, err := o.link.Receive(ctx)
			if err != nil {
				return
			}
			o.mu.Lock()
			o.received = append(o.received, m)
			mute := o.mute
			o.mu.Unlock()
			if m, ok := m.(protocol.Status); ok && !mute {
				o.acknowledge(ctx, m, epoch)
			}
		}
	}()
	synctest.Wait()
	return o
}

// kill breaks the stream as the end of the server's process does.
func (s *server) kill() {
	_ = s.link.Close()
	s.cancel()
	if err := <-s.served; err != nil {
		s.t.Errorf("serving: %v", err)
	}
	synctest.Wait()
}

// inEpoch is a message about the run in another epoch than that of its assignment.
func inEpoch(epoch int64, m protocol.RunEvent) protocol.RunEvent {
	m.Epoch = epoch
	return m
}

func under(epoch, sequence int64) protocol.RunState {
	return protocol.RunState{RunID: runID, Epoch: epoch, Status: engine.StatusRunning, Phase: engine.PhaseMeasurement,
		Started: true, LastSequence: sequence}
}

// TestAnotherServerTakesARunOver: what a node says about a run goes to its owner alone. A
// server that comes with a newer epoch becomes it: it hears what the node holds, and then
// everything; what the one before says counts no more, and the load goes on all the while.
func TestAnotherServerTakesARunOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFakeLoad()
		fake.records = 5
		a := connect(t, t.TempDir(), fake, nil)
		b := a.another("b", 2)
		a.send(assign(), start(9))
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if n, m := len(messages[protocol.Snapshot](a)), len(messages[protocol.Snapshot](b)); n != 3 || m != 0 {
			t.Fatalf("the owner heard %d snapshots, the other server %d", n, m)
		}
		if len(messages[protocol.Status](b)) == 0 {
			t.Error("a server that owns nothing does not hear how the node is")
		}
		// The events of the one before may have been numbered beyond what was stored.
		b.send(under(4, 5))
		synctest.Wait()
		hellos := messages[protocol.Hello](b)
		if len(hellos) != 2 || len(hellos[1].Workers) != 1 || hellos[1].Workers[0].Status != engine.WorkerRunning {
			t.Fatalf("the new owner heard %+v", hellos)
		}
		a.send(
			event(10, engine.EventStop, engine.EventData{Scope: engine.ScopeRun}),
			protocol.RunState{RunID: runID, Epoch: 3,
				Status: engine.StatusCancelling, LastSequence: 99},
		)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		// One more is of the end of the warm-up, which the new owner has told it of.
		if n, m := len(messages[protocol.Snapshot](a)), len(messages[protocol.Snapshot](b)); n != 3 || m != 4 {
			t.Errorf("the old owner heard %d snapshots, the new one %d", n, m)
		}
		if got := b.last().Status; got != engine.WorkerRunning {
			t.Fatalf("%s after what the old owner said", got)
		}
		b.send(inEpoch(4, event(6, engine.EventStop, engine.EventData{Scope: engine.ScopeRun})))
		synctest.Wait()
		if got := b.last(); got.Status != engine.WorkerCompleted || len(messages[protocol.WorkReady](b)) != 1 {
			t.Fatalf("%+v", got)
		}
		// Nor does its receipt for what it has not got.
		ready := messages[protocol.WorkReady](b)[0]
		ack := protocol.ArtifactAck{RunID: runID, WorkerID: ready.Artifact.WorkerID, Name: ready.Artifact.Name,
			SHA256: ready.Artifact.SHA256}
		end := protocol.WorkerAck{RunID: runID, WorkerID: "worker-0", ResultID: "test-1"}
		a.send(ack, end)
		synctest.Wait()
		if h := a.node.hello(); len(h.Parts) != 1 || len(h.Workers) != 1 {
			t.Errorf("the receipts of the old owner count: %+v", h)
		}
		b.send(ack, end)
		synctest.Wait()
		if h := a.node.hello(); len(h.Parts) != 0 || len(h.Workers) != 0 {
			t.Errorf("the receipts of the owner do not count: %+v", h)
		}
		b.kill()
		a.end()
	})
}

// TestWhatAServerMissedWaitsForWhoTakesItsRunOver: snapshots and lines of the log, in their order.
func TestWhatAServerMissedWaitsForWhoTakesItsRunOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := connect(t, t.TempDir(), newFakeLoad(), nil)
		a.silence()
		first, other := a.another("first", 3), a.another("other", 2)
		first.send(assign(), start(1))
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		first.kill()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := len(messages[protocol.Snapshot](other)); n != 0 {
			t.Fatalf("%d snapshots went to a server that does not own the run", n)
		}
		other.send(under(4, 1))
		synctest.Wait()
		var ticks []int64
		for _, s := range slices.Concat(messages[protocol.Snapshot](first), messages[protocol.Snapshot](other)) {
			ticks = append(ticks, s.Tick)
		}
		want := make([]int64, len(ticks))
		for i := range want {
			want[i] = int64(i + 1)
		}
		if len(ticks) < 22 || !slices.Equal(ticks, want) {
			t.Errorf("ticks %v", ticks)
		}
		// The same process on a new stream has its run without asking.
		other.kill()
		time.Sleep(2 * time.Second)
		back := a.another("other", 4)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if n := len(messages[protocol.Snapshot](back)); n < 3 {
			t.Errorf("%d snapshots after it came back", n)
		}
		back.kill()
		a.end()
	})
}

// TestAnAssignmentOfAnOldEpochIsNoneOfThisNode: its server has been succeeded.
func TestAnAssignmentOfAnOldEpochIsNoneOfThisNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := connect(t, t.TempDir(), newFakeLoad(), nil)
		b := a.another("b", 2)
		b.send(under(4, 1))
		synctest.Wait()
		a.send(assign())
		synctest.Wait()
		if h := a.node.hello(); len(h.Workers) > 0 {
			t.Errorf("%+v", h.Workers)
		}
		b.kill()
		a.end()
	})
}

// TestARunThatIsLongOverIsForgotten: so that a node that runs for months does not grow.
func TestARunThatIsLongOverIsForgotten(t *testing.T) {
	o := newOutbox()
	s := o.open("a")
	now := time.Now()
	for i := range 3 * maxOwners {
		if counts, fresh := o.acceptsEpoch(
			s,
			strings.Repeat("x", i),
			1,
			now.Add(time.Duration(i)*time.Second),
		); !counts ||
			!fresh {
			t.Fatal("a new run does not count")
		}
	}
	if n := len(o.owners); n > maxOwners+1 {
		t.Errorf("%d runs are remembered", n)
	}
}

// TestSharedWorkEndsWithItsLastUser: and begins again.
func TestSharedWorkEndsWithItsLastUser(t *testing.T) {
	var w shared
	var mu sync.Mutex
	begun, ended := 0, 0
	work := func(ctx context.Context) {
		mu.Lock()
		begun++
		mu.Unlock()
		<-ctx.Done()
		ended++ // end waits for it
	}
	for round := 1; round <= 2; round++ {
		w.begin(work)
		w.begin(work)
		w.end()
		if ended != round-1 {
			t.Fatal("it ended while somebody used it")
		}
		w.end()
		if begun != round || ended != round {
			t.Fatalf("round %d: begun %d times, ended %d times", round, begun, ended)
		}
	}
}
