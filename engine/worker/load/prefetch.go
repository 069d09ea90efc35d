package load

import (
	"errors"
	"runtime"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
)

// prefetchBatches is how many batches are filled before they are needed, so that
// a call into the plugin delays no arrival.
const prefetchBatches = 4

// ErrStopped says that the load was stopped before the workload had an operation.
var ErrStopped = errors.New("the load was stopped")

// Prefetcher fills batches in a goroutine of its own. Batches are shared by the
// slots that execute their operations and used again when the last has.
type Prefetcher struct {
	source   *Source
	stopping <-chan struct{}
	filled   chan filled
	batch    *OpBatch // whose operations are being taken

	mu   sync.Mutex
	free []*OpBatch
}

type filled struct {
	batch *OpBatch
	err   error
}

// NewPrefetcher fills from a source until stopping is closed.
func NewPrefetcher(source *Source, stopping <-chan struct{}) *Prefetcher {
	return &Prefetcher{source: source, stopping: stopping, filled: make(chan filled, prefetchBatches)}
}

// Run fills batches until the stream or the load ends.
func (h *Prefetcher) Run() {
	for {
		p, err := h.source.Refill(h.spareBatch())
		p.shared, p.Users = h, 1 // the dispatcher is the first user
		select {
		case h.filled <- filled{p, err}:
		case <-h.stopping:
			return
		}
		if err != nil {
			return
		}
	}
}

func (h *Prefetcher) spareBatch() *OpBatch {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.free); n > 0 {
		p := h.free[n-1]
		h.free = h.free[:n-1]
		return p
	}
	return &OpBatch{}
}

// Take puts the stream's next unit into work and returns its batch, which the
// caller releases. Delays of several batches add up.
// Once the load is stopped it does not wait for the plugin any more.
func (h *Prefetcher) Take(work *Unit, kinds []engine.Kind) (*OpBatch, error) {
	work.Delay = 0
	for {
		if h.batch == nil {
			f, ok := h.next()
			if !ok {
				return nil, ErrStopped
			}
			if f.err != nil {
				return nil, f.err
			}
			h.batch = f.batch
		}
		ok, err := h.batch.Take(work, kinds)
		if err != nil {
			return nil, InvalidUnitError(err)
		}
		if ok {
			h.mu.Lock()
			h.batch.Users++
			h.mu.Unlock()
			return h.batch, nil
		}
		h.batch.Release()
		h.batch = nil
		runtime.Gosched() // the filler may be behind on a busy machine
	}
}

// Next is the next batch; false when the load was stopped and none is there.
func (h *Prefetcher) next() (f filled, ok bool) {
	select {
	case f = <-h.filled:
		return f, true
	default:
	}
	select {
	case f = <-h.filled:
		return f, true
	case <-h.stopping:
	}
	// Both may have been there.
	select {
	case f = <-h.filled:
		return f, true
	default:
		return f, false
	}
}

// Release gives up a use of a shared batch; on any other it does nothing.
func (p *OpBatch) Release() {
	h := p.shared
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.Users--; p.Users == 0 {
		h.free = append(h.free, p)
	}
}
