// Package memory bounds the bytes that continuous queries hold. Each query has an Account with a limit of its own; the
// accounts of a process draw on one Pool. Bytes are counted where they grow, before they do, by the capacity of what
// holds them: vectors of expressions, state of windows, joins and LAG, batches of sources, buffers of sinks.
//
// When the pool is used up, the query that holds the most ends, and the others go on.
package memory

import (
	"runtime"
	"sync"
	"sync/atomic"
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

// Pool is what the queries of a process share. It is safe for concurrent use; nil bounds nothing.
type Pool struct {
	limit int64

	mu       sync.Mutex
	accounts map[*Account]bool
	used     int64
	// collecting is held while what a query has held is collected.
	collecting sync.Mutex
}

// NewPool returns a pool of so many bytes.
func NewPool(limit int) *Pool { return &Pool{limit: int64(limit), accounts: map[*Account]bool{}} }

// Used is how many bytes are drawn.
func (p *Pool) Used() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// drawStep is how many bytes an account draws at once, so that it does not ask for each vector.
const drawStep = 256 << 10

// draw has an account draw n bytes more. Where they are not there, the account that has drawn the most is ended, and
// what it has is as good as free.
func (p *Pool) draw(a *Account, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.used+n > p.limit {
		most := a
		leaving := int64(0)
		for o := range p.accounts {
			switch {
			case o.evicted.Load():
				leaving += o.drawn
			case o != a && o.drawn > most.drawn+n:
				most = o
			}
		}
		if p.used-leaving+n <= p.limit {
			break
		}
		if most == a {
			return &ExceededError{Limit: int(p.limit), Total: true}
		}
		most.evict()
	}
	p.used += n
	a.drawn += n
	return nil
}

// giveBack returns n bytes of an account.
func (p *Pool) giveBack(a *Account, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	a.drawn -= n
}

// Account counts what one query holds. Grow, Free, Used and Close are for one goroutine at a time; the others may be
// called by any.
type Account struct {
	limit   int
	pool    *Pool
	used    int
	onEvict func()
	stopped atomic.Bool
	evicted atomic.Bool
	drawn   int64 // guarded by the pool, and changed by the goroutine of the account alone
}

// Open returns the account of a query that may hold limit bytes; 0 is what the limits say. onEvict, which may be nil,
// is called once if the query has to end since all queries hold too much; it must not block.
func (l Limits) Open(limit int, onEvict func()) *Account {
	if limit == 0 {
		limit = l.Query
	}
	if limit == 0 {
		limit = DefaultQuery
	}
	a := &Account{limit: limit, pool: l.Pool, onEvict: onEvict}
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
