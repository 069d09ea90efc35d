// Package delivery brings things to another system over HTTP, in order, and beside all else: a queue with an end, one
// delivery at a time, back-off, and a count of what was lost and why. Who has something to deliver never waits.
package delivery

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Why something was lost.
const (
	LostQueueFull = "queue_full" // the oldest gives way
	LostRefused   = "refused"    // the other side does not want it
	LostGivenUp   = "given_up"   // it has not arrived for as long as was tried
	LostEnd       = "shutdown"
)

// Limits of a queue.
type Limits struct {
	// Most and Bytes bound what waits, and what is on its way.
	Most, Bytes int
	// AtOnce is the most that one delivery has.
	AtOnce int
	// First and Longest bound the pause before another attempt.
	First, Longest time.Duration
	// Patience is for how long one delivery is tried; 0 is until there is no room.
	Patience time.Duration
}

// Outcome is what became of an attempt.
type Outcome struct {
	// Taken is how many of the things have arrived.
	Taken int
	// Again: the rest is to be sent again, after the time that the other side has named, if any. Else it is lost.
	Again bool
	After time.Duration
	Err   error
}

// Thing is something to deliver.
type Thing interface{ Bytes() int }

// Send makes one attempt. It ends with ctx.
type Send[T Thing] func(ctx context.Context, things []T, attempt int) Outcome

// Queue delivers things. It is safe for concurrent use.
type Queue[T Thing] struct {
	// To names the other side in the log and in metrics, without secrets.
	to     string
	limits Limits
	send   Send[T]
	log    zerolog.Logger

	sending context.Context
	cut     context.CancelFunc
	ended   chan struct{}
	wake    chan struct{}

	mu       sync.Mutex
	waiting  []T
	bytes    int
	ending   bool
	onTheWay int
	counts   Counts
	said     time.Time
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

// complainEvery is how often the log says that something is lost.
const complainEvery = time.Minute

// Open begins to deliver.
func Open[T Thing](to string, l Limits, send Send[T], log zerolog.Logger) *Queue[T] {
	q := &Queue[T]{to: to, limits: l, send: send, log: log, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	q.counts.Lost = map[string]int64{LostQueueFull: 0, LostRefused: 0, LostGivenUp: 0, LostEnd: 0}
	q.sending, q.cut = context.WithCancel(context.Background())
	go q.work()
	return q
}

// Put adds things. The oldest that wait give way where there is no room.
func (q *Queue[T]) Put(things ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ending {
		q.counts.Lost[LostEnd] += int64(len(things))
		return
	}
	for _, t := range things {
		q.bytes += t.Bytes()
	}
	q.waiting = append(q.waiting, things...)
	gone := 0
	for gone < len(q.waiting) && (q.onTheWay+len(q.waiting)-gone > q.limits.Most || q.bytes > q.limits.Bytes) {
		q.bytes -= q.waiting[gone].Bytes()
		gone++
	}
	if gone > 0 {
		clear(q.waiting[:gone])
		q.waiting = q.waiting[gone:]
		q.lose(LostQueueFull, gone, nil)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Lose counts things that could not even be put into the queue.
func (q *Queue[T]) Lose(why string, n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lose(why, n, err)
}

// lose needs mu.
func (q *Queue[T]) lose(why string, n int, err error) {
	q.counts.Lost[why] += int64(n)
	q.wrong(err)
	if time.Since(q.said) < complainEvery {
		return
	}
	q.said = time.Now()
	lost := int64(0)
	for _, n := range q.counts.Lost {
		lost += n
	}
	q.log.Warn().Err(err).Str("destination", q.to).Str("reason", why).Int64("lost", lost).
		Msg("what was to be delivered is lost; runs are not concerned")
}

// Counts are those so far.
func (q *Queue[T]) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.counts
	c.Waiting, c.Bytes, c.Failing = q.onTheWay+len(q.waiting), q.bytes, q.failing
	c.Lost = map[string]int64{}
	for why, n := range q.counts.Lost {
		c.Lost[why] = n
	}
	return c
}

// Close delivers what waits, for as long as ctx allows.
func (q *Queue[T]) Close(ctx context.Context) {
	q.mu.Lock()
	q.ending = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	stop := context.AfterFunc(ctx, q.cut)
	defer stop()
	<-q.ended // soon after ctx: all that waits in there has it
	q.cut()
}

func (q *Queue[T]) work() {
	defer close(q.ended)
	for {
		things, ending := q.take()
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

func (q *Queue[T]) take() (things []T, ending bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), q.limits.AtOnce)
	things = q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	q.onTheWay = n
	return things, q.ending
}

// deliver sends things until they have arrived, or are lost.
func (q *Queue[T]) deliver(things []T) {
	begun, pause := time.Now(), q.limits.First
	why := LostRefused
	var out Outcome
	for attempt := 0; ; attempt++ {
		if q.sending.Err() != nil {
			why = LostEnd
			break
		}
		out = q.send(q.sending, things, attempt)
		if !out.Again {
			break
		}
		if q.limits.Patience > 0 && time.Since(begun) > q.limits.Patience {
			why = LostGivenUp
			break
		}
		q.failed(out.Err)
		// Half of the pause is by chance: servers that were turned away together do not come again together.
		wait := pause/2 + rand.N(pause/2+1)
		pause = min(2*pause, q.limits.Longest)
		select {
		case <-time.After(max(wait, min(out.After, mostAfter))):
		case <-q.sending.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onTheWay = 0
	for _, t := range things {
		q.bytes -= t.Bytes()
	}
	taken := len(things)
	if out.Err != nil || out.Again || why == LostEnd {
		taken = min(out.Taken, len(things))
	}
	q.counts.Sent += int64(taken)
	if lost := len(things) - taken; lost > 0 {
		q.failing = q.failing || why != LostEnd
		q.lose(why, lost, out.Err)
		return
	}
	if q.failing {
		q.log.Info().Str("destination", q.to).Msg("deliveries arrive again")
	}
	q.failing = false
}

// mostAfter bounds for how long the other side may send away.
const mostAfter = 5 * time.Minute

func (q *Queue[T]) failed(err error) {
	if errors.Is(err, context.Canceled) && q.sending.Err() != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counts.Retries++
	q.wrong(err)
	if !q.failing {
		q.log.Warn().Err(err).Str("destination", q.to).
			Msg("a delivery does not arrive and is tried again; runs are not concerned")
	}
	q.failing = true
}

// wrong keeps what an attempt has said that did not succeed. It needs mu.
func (q *Queue[T]) wrong(err error) {
	if err != nil {
		q.counts.LastError, q.counts.LastErrorAt = err.Error(), time.Now()
	}
}
