package host

import (
	"errors"
	"fmt"
	"sync"
)

// errMemoryRefused says that the system gives no mapping, or no memory for one.
var errMemoryRefused = errors.New("the system refuses memory")

// mostIdleMappings is how many mappings wait for the next guest. They hold addresses and no memory,
// but a system that accounts strictly goes on counting what their guests used.
const mostIdleMappings = 8

// mappingPool makes the memories of guests out of anonymous mappings of the operating system.
//
// A mapping reserves as many addresses as a guest may ever have, and no memory: what the guest may
// use is made accessible as its memory grows, at the same place. So nothing is copied, nothing is
// left to the garbage collector, and a page is there only once the guest has written to it.
//
// The pool does not know who still looks at a mapping. Whoever gives one back says that no guest runs
// in it and that nobody holds a slice of it, now or ever: the next guest gets the same addresses.
// What was given back has no access until it is taken again, and its pages, with what was in
// them, went back to the system before: a guest never reads what another wrote.
//
// Where the system refuses a mapping (a limit on addresses, strict accounting of memory, another
// system than Linux), Take says so, and the caller uses memory of Go.
//
// It gives out mappings of one size and is safe for concurrent use.
type mappingPool struct {
	size int

	mu     sync.Mutex
	idle   [][]byte
	lent   int
	closed bool
}

// newMappingPool makes a pool of mappings that can grow to so many bytes, a multiple of the size of a page.
func newMappingPool(size int) *mappingPool { return &mappingPool{size: size} }

// mapping is the memory of one guest. It is not safe for concurrent use.
type mapping struct {
	pool *mappingPool
	all  []byte
	// used is how much of all is accessible.
	used int
}

// Take returns a mapping of no bytes, which grows to the size of the pool. The error wraps errMemoryRefused.
func (p *mappingPool) Take() (*mapping, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		all := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.lent++
		p.mu.Unlock()
		return &mapping{pool: p, all: all}, nil
	}
	p.mu.Unlock()
	all, err := reserveAddresses(p.size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMemoryRefused, err)
	}
	p.mu.Lock()
	p.lent++
	p.mu.Unlock()
	return &mapping{pool: p, all: all}, nil
}

// Grow makes the mapping so many bytes long and returns them. They stay where they are, and what
// is new in them is zero. It never becomes shorter. The error wraps errMemoryRefused; the
// mapping is what it was then.
func (m *mapping) Grow(size int) ([]byte, error) {
	if m.all == nil || size > len(m.all) {
		return nil, fmt.Errorf("%w: %d bytes of a mapping of %d", errMemoryRefused, size, len(m.all))
	}
	if size > m.used {
		if err := openPages(m.all[m.used:size]); err != nil {
			return nil, fmt.Errorf("%w: %w", errMemoryRefused, err)
		}
		m.used = size
	}
	return m.all[:m.used:m.used], nil
}

// GiveBack returns the mapping to the pool. No guest may run in it, and no slice of it be in
// use, from now on. Twice is fine.
func (m *mapping) GiveBack() {
	if m.all == nil {
		return
	}
	all, used := m.all, m.used
	m.all, m.used = nil, 0
	clean := shutPages(all[:used]) == nil
	p := m.pool
	p.mu.Lock()
	p.lent--
	keep := clean && !p.closed && len(p.idle) < mostIdleMappings
	if keep {
		p.idle = append(p.idle, all)
	}
	p.mu.Unlock()
	if !keep {
		unmapPages(all)
	}
}

// Lent is how many mappings are in use.
func (p *mappingPool) Lent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lent
}

// Close unmaps what waits, and what is in use once it is given back.
func (p *mappingPool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, all := range idle {
		unmapPages(all)
	}
}
