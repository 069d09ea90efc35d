package auth

import (
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

// maxCallers bounds the memory of a limiter; past it all callers share what is left.
const maxCallers = 4096

// NewLimiter returns a limiter.
func NewLimiter(burst int, refill time.Duration) *Limiter {
	return &Limiter{Burst: burst, Refill: refill, spent: map[string]spent{}, now: time.Now}
}

// Wait returns how long the caller has to wait before the next attempt; 0 means none.
func (l *Limiter) Wait(caller string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := l.left(l.bucket(caller)).attempts + 1 - float64(l.Burst)
	if over <= 0 {
		return 0
	}
	return time.Duration(over * float64(l.Refill))
}

// Failed counts a failed attempt.
func (l *Limiter) Failed(caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	caller = l.bucket(caller)
	s := l.left(caller)
	s.attempts++
	l.spent[caller] = s
}

// bucket is what the caller's attempts are counted in: its own, or the one of all for
// whom there is no room.
func (l *Limiter) bucket(caller string) string {
	if _, known := l.spent[caller]; known || len(l.spent) < maxCallers {
		return caller
	}
	if l.sweep(); len(l.spent) < maxCallers {
		return caller
	}
	return ""
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
