package observe

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

const (
	// Observing may cost 1 % of one processor's time, by what the server says that it took.
	// Looks at sessions and counters have parts of their own, so that neither keeps the other from its turn.
	lookShare, counterShare = 0.006, 0.004
	// burst is how much of it may be saved up.
	burst = 20 * time.Millisecond
	// remembered is of how many of its last times a statement's cost is the least: one that waited for a processor
	// says nothing of what it costs.
	remembered = 50
	// lookFloor is how often is looked at least, whatever it costs, and a statement of counters waits for overdueTurns of
	// its turns at most: who never looks sees nothing, just when the server is busiest.
	lookFloor    = time.Second
	overdueTurns = 3
	// What an answer costs the observer's own processor: it shares that with the load.
	rowCost, byteCost = 4 * time.Microsecond, 10 * time.Nanosecond
	// wallShare of the time to the answer is a cost at least, whatever the server says that it took.
	wallShare = 20
)

// answerCost is what reading an answer costs here, by its size: a server cannot lie about that.
func answerCost(rs *target.ResultSet) time.Duration {
	cost := time.Duration(len(rs.Rows)) * rowCost
	for _, row := range rs.Rows {
		for _, v := range row {
			if text, ok := v.(string); ok {
				cost += time.Duration(len(text)) * byteCost
			}
		}
	}
	return cost
}

// saidCost is what a statement cost the server by its own word, which is believed between a share of the time to the
// answer and all of it.
func saidCost(tookMs float64, took time.Duration) time.Duration {
	if tookMs <= 0 || tookMs >= engine.Milliseconds(took) {
		return took
	}
	return max(time.Duration(tookMs*float64(time.Millisecond)), took/wallShare)
}

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
	return b.left > 0 || b.floor > 0 && now.Sub(b.spent) >= b.floor
}

// spend takes what a statement has cost.
func (b *budget) spend(cost time.Duration) {
	b.left -= cost
	b.spent = b.at
}

// turn is when a statement is asked.
type turn struct {
	every, next time.Duration // next since the observer's beginning
	ran         time.Duration // when it was asked last
	costs       []time.Duration
	runs        int
	// failed is how often in a row there was no answer.
	failed int
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

// overdue reports whether it has waited for so long that it is asked whatever it costs.
func (t *turn) overdue(since time.Duration) bool { return since-t.ran >= overdueTurns*t.every }

// due reports whether it is its turn, and sets the next one: times that were missed are not made up for.
func (t *turn) due(since time.Duration) bool {
	if since < t.next {
		return false
	}
	t.ran = since
	t.next += t.every
	if t.next <= since {
		t.next = since + t.every - (since-t.next)%t.every
	}
	return true
}
