// Package delivery brings things to another system over HTTP, in order, and beside all else: a queue with an end, one
// delivery at a time, back-off, and a count of what was lost and why. Who has something to deliver never waits.
package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/base/backoff"
)

// Why something was lost.
const (
	LostQueueFull = "queue_full" // the oldest gives way
	LostRejected  = "refused"    // the other side does not want it
	LostExpired   = "given_up"   // it has not arrived for as long as was tried
	LostShutdown  = "shutdown"
)

// Limits of a queue.
type Limits struct {
	// MaxItems and Bytes bound what waits, and what is on its way.
	MaxItems, MaxBytes int
	// BatchSize is the most that one delivery has.
	BatchSize int
	// MinBackoff and MaxBackoff bound the pause before another attempt.
	MinBackoff, MaxBackoff time.Duration
	// RetryTimeout is for how long one delivery is tried; 0 is until there is no room.
	RetryTimeout time.Duration
}

// Outcome is what became of an attempt.
type Outcome struct {
	// Delivered is how many of the things have arrived.
	Delivered int
	// Retry: the rest is to be sent again, after the time that the other side has named, if any. Else it is lost.
	Retry      bool
	RetryAfter time.Duration
	Err        error
}

// Item is something to deliver.
type Item interface{ Bytes() int }

// Send makes one attempt. It ends with ctx.
type Send[T Item] func(ctx context.Context, things []T, attempt int) Outcome

// Queue delivers things. It is safe for concurrent use.
type Queue[T Item] struct {
	// To names the other side in the log and in metrics, without secrets.
	to     string
	limits Limits
	send   Send[T]
	log    zerolog.Logger

	sending context.Context
	cut     context.CancelFunc
	done    chan struct{}
	wake    chan struct{}

	mu       sync.Mutex
	waiting  []T
	bytes    int
	closing  bool
	inFlight int
	counts   Counts
	loggedAt time.Time
	failing  bool
}

// Counts are what became of the things so far, and what waits.
type Counts struct {
	Sent, Retries  int64
	Lost           map[string]int64
	Waiting, Bytes int
	// Failing: the last attempt did not succeed.
	Failing bool
	// LastError is what the last one said that did not, at LastErrorAt; "" where all have succeeded.
	LastError   string
	LastErrorAt time.Time
}

// logInterval is how often the log says that something is lost.
const logInterval = time.Minute

// Open begins to deliver.
func Open[T Item](to string, l Limits, send Send[T], log zerolog.Logger) *Queue[T] {
	q := &Queue[T]{to: to, limits: l, send: send, log: log, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	q.counts.Lost = map[string]int64{LostQueueFull: 0, LostRejected: 0, LostExpired: 0, LostShutdown: 0}
	q.sending, q.cut = context.WithCancel(context.Background()) //nolint:gosec // it ends with its owner
	go q.work()
	return q
}

// Enqueue adds things. The oldest that wait give way where there is no room.
func (q *Queue[T]) Enqueue(things ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closing {
		q.counts.Lost[LostShutdown] += int64(len(things))
		return
	}
	for _, t := range things {
		q.bytes += t.Bytes()
	}
	q.waiting = append(q.waiting, things...)
	gone := 0
	for gone < len(q.waiting) && (q.inFlight+len(q.waiting)-gone > q.limits.MaxItems || q.bytes > q.limits.MaxBytes) {
		q.bytes -= q.waiting[gone].Bytes()
		gone++
	}
	if gone > 0 {
		clear(q.waiting[:gone])
		q.waiting = q.waiting[gone:]
		q.countLost(LostQueueFull, gone, nil)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// CountLost counts things that could not even be put into the queue.
func (q *Queue[T]) CountLost(why string, n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.countLost(why, n, err)
}

// countLost needs mu.
func (q *Queue[T]) countLost(why string, n int, err error) {
	q.counts.Lost[why] += int64(n)
	q.recordError(err)
	if time.Since(q.loggedAt) < logInterval {
		return
	}
	q.loggedAt = time.Now()
	lost := int64(0)
	for _, n := range q.counts.Lost {
		lost += n
	}
	q.log.Warn().Err(err).Str("destination", q.to).Str("reason", why).Int64("lost", lost).
		Msg("deliveries are dropped; runs are not affected")
}

// Counts are those so far.
func (q *Queue[T]) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.counts
	c.Waiting, c.Bytes, c.Failing = q.inFlight+len(q.waiting), q.bytes, q.failing
	c.Lost = map[string]int64{}
	for why, n := range q.counts.Lost {
		c.Lost[why] = n
	}
	return c
}

// Close delivers what waits, for as long as ctx allows.
func (q *Queue[T]) Close(ctx context.Context) {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	stop := context.AfterFunc(ctx, q.cut)
	defer stop()
	<-q.done // soon after ctx: all that waits in there has it
	q.cut()
}

func (q *Queue[T]) work() {
	defer close(q.done)
	for {
		things, ending := q.nextBatch()
		switch {
		case len(things) > 0:
			q.deliver(things)
		case ending:
			return
		default:
			<-q.wake
		}
	}
}

func (q *Queue[T]) nextBatch() (things []T, ending bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), q.limits.BatchSize)
	things = q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	q.inFlight = n
	return things, q.closing
}

// deliver sends things until they have arrived, or are lost.
func (q *Queue[T]) deliver(things []T) {
	begun, again := time.Now(), backoff.Backoff{Min: q.limits.MinBackoff, Max: q.limits.MaxBackoff}
	why := LostRejected
	var out Outcome
	for attempt := 0; ; attempt++ {
		if q.sending.Err() != nil {
			why = LostShutdown
			break
		}
		out = q.send(q.sending, things, attempt)
		if !out.Retry {
			break
		}
		if q.limits.RetryTimeout > 0 && time.Since(begun) > q.limits.RetryTimeout {
			why = LostExpired
			break
		}
		q.failed(out.Err)
		wait := backoff.Jitter(again.Next())
		select {
		case <-time.After(max(wait, min(out.RetryAfter, maxRetryAfter))):
		case <-q.sending.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight = 0
	for _, t := range things {
		q.bytes -= t.Bytes()
	}
	taken := len(things)
	if out.Err != nil || out.Retry || why == LostShutdown {
		taken = min(out.Delivered, len(things))
	}
	q.counts.Sent += int64(taken)
	if lost := len(things) - taken; lost > 0 {
		q.failing = q.failing || why != LostShutdown
		q.countLost(why, lost, out.Err)
		return
	}
	if q.failing {
		q.log.Info().Str("destination", q.to).Msg("deliveries succeed again")
	}
	q.failing = false
}

// maxRetryAfter bounds for how long the other side may send away.
const maxRetryAfter = 5 * time.Minute

func (q *Queue[T]) failed(err error) {
	if errors.Is(err, context.Canceled) && q.sending.Err() != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counts.Retries++
	q.recordError(err)
	if !q.failing {
		q.log.Warn().Err(err).Str("destination", q.to).
			Msg("a delivery failed and is retried; runs are not affected")
	}
	q.failing = true
}

// recordError keeps what an attempt has said that did not succeed. It needs mu.
func (q *Queue[T]) recordError(err error) {
	if err != nil {
		q.counts.LastError, q.counts.LastErrorAt = err.Error(), time.Now()
	}
}
