package fleet

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard notes what the nodes say.
type heard struct {
	mu    sync.Mutex
	said  []string
	parts []Part
	aside []control.AsidePart
}

func (h *heard) Hear(runID string, from Node, m control.FromNode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := m.(control.WorkReady); ok {
		h.parts = append(h.parts, Part{p, from})
	}
	h.said = append(h.said, from.ID()+" of "+runID)
}

func (h *heard) Aside(p control.AsidePart) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.aside = append(h.aside, p)
}

// inFleet runs a test with a fleet of nodes whose ends the test has. Nobody speaks before it does.
func inFleet(t *testing.T, nodes int,
	test func(t *testing.T, f *Fleet, ends []control.NodeEnd, h *heard, open func())) {
	synctest.Test(t, func(t *testing.T) {
		var links []control.ServerEnd
		var ends []control.NodeEnd
		for range nodes {
			server, node := control.Pipe()
			links, ends = append(links, server), append(ends, node)
		}
		f, h := New(zerolog.Nop(), links...), &heard{}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		test(t, f, ends, h, func() {
			if err := f.Open(ctx, ctx, wg.Go, h); err != nil {
				t.Error(err)
			}
		})
		cancel()
		wg.Wait()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
}

func hello(id string, capacity int) control.Hello {
	return control.Hello{NodeID: id, Capacity: capacity}
}

// speak sends a message of a node, which waits until the fleet listens.
func speak(t *testing.T, end control.NodeEnd, m control.FromNode) {
	if err := end.Send(t.Context(), m); err != nil {
		t.Error(err)
	}
}

// TestOpenKnowsWhatTheNodesStillHold: who finishes the runs of an earlier process has all
// parts before it begins, and tells their node when they are safe.
func TestOpenKnowsWhatTheNodesStillHold(t *testing.T) {
	inFleet(t, 1, func(t *testing.T, f *Fleet, ends []control.NodeEnd, h *heard, open func()) {
		part := control.WorkReady{Artifact: engine.Artifact{RunID: "r", WorkerID: "worker-0", Name: "p", SHA256: "x"}}
		m := hello("a", 0)
		m.Parts, m.Aside = []control.WorkReady{part}, []control.AsidePart{{RunID: "r", Name: "q"}}
		go speak(t, ends[0], m)
		open()
		if len(h.parts) != 1 || len(h.aside) != 1 || !slices.Equal(h.said, []string{"a of r"}) {
			t.Fatalf("heard %v, %d parts, %d aside", h.said, len(h.parts), len(h.aside))
		}
		h.parts[0].Acknowledge()
		for {
			got, err := ends[0].Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if ack, ok := got.(control.ArtifactAck); ok {
				if want := (control.ArtifactAck{RunID: "r", WorkerID: "worker-0", Name: "p", SHA256: "x"}); ack != want {
					t.Errorf("%+v", ack)
				}
				return
			}
		}
	})
}

// TestANodeThatIsSilentHoldsNobodyUp: the others are known, and it gets no run worker.
func TestANodeThatIsSilentHoldsNobodyUp(t *testing.T) {
	inFleet(t, 3, func(t *testing.T, f *Fleet, ends []control.NodeEnd, _ *heard, open func()) {
		go speak(t, ends[0], hello("a", 10))
		go speak(t, ends[2], hello("c", 5))
		begin := time.Now()
		open()
		if took := time.Since(begin); took != helloLimit {
			t.Errorf("opened after %v", took)
		}
		var on []string
		for i := range 4 {
			on = append(on, f.Place(i).ID())
		}
		if !slices.Equal(on, []string{"a", "c", "a", "c"}) || f.Capacity() != (Capacity{Connections: 15}) {
			t.Errorf("placed on %v, %+v", on, f.Capacity())
		}
		// One drains, and one is lost.
		_ = ends[0].Send(t.Context(), control.Status{Draining: true})
		synctest.Wait()
		if f.Place(0).ID() != "c" || f.Capacity().Connections != 5 {
			t.Errorf("placed on %s, %+v", f.Place(0).ID(), f.Capacity())
		}
		_ = ends[2].Close()
		synctest.Wait()
		if n := f.Place(0); n != nil || !f.Capacity().None {
			t.Errorf("placed on %v, %+v", n, f.Capacity())
		}
		// The silent one comes at last, and takes any number.
		_ = ends[1].Send(t.Context(), hello("b", 0))
		synctest.Wait()
		if f.Place(7).ID() != "b" || !f.Capacity().Unlimited {
			t.Errorf("%+v", f.Capacity())
		}
	})
}
