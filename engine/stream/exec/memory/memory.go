// Package memory bounds the bytes that continuous queries hold. Each query has an Account with a limit of its own; the
// accounts of a process draw on one Pool. Bytes are counted where they grow, before they do, by the capacity of what
// holds them: vectors of expressions, state of windows, joins and LAG, batches of sources, buffers of sinks.
//
// When the pool is used up, a query of the user ends whose queries hold the most together, and the others go on.
package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultQuery is how many bytes a query may hold unless an option says otherwise.
const DefaultQuery = 64 << 20

// Limits are those of the queries of a process. The zero value has the default for a query, and none for all of them.
type Limits struct {
	// Pool is shared by all queries; nil bounds nothing.
	Pool *Pool
	// Query is how many bytes a query may hold that says nothing of it; 0 is DefaultQuery.
	Query int
}

// ExceededError is the error of a query that may not hold more.
type ExceededError struct {
	// Limit is what may be held, in bytes; Total says that it is by all queries of the process together.
	Limit int
	Total bool
}

// Error implements error.
func (e *ExceededError) Error() string {
	if e.Total {
		return "the continuous queries of this process hold all the memory that they may"
	}
	return "the query holds all the memory that it may"
}

// Holder says whose an account is.
type Holder struct {
	// Owner is the id of the user; accounts without one are of one owner together.
	Owner string
	// Yields is of what somebody looks at for the moment: it ends before any query does.
	Yields bool
}

// Pool is what the queries of a process share. It is safe for concurrent use; nil bounds nothing.
type Pool struct {
	limit int64

	mu       sync.Mutex
	accounts map[*Account]bool
	used     int64
	// collecting is held while what a query has held is collected.
	collecting sync.Mutex
	// freed is closed when something was given back, and then another one.
	freed chan struct{}
}

// NewPool returns a pool of so many bytes.
func NewPool(limit int) *Pool {
	return &Pool{limit: int64(limit), accounts: map[*Account]bool{}, freed: make(chan struct{})}
}

// Used is how many bytes are drawn.
func (p *Pool) Used() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

const (
	// drawStep is how many bytes an account draws at once, so that it does not ask for each vector.
	drawStep = 256 << 10
	// leaveTimeout is how long others wait for what an evicted account has. Then another one is evicted.
	leaveTimeout = 2 * time.Second
	// stopInterval is how often who waits looks whether it has to end.
	stopInterval = 10 * time.Millisecond
)

// draw has an account draw n bytes more. Where they are not there, an account is evicted, and draw waits until it has
// given back what it has: the pool is never exceeded.
func (p *Pool) draw(a *Account, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.used+n > p.limit {
		if a.Stopped() {
			return &ExceededError{Limit: int(p.limit), Total: true}
		}
		leaving, now := int64(0), time.Now()
		for o := range p.accounts {
			if o.evicted.Load() && now.Sub(o.evictedAt) < leaveTimeout {
				leaving += o.drawn
			}
		}
		if p.used-leaving+n > p.limit {
			largest := p.largest(a, n)
			if largest == a {
				return &ExceededError{Limit: int(p.limit), Total: true}
			}
			largest.evictedAt = now
			largest.evict()
			continue
		}
		freed := p.freed
		p.mu.Unlock()
		select {
		case <-freed:
		case <-time.After(stopInterval):
		}
		p.mu.Lock()
	}
	p.used += n
	a.drawn += n
	return nil
}

// largest is the account that ends when there are no n bytes for a: of those that yield, where there are any, or of
// all, the largest one of the owner who has the most. Who asks is the last of several that have as much.
func (p *Pool) largest(a *Account, n int64) *Account {
	yields := a.Yields
	for o := range p.accounts {
		yields = yields || o.Yields && o.drawn > 0 && !o.evicted.Load()
	}
	sums := map[string]int64{}
	for o := range p.accounts {
		if o.Yields == yields {
			sums[o.Owner] += o.drawn
		}
	}
	most, size := a, int64(-1)
	if a.Yields == yields {
		size = a.drawn + n
		sums[a.Owner] += n
	}
	for o := range p.accounts {
		if o == a || o.drawn == 0 || o.evicted.Load() || o.Yields != yields {
			continue
		}
		more := sums[o.Owner] - sums[most.Owner]
		if size < 0 || more > 0 || more == 0 && o.drawn > size {
			most, size = o, o.drawn
		}
	}
	return most
}

