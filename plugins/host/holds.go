package host

import "sync/atomic"

// holds counts who is at work in something that is closed while others may be: it is to be freed
// once it is closed and nobody is at work in it.
type holds struct {
	// state is twice the number of those at work, and one more once it is closed.
	state atomic.Int64
}

// take begins work; false says that it is closed.
func (h *holds) take() bool {
	for {
		s := h.state.Load()
		if s&1 == 1 {
			return false
		}
		if h.state.CompareAndSwap(s, s+2) {
			return true
		}
	}
}

// drop ends work, and reports whether the caller is to free it.
func (h *holds) drop() bool { return h.state.Add(-2) == 1 }

// close lets nobody begin any more, and reports whether the caller is to free it.
func (h *holds) close() bool { return h.state.Or(1) == 0 }
