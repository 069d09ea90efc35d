// Package writer writes what a run must not lose to the control store, behind
// the run's loop: in order, again while the store is away, and in bounded memory.
package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/run/lifecycle"
	"github.com/loadstone-db/loadstone/engine/store"
)

// StoreTimeout bounds one attempt to reach the control store.
const StoreTimeout = 10 * time.Second

// How long a writer waits.
const (
	// maxRejections bounds attempts that the store answered with an error of its own.
	maxRejections = 3
	// maxFullTicks waiting keep their worker rows, as far as these take no more than fullBytes, and the distributions of
	// their kinds of statements, kindBytes; mostTicks keep their points.
	maxFullTicks = 60
	maxRowBytes  = 16 << 20
	maxKindBytes = 8 << 20
	maxTicks     = 1800
	// maxRowsPerTx of results are one transaction.
	maxRowsPerTx = 100
)

// Store is what is written to of the control store, and what tells whether that is there already.
type Store interface {
	store.Leases
	// Run returns the run. The scenario's inline DSN comes back sealed and redacted.
	Run(ctx context.Context, runID string) (engine.Run, error)
	// Events returns the control events after a sequence, those of the given types alone where some are given.
	Events(ctx context.Context, runID string, afterSequence int64, only ...engine.EventType) ([]engine.Event, error)
	// Transition applies t and returns the persisted events.
	Transition(ctx context.Context, t store.Transition) ([]engine.Event, error)
	// SaveTick persists one second of a run. Repeating it is harmless.
	SaveTick(ctx context.Context, t store.Tick) error
	// SaveResult inserts or updates test_results rows of one run by ResultID, all of them or none; nil fields are
	// left as they are. With an Epoch, the first row's, that is not the run's it changes nothing and is ErrFenced.
	SaveResult(ctx context.Context, rows ...engine.RunResult) error
	// SaveArtifact records a fetched artifact; the same name and checksum again is harmless. epoch is
	// that of RunResult. A part of executions that were deleted is ErrExecutionsDeleted.
	SaveArtifact(ctx context.Context, epoch int64, a engine.Artifact) error
}

// Writer writes what one run must not lose, in order, behind the run's loop: the
// loop never waits for the store. While the store is away the work is retried
// with back-off and memory stays bounded: seconds lose their worker rows first.
type Writer struct {
	store Store
	runID string
	epoch int64
	log   zerolog.Logger

	mu    sync.Mutex
	queue []*Write
	wake  chan struct{}
	ticks int
	// rows and kinds are the bytes that they take.
	rows, kinds int
	away        bool
	// wentAway is when the first of the attempts began that did not reach the store, backAt when it was reached again:
	// zero while it is away.
	wentAway, backAt time.Time
	closing          bool
	leaseSeenAt      time.Time // when the last second that is stored was begun to be written
	lastWriteTook    time.Duration

	// outages tell when the store went away and came back; linesLost counts lines of the run's log that were given up.
	outages   chan Outage
	linesLost atomic.Int64

	// fenced is closed when another server owns the run.
	fenced    chan struct{}
	fenceOnce sync.Once
}

// Write is one write, queued or done.
type Write struct {
	name string
	do   func(ctx context.Context, again bool) error
	tick *store.Tick
	// rows are the bytes of the tick's rows of run workers, kinds those of their distributions by kind.
	rows, kinds int
	done        chan struct{}
	err         error
}

// Outage is a change of whether the control store can be reached.
type Outage struct {
	At   time.Time
	Away bool
	// Waiting is how many writes wait for the store.
	Waiting int
	Err     error
}

// Done is closed when the write is persisted or given up.
func (w *Write) Done() <-chan struct{} { return w.done }

// Err tells why a write that is done was given up, nil when it is persisted.
func (w *Write) Err() error { return w.err }

// New is the writer of one run, owned in an epoch; Run has to be called for it to write.
func New(s Store, runID string, epoch int64, log zerolog.Logger) *Writer {
	return &Writer{store: s, runID: runID, epoch: epoch, log: log, wake: make(chan struct{}, 1),
		outages: make(chan Outage, 16),
		fenced:  make(chan struct{}), leaseSeenAt: time.Now()}
}

// Outages tell when the store went away and came back.
func (k *Writer) Outages() <-chan Outage { return k.outages }

// Fenced is closed when another server owns the run.
func (k *Writer) Fenced() <-chan struct{} { return k.fenced }

