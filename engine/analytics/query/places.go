// This part shares the places in which queries are executed between users: a few for all, fewer for each, and a queue
// that takes turns over users, so that many queries of one do not keep those of another waiting.

package query

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// PlaceLimits bound the queries of a process.
type PlaceLimits struct {
	// Total is how many are executed at a time, PerUser how many of one user. A user has a second one only while more than
	// a third of the places are free, so that others find one.
	Total, PerUser int
	// Reserved are those of them that only users have whose queries took less than Light of late: where all others are
	// taken by slow queries, a quick one still has its turn.
	Reserved int
	Light    time.Duration
	// Waiting is how many of one user may wait besides, Wait how long each does.
	Waiting int
	Wait    time.Duration
}

// DefaultPlaceLimits are those of a server.
func DefaultPlaceLimits() PlaceLimits {
	return PlaceLimits{Total: 6, PerUser: 2, Reserved: 1, Light: 3 * time.Second, Waiting: 10, Wait: time.Minute}
}

// Places hands out places. It is safe for concurrent use.
type Places struct {
	limits PlaceLimits

	mu      sync.Mutex
	free    int
	running map[string]int
	waiting map[string][]*waiter
	// turns are the users who wait, the next one first.
	turns []string
	// spent is what the queries of users took of late.
	spent map[string]spent
}

// spent is a time that is forgotten, a tenth as fast as it passes.
type spent struct {
	took time.Duration
	at   time.Time
}

// forgetRate is how many times longer a time is remembered than it took; maxSpenders bounds those who are remembered.
const (
	forgetRate  = 10
	maxSpenders = 1000
)

func (s spent) left(now time.Time) time.Duration { return max(s.took-now.Sub(s.at)/forgetRate, 0) }

// waiter is a query that waits. ready is closed when it has its place.
type waiter struct{ ready chan struct{} }

// NewPlaces returns places that are all free.
func NewPlaces(l PlaceLimits) *Places {
	return &Places{limits: l, free: l.Total, running: map[string]int{}, waiting: map[string][]*waiter{},
		spent: map[string]spent{}}
}

// Acquire waits for a place of the user's; the caller calls leave when the query is over. It is engine.CodeRateLimited
// where too many of the user's wait already or one has waited too long, and the cause of ctx when that has ended.
func (p *Places) Acquire(ctx context.Context, user string) (leave func(), err error) {
	if leave := p.TryAcquire(user); leave != nil {
		return leave, nil
	}
	p.mu.Lock()
	if n := len(p.waiting[user]); n >= p.limits.Waiting {
		running := p.running[user]
		p.mu.Unlock()
		return nil, BusyError(fmt.Sprintf("%d of your queries are under way and %d wait.", running, n))
	}
	w := &waiter{ready: make(chan struct{})}
	if len(p.waiting[user]) == 0 {
		p.turns = append(p.turns, user)
	}
	p.waiting[user] = append(p.waiting[user], w)
	p.handOut() // a place may have become free in between
	p.mu.Unlock()
	patience := time.NewTimer(p.limits.Wait)
	defer patience.Stop()
	select {
	case <-w.ready:
		return p.leaver(user), nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-patience.C:
		err = BusyError(fmt.Sprintf("The query has waited %v for its turn.", p.limits.Wait))
	}
	if p.withdraw(user, w) {
		return nil, err
	}
	// It got its place in the same moment.
	p.leaver(user)()
	return nil, err
}

// checkPoll is how often a query that has to wait for queries on other servers looks again.
const checkPoll = 200 * time.Millisecond

// AcquireChecked has acquire take a place, in which the query may begin once check says so. What check refuses with
// engine.CodeRateLimited waits and holds no place meanwhile.
func (p *Places) AcquireChecked(ctx context.Context, acquire func() (leave func(), err error),
	check func(context.Context) error) (leave func(), err error) {
	for began := time.Now(); ; {
		if leave, err = acquire(); err != nil {
			return nil, err
		}
		if err = check(ctx); err == nil {
			return leave, nil
		}
		leave()
		if !engine.HasCode(err, engine.CodeRateLimited) || time.Since(began) >= p.limits.Wait {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(checkPoll):
		}
	}
}

// TryAcquire is Acquire for who does not wait: nil is for no place.
func (p *Places) TryAcquire(user string) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting[user]) > 0 || !p.mayRun(user) {
		return nil
	}
	p.occupy(user)
	return p.leaver(user)
}

// BusyError is the refusal of a query whose user has enough of them.
func BusyError(message string) error {
	return &engine.Error{Code: engine.CodeRateLimited, Message: message,
		Hint: "Wait for some of them to end, or cancel them, and send this one again."}
}

// mayRun reports whether a place may go to a user. p.mu is held.
func (p *Places) mayRun(user string) bool {
	n := p.running[user]
	switch {
	case p.free == 0 || n >= p.limits.PerUser || n > 0 && p.free <= p.limits.Total/3:
		return false
	case p.free <= p.limits.Reserved:
		return p.spent[user].left(time.Now()) < p.limits.Light
	}
	return true
}

func (p *Places) occupy(user string) { p.free--; p.running[user]++ }

// spend remembers what a query took. p.mu is held.
func (p *Places) spend(user string, took time.Duration) {
	now := time.Now()
	if _, known := p.spent[user]; !known && len(p.spent) >= maxSpenders {
		for name, s := range p.spent {
			if s.left(now) == 0 {
				delete(p.spent, name)
			}
		}
		if len(p.spent) >= maxSpenders {
			return
		}
	}
	p.spent[user] = spent{p.spent[user].left(now) + took, now}
}

func (p *Places) leaver(user string) func() {
	began := time.Now()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.spend(user, time.Since(began))
		p.free++
		if p.running[user]--; p.running[user] == 0 {
			delete(p.running, user)
		}
		p.handOut()
	})
}

// handOut gives free places to those who wait, a user after the other. p.mu is held.
func (p *Places) handOut() {
	for i := 0; i < len(p.turns) && p.free > 0; {
		user := p.turns[i]
		if !p.mayRun(user) {
			i++
			continue
		}
		p.occupy(user)
		close(p.waiting[user][0].ready)
		p.waiting[user] = p.waiting[user][1:]
		p.turns = append(p.turns[:i], p.turns[i+1:]...)
		if len(p.waiting[user]) > 0 {
			p.turns = append(p.turns, user)
		} else {
			delete(p.waiting, user)
		}
		i = 0
	}
}

// withdraw takes back a query that waits; false when it does not wait any more.
func (p *Places) withdraw(user string, w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.waiting[user]
	for i := range list {
		if list[i] != w {
			continue
		}
		p.waiting[user] = append(list[:i:i], list[i+1:]...)
		if len(list) == 1 {
			delete(p.waiting, user)
			for t := range p.turns {
				if p.turns[t] == user {
					p.turns = append(p.turns[:t], p.turns[t+1:]...)
					break
				}
			}
		}
		return true
	}
	return false
}
