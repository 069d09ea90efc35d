package executions_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
)

// heard is a listener that counts by run worker, and sees that it is told between the two ends only.
type heard struct {
	t    *testing.T
	mu   sync.Mutex
	rows map[string]int
	open map[string]bool
}

func newHeard(t *testing.T) *heard {
	return &heard{t: t, rows: map[string]int{}, open: map[string]bool{}}
}

type ear struct {
	*heard
	worker string
}

func (h *heard) Open(of executions.Stream) executions.Observer {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := of.RunID + "/" + of.WorkerID
	if h.open[key] {
		h.t.Errorf("%s is opened again", key)
	}
	h.open[key] = true
	return ear{h, key}
}

func (e ear) Write(recs []engine.Execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.open[e.worker] {
		e.t.Errorf("%s is told behind its end", e.worker)
	}
	e.rows[e.worker] += len(recs)
}

func (e ear) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.open[e.worker] {
		e.t.Errorf("%s is closed again", e.worker)
	}
	e.open[e.worker] = false
}

func (h *heard) says() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprint(h.rows)
}

func (h *heard) left() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, open := range h.open {
		if open {
			n++
		}
	}
	return n
}

// TestListenersOfARunHearOfItAlone: whoever hears of all runs hears of all, whoever hears of one of that one: also of a
// run worker that is open already, from then on, and nothing more once it has left.
func TestListenersOfARunHearOfItAlone(t *testing.T) {
	e := &executions.Fanout{}
	all, one, other := newHeard(t), newHeard(t), newHeard(t)
	e.Listen("", all)
	recs := make([]engine.Execution, 10)
	a := e.Open(executions.Stream{RunID: "a", WorkerID: "0"})
	a.Write(recs)
	leave := e.Listen("a", one)
	e.Listen("b", other)
	b := e.Open(executions.Stream{RunID: "b", WorkerID: "0"})
	second := e.Open(executions.Stream{RunID: "a", WorkerID: "1"})
	a.Write(recs[:4])
	b.Write(recs[:3])
	second.Write(recs[:2])
	leave()
	leave()
	a.Write(recs[:1])
	for _, w := range []executions.Observer{a, b, second} {
		w.Close()
	}
	for _, want := range []struct {
		who  *heard
		says string
	}{{all, "map[a/0:15 a/1:2 b/0:3]"}, {one, "map[a/0:4 a/1:2]"}, {other, "map[b/0:3]"}} {
		if got := want.who.says(); got != want.says || want.who.left() != 0 {
			t.Errorf("%s, want %s; %d are open", got, want.says, want.who.left())
		}
	}
}

// TestListenersComeAndGoBesideTheLoad: none is told before it has come, none when it has left, and who stays has all.
func TestListenersComeAndGoBesideTheLoad(t *testing.T) {
	e := &executions.Fanout{}
	all := newHeard(t)
	e.Listen("", all)
	var working sync.WaitGroup
	const blocks = 2000
	for n := range 4 {
		working.Go(func() {
			w := e.Open(executions.Stream{RunID: fmt.Sprint(n % 2), WorkerID: fmt.Sprint(n)})
			defer w.Close()
			for range blocks {
				w.Write(make([]engine.Execution, 1))
			}
		})
	}
	for n := range 2 {
		working.Go(func() {
			for range 300 {
				h := newHeard(t)
				leave := e.Listen(fmt.Sprint(n), h)
				leave()
				if h.left() != 0 {
					t.Errorf("%d are open though it has left", h.left())
				}
			}
		})
	}
	working.Wait()
	for key, n := range all.rows {
		if n != blocks {
			t.Errorf("%s: %d of %d", key, n, blocks)
		}
	}
	if got := len(all.rows); got != 4 {
		t.Errorf("%d run workers", got)
	}
}
