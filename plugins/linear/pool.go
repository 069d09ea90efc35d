package linear

import (
	"errors"
	"fmt"
	"sync"
)

// ErrNoMemory says that the system gives no mapping, or no memory for one.
var ErrNoMemory = errors.New("the system refuses memory")

// maxIdle is how many mappings wait for the next guest. They hold addresses and no memory,
// but a system that accounts strictly goes on counting what their guests used.
const maxIdle = 8

// Pool gives out mappings of one size. It is safe for concurrent use.
type Pool struct {
	size int

	mu     sync.Mutex
	idle   [][]byte
	inUse  int
	closed bool
}

// NewPool makes a pool of mappings that can grow to so many bytes, a multiple of the size of a page.
func NewPool(size int) *Pool { return &Pool{size: size} }

// Mapping is the memory of one guest. It is not safe for concurrent use.
type Mapping struct {
	pool *Pool
	all  []byte
	// used is how much of all is accessible.
	used int
}

// Take returns a mapping of no bytes, which grows to the size of the pool. The error wraps ErrNoMemory.
func (p *Pool) Take() (*Mapping, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		all := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.inUse++
		p.mu.Unlock()
		return &Mapping{pool: p, all: all}, nil
	}
	p.mu.Unlock()
	all, err := reserve(p.size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoMemory, err)
	}
	p.mu.Lock()
	p.inUse++
	p.mu.Unlock()
	return &Mapping{pool: p, all: all}, nil
}

// Grow makes the mapping so many bytes long and returns them. They stay where they are, and what
// is new in them is zero. It never becomes shorter. The error wraps ErrNoMemory; the
// mapping is what it was then.
func (m *Mapping) Grow(size int) ([]byte, error) {
	if m.all == nil || size > len(m.all) {
		return nil, fmt.Errorf("%w: %d bytes of a mapping of %d", ErrNoMemory, size, len(m.all))
	}
	if size > m.used {
		if err := makeAccessible(m.all[m.used:size]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoMemory, err)
		}
		m.used = size
	}
	return m.all[:m.used:m.used], nil
}

// Release returns the mapping to the pool. No guest may run in it, and no slice of it be in
// use, from now on. Twice is fine.
func (m *Mapping) Release() {
	if m.all == nil {
		return
	}
	all, used := m.all, m.used
	m.all, m.used = nil, 0
	clean := releaseAndProtect(all[:used]) == nil
	p := m.pool
	p.mu.Lock()
	p.inUse--
	keep := clean && !p.closed && len(p.idle) < maxIdle
	if keep {
		p.idle = append(p.idle, all)
	}
	p.mu.Unlock()
	if !keep {
		unmap(all)
	}
}

// InUse is how many mappings are in use.
func (p *Pool) InUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse
}

// Close unmaps what waits, and what is in use once it is given back.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, all := range idle {
		unmap(all)
	}
}