// Owns reports whether the run is this server's as far as it knows. leased: and its lease
// has not expired since the store last took a second of the run, or the run was claimed.
func (k *Writer) Owns(leased bool) bool {
	select {
	case <-k.fenced:
		return false
	default:
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return !leased || time.Since(k.leaseSeenAt) < k.store.Lease()
}

// LastWriteDuration is how long the last write took that succeeded, 0 before the first.
func (k *Writer) LastWriteDuration() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastWriteTook
}

// LinesLost counts lines of the run's log that were given up.
func (k *Writer) LinesLost() int64 { return k.linesLost.Load() }

func (k *Writer) push(j *Write) *Write {
	j.done = make(chan struct{})
	k.mu.Lock()
	k.queue = append(k.queue, j)
	if j.tick != nil {
		j.rows, j.kinds = j.tick.Size()
		k.addSize(j, 1)
		k.ticks++
		k.thinTicks()
	}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
	return j
}

// thinTicks bounds the waiting ticks, the newest of which are kept. It needs mu.
func (k *Writer) thinTicks() {
	if k.ticks <= maxFullTicks && k.rows <= maxRowBytes && k.kinds <= maxKindBytes {
		return
	}
	seen, rows, kinds := 0, 0, 0
	for i := len(k.queue) - 1; i >= 1; i-- { // the first may be on its way
		j := k.queue[i]
		t := j.tick
		if t == nil {
			continue
		}
		seen++
		rows += j.rows
		kinds += j.kinds
		if j.rows > 0 && seen > 1 && (seen > maxFullTicks || rows > maxRowBytes) {
			t.Snapshots, t.Workers = nil, nil
			k.addSize(j, -1)
			j.rows, j.kinds = 0, 0
		}
		if j.kinds > 0 && seen > 1 && kinds > maxKindBytes {
			for s := range t.Snapshots {
				t.Snapshots[s].KindLatency = nil
			}
			k.kinds -= j.kinds
			j.kinds = 0
		}
		if seen > maxTicks {
			k.linesLost.Add(int64(len(t.Logs)))
			k.queue = slices.Delete(k.queue, i, i+1)
			k.ticks--
		}
	}
}

// addSize counts what a tick takes, or takes it off again. It needs mu.
func (k *Writer) addSize(j *Write, sign int) {
	k.rows += sign * j.rows
	k.kinds += sign * j.kinds
}

// Add queues a write that may be repeated.
func (k *Writer) Add(name string, do func(ctx context.Context) error) *Write {
	return k.push(&Write{name: name, do: func(ctx context.Context, _ bool) error { return do(ctx) }})
}

// SaveResults queues rows of the run's results, in their order. then, which may be nil, is
// called when they are stored.
func (k *Writer) SaveResults(name string, rows []engine.RunResult, then func()) *Write {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Epoch = k.epoch
	}
	return k.Add(name, func(ctx context.Context) error {
		// What a store that is slow has taken is not written again: a thousand rows would never come to their end.
		for len(rows) > 0 {
			some := rows[:min(len(rows), maxRowsPerTx)]
			if err := k.store.SaveResult(ctx, some...); err != nil {
				return err
			}
			rows = rows[len(some):]
		}
		if then != nil {
			then()
		}
		return nil
	})
}

// SaveArtifact queues a part of the record.
func (k *Writer) SaveArtifact(a engine.Artifact) *Write {
	return k.Add("a part of the record",
		func(ctx context.Context) error { return k.store.SaveArtifact(ctx, k.epoch, a) })
}

// SaveTick queues one second. The writer owns t afterwards.
func (k *Writer) SaveTick(t *store.Tick) {
	k.push(&Write{name: "a second of the run", tick: t,
		do: func(ctx context.Context, _ bool) error { return k.store.SaveTick(ctx, *t) }})
}

// Transition queues a change. expected are its events with the sequence ids
// that they are going to have.
func (k *Writer) Transition(t store.Transition, expected []engine.Event) *Write {
	// By their ids the store knows them again: one attempt may be committed when the next one is under way.
	for i := range t.Events {
		if t.Events[i].EventID == "" {
			t.Events[i].EventID = uuid.NewString()
		}
	}
	return k.push(&Write{name: "a transition to " + string(t.To), do: func(ctx context.Context, again bool) error {
		if again {
			// The attempt before may have been committed although its answer was lost.
			if done, err := k.applied(ctx, t); err != nil || done {
				return err
			}
		}
		got, err := k.store.Transition(ctx, t)
		if errors.Is(err, store.ErrConflict) {
			if done, lookErr := k.applied(ctx, t); lookErr == nil && done {
				return nil
			}
		}
		if err == nil && len(got) > 0 && len(expected) > 0 && got[0].SequenceID != expected[0].SequenceID {
			k.log.Error().Str("run_id", k.runID).Int64("expected", expected[0].SequenceID).Int64("stored", got[0].SequenceID).
				Msg("an event was stored under another sequence id than it was sent with")
		}
		return err
	}})
}

