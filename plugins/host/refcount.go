package host

import "sync/atomic"

// refCount counts who is at work in something that is closed while others may be: it is to be freed
// once it is closed and nobody is at work in it.
type refCount struct {
	// state is twice the number of those at work, and one more once it is closed.
	state atomic.Int64
}

// acquire begins work; false says that it is closed.
func (h *refCount) acquire() bool {
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

// release ends work, and reports whether the caller is to free it.
func (h *refCount) release() bool { return h.state.Add(-2) == 1 }

// close lets nobody begin any more, and reports whether the caller is to free it.
func (h *refCount) close() bool { return h.state.Or(1) == 0 }
