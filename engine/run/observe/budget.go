package observe

import (
	"slices"
	"time"
)

const (
	// Observing may cost 1 % of one processor's time, by what the server says that it took.
	// Looks at sessions and counters have parts of their own, so that neither keeps the other from its turn.
	lookShare, counterShare = 0.007, 0.003
	// burst is how much of it may be saved up.
	burst = 20 * time.Millisecond
	// remembered is of how many of its last times a statement's cost is the least: one that waited for a processor
	// says nothing of what it costs.
	remembered = 50
	// lookFloor and counterFloor are how often is asked at least, whatever it costs: who never looks sees nothing, just
	// when the server is busiest.
	lookFloor, counterFloor = time.Second, 10 * time.Second
)

// budget says when the next statement may be asked. Time is the caller's.
type budget struct {
	share float64
	floor time.Duration
	left  time.Duration
	// at is when it was asked about last, spent when something was.
	at, spent time.Time
}

// allows reports whether something may be asked now.
func (b *budget) allows(now time.Time) bool {
	if b.at.IsZero() {
		b.left, b.spent = burst, now
	} else {
		b.left = min(burst, b.left+time.Duration(b.share*float64(now.Sub(b.at))))
	}
	b.at = now
	return b.left > 0 || now.Sub(b.spent) >= b.floor
}

// spend takes what a statement has cost.
func (b *budget) spend(cost time.Duration) {
	b.left -= cost
	b.spent = b.at
}

// turn is when a statement is asked.
type turn struct {
	every, next time.Duration // next since the observer's beginning
	costs       []time.Duration
	runs        int
}

// record takes how long the statement took, and returns what it is taken to cost.
func (t *turn) record(took time.Duration) time.Duration {
	if len(t.costs) < remembered {
		t.costs = append(t.costs, took)
	} else {
		t.costs[t.runs%remembered] = took
	}
	t.runs++
	return slices.Min(t.costs)
}

// due reports whether it is its turn, and sets the next one: times that were missed are not made up for.
func (t *turn) due(since time.Duration) bool {
	if since < t.next {
		return false
	}
	t.next += t.every
	if t.next <= since {
		t.next = since + t.every - (since-t.next)%t.every
	}
	return true
}