// applied reports whether the store already shows what t asks for.
func (k *Writer) applied(ctx context.Context, t store.Transition) (bool, error) {
	if len(t.Events) > 0 {
		events, err := k.store.Events(ctx, k.runID, 0)
		return slices.ContainsFunc(events, func(e engine.Event) bool { return e.EventID == t.Events[0].EventID }), err
	}
	run, err := k.store.Run(ctx, k.runID)
	if err != nil {
		return false, err
	}
	return (t.To == "" || run.Status == t.To) && (t.Phase == nil || run.Phase == *t.Phase), nil
}

// Close ends the writer once everything queued is written.
func (k *Writer) Close() {
	k.mu.Lock()
	k.closing = true
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends, or the writer is closed and has written everything.
func (k *Writer) Run(ctx context.Context) {
	for {
		k.mu.Lock()
		var next *Write
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
		if k.Owns(false) {
			next.err = k.write(ctx, next)
		} else {
			next.err = store.ErrFenced // what the new owner has written is not touched
		}
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
			k.addSize(next, -1)
		}
		k.mu.Unlock()
		close(next.done)
	}
}

// write tries until the store has taken the job, has refused it, or ctx ends.
func (k *Writer) write(ctx context.Context, j *Write) error {
	again := newBackoff()
	refused := 0
	for attempt := 0; ; attempt++ {
		begin := time.Now()
		tctx, cancel := context.WithTimeout(ctx, StoreTimeout)
		err := j.do(tctx, attempt > 0)
		cancel()
		switch {
		case err == nil:
			k.reachable(true, begin, nil)
			k.mu.Lock()
			if k.lastWriteTook = time.Since(begin); j.tick != nil {
				k.leaseSeenAt = begin
			}
			k.mu.Unlock()
			return nil
		case ctx.Err() != nil:
			return err
		case errors.Is(err, store.ErrFenced):
			k.fenceOnce.Do(func() { close(k.fenced) })
			return err
		case errors.Is(err, store.ErrExecutionsDeleted):
			return err // an answer like another
		case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
			k.reachable(false, begin, err)
		default:
			if refused++; refused >= maxRejections || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
				k.log.Error().Err(err).Str("run_id", k.runID).Str("what", j.name).Msg("the control store refused a write")
				return fmt.Errorf("writing %s: %w", j.name, err)
			}
		}
		if !again.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// Away reports whether the store did not answer when it was last written to.
func (k *Writer) Away() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.away
}

// LastOutage is when the store went away last and when it was back: the zero time while it is away. Both are zero where
// it never was.
func (k *Writer) LastOutage() (from, to time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wentAway, k.backAt
}

// reachable logs when the store goes and comes back, once each. begin is when the attempt began that says so.
func (k *Writer) reachable(yes bool, begin time.Time, err error) {
	k.mu.Lock()
	changed := k.away == yes
	k.away = !yes
	switch {
	case changed && yes:
		k.backAt = time.Now()
	case changed:
		k.wentAway, k.backAt = begin, time.Time{}
	}
	waiting := len(k.queue)
	k.mu.Unlock()
	if changed {
		select {
		case k.outages <- Outage{At: time.Now(), Away: !yes, Waiting: waiting, Err: err}:
		default: // who changes so often is known to be away
		}
	}
	switch {
	case !changed:
	case yes:
		k.log.Info().Str("run_id", k.runID).Int("waiting", waiting).Msg("the control store is back")
	default:
		k.log.Warn().Err(err).Str("run_id", k.runID).
			Msg("the control store is unavailable; the run continues and is written later")
	}
}

// newBackoff is how far attempts at the control store are apart.
func newBackoff() backoff.Backoff {
	return backoff.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
}

// Retry repeats f with back-off until it succeeds or ctx ends; it returns the last error.
func Retry(ctx context.Context, f func() error) error {
	again := newBackoff()
	for {
		if err := f(); err == nil || !again.Wait(ctx) {
			return err
		}
	}
}

// Transition is a decided change as the store writes it.
func Transition(c lifecycle.Change) store.Transition {
	return store.Transition{From: []engine.Status{c.From}, To: c.To, Phase: c.Phase, StopReason: c.StopReason,
		CancellationReason: c.CancellationReason,
		WarmupStartTime:    c.WarmupStartTime, WarmupEndTime: c.WarmupEndTime, MeasurementEndTime: c.MeasurementEndTime,
		EndTime: c.EndTime, Events: c.Events}
}
