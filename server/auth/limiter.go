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

	mu      sync.Mutex
	callers map[string]callerState
	sweptAt time.Time
	now     func() time.Time
}

type callerState struct {
	attempts float64
	at       time.Time
}

// maxCallers bounds the memory of a limiter. Past it the one of a few who has spent the least is forgotten: whoever
// comes from ever more addresses makes nobody else wait, and does not make a limiter forget who has spent a lot.
const (
	maxCallers     = 4096
	evictionSample = 16
)

// NewLimiter returns a limiter.
func NewLimiter(burst int, refill time.Duration) *Limiter {
	return &Limiter{Burst: burst, Refill: refill, callers: map[string]callerState{}, now: time.Now}
}

// Wait returns how long the caller has to wait before the next attempt; 0 means none.
func (l *Limiter) Wait(caller string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := l.outstanding(caller).attempts + 1 - float64(l.Burst)
	if over <= 0 {
		return 0
	}
	return time.Duration(over * float64(l.Refill))
}

// RecordFailure counts a failed attempt.
func (l *Limiter) RecordFailure(caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.outstanding(caller)
	s.attempts++
	if _, known := l.callers[caller]; !known && len(l.callers) >= maxCallers {
		if l.sweep(); len(l.callers) >= maxCallers {
			l.evict()
		}
	}
	l.callers[caller] = s
}

// evict makes room: of some callers, which the order of a map chooses, the one that has spent the least goes.
func (l *Limiter) evict() {
	minimum, found, seen := "", math.Inf(1), 0
	for other := range l.callers {
		if a := l.outstanding(other).attempts; a < found {
			minimum, found = other, a
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	delete(l.callers, minimum)
}

// sweep forgets who has regained everything, at most once every Refill.
func (l *Limiter) sweep() {
	now := l.now()
	if now.Sub(l.sweptAt) < l.Refill {
		return
	}
	l.sweptAt = now
	for other := range l.callers {
		if l.outstanding(other).attempts == 0 {
			delete(l.callers, other)
		}
	}
}

// outstanding returns what the caller has spent and not yet regained.
func (l *Limiter) outstanding(caller string) callerState {
	now := l.now()
	s, ok := l.callers[caller]
	if !ok {
		return callerState{at: now}
	}
	s.attempts -= float64(now.Sub(s.at)) / float64(l.Refill)
	if s.attempts < 0 {
		s.attempts = 0
	}
	s.at = now
	return s
}
