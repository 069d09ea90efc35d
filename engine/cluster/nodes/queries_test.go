package nodes

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// recordingAsker notes which nodes were given the work of a query.
type recordingAsker struct {
	mu sync.Mutex
	on []string
}

func (a *recordingAsker) Assigned(_ protocol.WorkKey, nodeID string, _ int, _ bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = append(a.on, nodeID)
}

func (a *recordingAsker) Ready(protocol.WorkKey, Part)                     {}
func (a *recordingAsker) WorkFailed(protocol.WorkKey, protocol.WorkFailed) {}

func (a *recordingAsker) assignedTo() []string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.on...)
}

// TestTheWorkOfALostNodeIsGivenToAnotherAtOnce: a node whose stream breaks is out of rotation within 100 ms, one that
// answers no more within 4 s, and what it had of a query is with another one within 100 ms of that.
func TestTheWorkOfALostNodeIsGivenToAnotherAtOnce(t *testing.T) {
	for name, most := range map[string]time.Duration{"its stream breaks": 100 * time.Millisecond,
		"it answers no more": 4 * time.Second} {
		t.Run(name, func(t *testing.T) {
			withFleet(t, 2, func(t *testing.T, f *fleetTest) {
				names, ends, mute := []string{"a", "b"}, make([]*fakeNode, 2), make([]atomic.Bool, 2)
				for i, id := range names {
					f.wg.Go(func() {
						accepted, err := f.links[i].Accept(f.ctx)
						if err != nil {
							t.Error(err)
							return
						}
						ends[i] = &fakeNode{NodeEnd: accepted}
						f.wg.Go(func() { ends[i].serve(f.ctx, &mute[i]) })
						m := hello(id, 10)
						m.Queries = true
						_ = ends[i].Send(f.ctx, m)
					})
				}
				f.open()
				time.Sleep(3 * time.Second)
				var asker recordingAsker
				key := protocol.WorkKey{QueryID: "q", LeafID: "leaf", WorkID: "work"}
				f.Query("q", &asker, QueryWork{AssignWork: protocol.AssignWork{WorkKey: key}, Affinity: "x"})
				on := asker.assignedTo()
				if len(on) != 1 {
					t.Fatalf("it is on %v", on)
				}
				has := 0
				if on[0] == "b" {
					has = 1
				}
				ends[has].send(t, protocol.WorkAccepted{WorkKey: key})
				time.Sleep(1300 * time.Millisecond)
				lost, out := time.Now(), time.Time{}
				if most < time.Second {
					_ = ends[has].Close()
				} else {
					mute[has].Store(true)
				}
				for len(asker.assignedTo()) < 2 && time.Since(lost) < most+time.Second {
					if out.IsZero() && f.QueryNodes() == 1 {
						out = time.Now()
					}
					time.Sleep(time.Millisecond)
				}
				if out.IsZero() {
					out = time.Now()
				}
				if on = asker.assignedTo(); len(on) < 2 || on[1] == on[0] || out.Sub(lost) > most ||
					time.Since(out) > 100*time.Millisecond {
					t.Errorf("it is on %v; out of rotation after %v, given to another %v later", on, out.Sub(lost), time.Since(out))
				}
			})
		})
	}
}
