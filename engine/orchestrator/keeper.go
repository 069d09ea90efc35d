package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// The patience of a keeper.
const (
	storeLimit   = 10 * time.Second // one attempt
	firstBackoff = 100 * time.Millisecond
	mostBackoff  = 5 * time.Second
	// refusals bounds attempts that the store answered with an error of its own.
	refusals = 3
	// fullTicks waiting keep their worker rows, mostTicks keep their points.
	fullTicks = 60
	mostTicks = 1800
)

// keeper writes what one run must not lose, in order, behind the run's loop: the
// loop never waits for the store. While the store is away the work is retried
// with back-off and memory stays bounded: seconds lose their worker rows first.
type keeper struct {
	store store.Runs
	runID string
	log   zerolog.Logger

	mu      sync.Mutex
	queue   []*job
	wake    chan struct{}
	ticks   int
	thinned int64
	away    bool
	closing bool

	// outages tell when the store went away and came back; linesLost counts lines of the run's log that were given up.
	outages   chan outage
	linesLost atomic.Int64

	// fenced is closed when another server owns the run.
	fenced    chan struct{}
	fenceOnce sync.Once
}

// job is one write. done is closed when it is persisted or given up; err tells which.
type job struct {
	name string
	do   func(ctx context.Context, again bool) error
	tick *store.Tick
	done chan struct{}
	err  error
}

func newKeeper(s store.Runs, runID string, log zerolog.Logger) *keeper {
	return &keeper{store: s, runID: runID, log: log, wake: make(chan struct{}, 1), outages: make(chan outage, 16), fenced: make(chan struct{})}
}

func (k *keeper) push(j *job) *job {
	j.done = make(chan struct{})
	k.mu.Lock()
	k.queue = append(k.queue, j)
	if j.tick != nil {
		k.ticks++
		k.thin()
	}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return j
}

// thin bounds the waiting ticks. It needs mu.
func (k *keeper) thin() {
	if k.ticks <= fullTicks {
		return
	}
	seen := 0
	for i := len(k.queue) - 1; i >= 1; i-- { // the first may be on its way
		t := k.queue[i].tick
		if t == nil {
			continue
		}
		seen++
		if seen > mostTicks {
			k.linesLost.Add(int64(len(t.Logs)))
			k.queue = append(k.queue[:i], k.queue[i+1:]...)
			k.ticks--
			k.thinned++
		} else if seen > fullTicks && t.Snapshots != nil {
			t.Snapshots, t.Workers = nil, nil
			k.thinned++
		}
	}
}

// add queues a write that may be repeated.
func (k *keeper) add(name string, do func(ctx context.Context) error) *job {
	return k.push(&job{name: name, do: func(ctx context.Context, _ bool) error { return do(ctx) }})
}

// saveTick queues one second. The keeper owns t afterwards.
func (k *keeper) saveTick(t *store.Tick) {
	k.push(&job{name: "a second of the run", tick: t, do: func(ctx context.Context, _ bool) error { return k.store.SaveTick(ctx, *t) }})
}

// transition queues a change. expected are its events with the sequence ids
// that they are going to have.
func (k *keeper) transition(t store.Transition, expected []engine.Event) *job {
	return k.push(&job{name: "a transition to " + string(t.To), do: func(ctx context.Context, again bool) error {
		if again {
			// The attempt before may have been committed although its answer was lost.
			if done, err := k.applied(ctx, t, expected); err != nil || done {
				return err
			}
		}
		got, err := k.store.Transition(ctx, t)
		if errors.Is(err, store.ErrConflict) {
			if done, lookErr := k.applied(ctx, t, expected); lookErr == nil && done {
				return nil
			}
		}
		if err == nil && len(got) > 0 && len(expected) > 0 && got[0].SequenceID != expected[0].SequenceID {
			k.log.Error().Str("run_id", k.runID).Int64("expected", expected[0].SequenceID).Int64("stored", got[0].SequenceID).Msg("an event was stored under another sequence id than it was sent with")
		}
		return err
	}})
}

// applied reports whether the store already shows what t asks for.
func (k *keeper) applied(ctx context.Context, t store.Transition, expected []engine.Event) (bool, error) {
	if len(expected) > 0 {
		events, err := k.store.Events(ctx, k.runID, expected[0].SequenceID-1)
		if err != nil {
			return false, err
		}
		return len(events) > 0 && events[0].SequenceID == expected[0].SequenceID && events[0].Type == expected[0].Type, nil
	}
	run, err := k.store.Run(ctx, k.runID)
	if err != nil {
		return false, err
	}
	return (t.To == "" || run.Status == t.To) && (t.Phase == nil || run.Phase == *t.Phase), nil
}

// close ends the keeper once everything queued is written.
func (k *keeper) close() {
	k.mu.Lock()
	k.closing = true
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run writes until ctx ends, or the keeper is closed and has written everything.
func (k *keeper) run(ctx context.Context) {
	for {
		k.mu.Lock()
		var next *job
		if len(k.queue) > 0 {
			next = k.queue[0]
		}
		over := k.closing && next == nil
		k.mu.Unlock()
		if over {
			return
		}
		if next == nil {
			select {
			case <-ctx.Done():
				return
			case <-k.wake:
			}
			continue
		}
		next.err = k.write(ctx, next)
		if ctx.Err() != nil && next.err != nil {
			return
		}
		k.mu.Lock()
		k.queue[0] = nil
		k.queue = k.queue[1:]
		if next.tick != nil {
			if next.err != nil {
				k.linesLost.Add(int64(len(next.tick.Logs)))
			}
			k.ticks--
		}
		k.mu.Unlock()
		close(next.done)
	}
}

// write tries until the store has taken the job, has refused it, or ctx ends.
func (k *keeper) write(ctx context.Context, j *job) error {
	backoff := firstBackoff
	refused := 0
	for attempt := 0; ; attempt++ {
		tctx, cancel := context.WithTimeout(ctx, storeLimit)
		err := j.do(tctx, attempt > 0)
		cancel()
		switch {
		case err == nil:
			k.reachable(true, nil)
			return nil
		case ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrFenced):
			k.fenceOnce.Do(func() { close(k.fenced) })
			return err
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
			k.reachable(false, err)
		default:
			if refused++; refused >= refusals || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
				k.log.Error().Err(err).Str("run_id", k.runID).Str("what", j.name).Msg("the control store refused a write")
				return fmt.Errorf("writing %s: %w", j.name, err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, mostBackoff)
	}
}

// isAway reports whether the store did not answer when it was last written to.
func (k *keeper) isAway() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.away
}

// reachable logs when the store goes and comes back, once each.
func (k *keeper) reachable(yes bool, err error) {
	k.mu.Lock()
	changed := k.away == yes
	k.away = !yes
	waiting := len(k.queue)
	k.mu.Unlock()
	if changed {
		select {
		case k.outages <- outage{at: time.Now(), away: !yes, waiting: waiting, err: err}:
		default: // who changes so often is known to be away
		}
	}
	switch {
	case !changed:
	case yes:
		k.log.Info().Str("run_id", k.runID).Int("waiting", waiting).Msg("the control store is back")
	default:
		k.log.Warn().Err(err).Str("run_id", k.runID).Msg("the control store is away; the run goes on and is written when it is back")
	}
}
