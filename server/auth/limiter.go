package auth

import (
	"math"
	"sync"
	"time"
)

// Limiter counts failed attempts by caller: Burst at once, then one every
// Refill. It forgets a caller who has been quiet long enough to be at Burst again.
type Limiter struct {
	Burst  int
	Refill time.Duration

	mu    sync.Mutex
	spent map[string]spent
	swept time.Time
	now   func() time.Time
}

type spent struct {
	attempts float64
	at       time.Time
}

// maxCallers bounds the memory of a limiter. Past it the one of a few who has spent the least is forgotten: whoever
// comes from ever more addresses makes nobody else wait, and does not make a limiter forget who has spent a lot.
const (
	maxCallers = 4096
	lookedAt   = 16
)

// NewLimiter returns a limiter.
func NewLimiter(burst int, refill time.Duration) *Limiter {
	return &Limiter{Burst: burst, Refill: refill, spent: map[string]spent{}, now: time.Now}
}

// Wait returns how long the caller has to wait before the next attempt; 0 means none.
func (l *Limiter) Wait(caller string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := l.left(caller).attempts + 1 - float64(l.Burst)
	if over <= 0 {
		return 0
	}
	return time.Duration(over * float64(l.Refill))
}

// Failed counts a failed attempt.
func (l *Limiter) Failed(caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.left(caller)
	s.attempts++
	if _, known := l.spent[caller]; !known && len(l.spent) >= maxCallers {
		if l.sweep(); len(l.spent) >= maxCallers {
			l.forget()
		}
	}
	l.spent[caller] = s
}

// forget makes room: of some callers, which the order of a map chooses, the one that has spent the least goes.
func (l *Limiter) forget() {
	least, found, seen := "", math.Inf(1), 0
	for other := range l.spent {
		if a := l.left(other).attempts; a < found {
			least, found = other, a
		}
		if seen++; seen == lookedAt {
			break
		}
	}
	delete(l.spent, least)
}

// sweep forgets who has regained everything, at most once every Refill.
func (l *Limiter) sweep() {
	now := l.now()
	if now.Sub(l.swept) < l.Refill {
		return
	}
	l.swept = now
	for other := range l.spent {
		if l.left(other).attempts == 0 {
			delete(l.spent, other)
		}
	}
}

// left returns what the caller has spent and not yet regained.
func (l *Limiter) left(caller string) spent {
	now := l.now()
	s, ok := l.spent[caller]
	if !ok {
		return spent{at: now}
	}
	s.attempts -= float64(now.Sub(s.at)) / float64(l.Refill)
	if s.attempts < 0 {
		s.attempts = 0
	}
	s.at = now
	return s
}