// giveBack returns n bytes of an account.
func (p *Pool) giveBack(a *Account, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	a.drawn -= n
	close(p.freed)
	p.freed = make(chan struct{})
}

// Account counts what one query holds. Grow, Free, Used and Close are for one goroutine at a time; the others may be
// called by any.
type Account struct {
	Holder
	limit   int
	pool    *Pool
	used    int
	onEvict func()
	stopped atomic.Bool
	evicted atomic.Bool
	drawn   int64 // guarded by the pool, and changed by the goroutine of the account alone
	// evictedAt is guarded by the pool.
	evictedAt time.Time
}

// Open returns the account of a query that may hold limit bytes; 0 is what the limits say. onEvict, which may be nil,
// is called once if the query has to end since all queries hold too much; it must not block.
func (l Limits) Open(of Holder, limit int, onEvict func()) *Account {
	if limit == 0 {
		limit = l.Query
	}
	if limit == 0 {
		limit = DefaultQuery
	}
	a := &Account{Holder: of, limit: limit, pool: l.Pool, onEvict: onEvict}
	if a.pool != nil {
		a.pool.mu.Lock()
		a.pool.accounts[a] = true
		a.pool.mu.Unlock()
	}
	return a
}

// Limit is how many bytes the query may hold.
func (a *Account) Limit() int { return a.limit }

// Used is how many bytes it holds.
func (a *Account) Used() int { return a.used }

// Grow counts n bytes more, or returns an *ExceededError and counts none.
func (a *Account) Grow(n int) error {
	if a.used+n > a.limit {
		return &ExceededError{Limit: a.limit}
	}
	a.used += n
	if more := int64(a.used) - a.drawn; a.pool != nil && more > 0 {
		if err := a.pool.draw(a, (more+drawStep-1)/drawStep*drawStep); err != nil {
			a.used -= n
			return err
		}
	}
	return nil
}

// Free counts n bytes less.
func (a *Account) Free(n int) {
	a.used -= n
	if spare := a.drawn - int64(a.used); a.pool != nil && spare > 4*drawStep {
		a.pool.giveBack(a, spare/drawStep*drawStep)
	}
}

// Set counts now bytes in place of was, and returns what is counted then: was, where the error is not nil.
func (a *Account) Set(was, now int) (int, error) {
	if now <= was {
		a.Free(was - now)
		return now, nil
	}
	if err := a.Grow(now - was); err != nil {
		return was, err
	}
	return now, nil
}

// Stop has the query end at the next value that it looks at.
func (a *Account) Stop() { a.stopped.Store(true) }

// Stopped reports whether the query has to end.
func (a *Account) Stopped() bool { return a.stopped.Load() }

// Evicted returns why the query had to end for the sake of others, nil where it had not.
func (a *Account) Evicted() error {
	if !a.evicted.Load() {
		return nil
	}
	return &ExceededError{Limit: int(a.pool.limit), Total: true}
}

// evict ends the query for the sake of others.
func (a *Account) evict() {
	a.evicted.Store(true)
	a.Stop()
	if a.onEvict != nil {
		a.onEvict()
	}
}

// collectBytes is from how many bytes on it is worth to have the collector look for them at once.
const collectBytes = 16 << 20

// Collect has the bytes collected that a query has held, if they are many: until then others that get as many take
// memory besides. What held them has to be unreachable.
func (a *Account) Collect(held int) {
	if a.pool == nil || held < collectBytes || !a.pool.collecting.TryLock() {
		return
	}
	defer a.pool.collecting.Unlock()
	runtime.GC()
}

// Close gives all back.
func (a *Account) Close() {
	a.used = 0
	if a.pool == nil {
		return
	}
	a.pool.giveBack(a, a.drawn)
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	delete(a.pool.accounts, a)
}
