// This part brings the seconds of runs that are going on into the results database, about a second after they
// were: the server that owns a run adds up the snapshots of its run workers as they are stored. They are provisional. A
// run that has ended is taken in from its record, which replaces them; whatever was dropped here is there then.
//
// # Beside the load
//
// Tick notes and returns: it waits for nothing and keeps a bounded number of snapshots, the oldest of which go first.
// One goroutine adds up and writes, a transaction for each run and second at most; what could not be written waits, and
// later seconds join it.
//
// # One writer
//
// A run's owner writes in its epoch, and only snapshots that the control store has taken in that epoch come here.
// Batches have numbers that rise, so that one whose answer was lost is added once; who takes a run over goes on behind
// the last snapshot of each run worker that is there.

package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

// LiveTarget is where live seconds go. ErrFenced is of a run that somebody else writes now, or that was taken in or
// deleted.
type LiveTarget interface {
	// BeginLive makes the run this epoch's, and returns the last snapshot of each run worker that is there.
	BeginLive(ctx context.Context, run engine.Run, epoch int64) (ticks map[string]int64, err error)
	// PutLive adds a batch to what is there, once.
	PutLive(ctx context.Context, l rollup.Live) error
}

// What is kept and waited for.
const (
	// maxQueuedBytes of snapshots wait to be written, of all runs, and mostPolls of each.
	maxQueuedBytes = 16 << 20
	maxQueuedPolls = 20_000
	// runTTL is for how long nothing comes of a run that has ended.
	runTTL = time.Minute
	// writeTimeout bounds one write.
	writeTimeout = 10 * time.Second
	minBackoff   = 500 * time.Millisecond
	maxBackoff   = 10 * time.Second
)

// LiveOptions are what live seconds are made with.
type LiveOptions struct {
	// Target opens the results database, each time anew where it may be away.
	Target func(ctx context.Context) (LiveTarget, error)
	// Run reads a run.
	Run func(ctx context.Context, runID string) (engine.Run, error)
	// PerHour says what a warehouse takes now; nil knows nothing.
	PerHour rollup.CreditRateFunc
	Log     zerolog.Logger
}

// LiveWriter are the live seconds of the runs of one server. It is safe for concurrent use; nil takes nothing.
type LiveWriter struct {
	opts LiveOptions
	stop context.CancelFunc
	done chan struct{}
	wake chan struct{}

	mu      sync.Mutex
	runs    map[string]*run
	waiting int // bytes of snapshots
	dropped int64
	written int64
}

// run is what waits of a run; below the line it is the writing goroutine's.
type run struct {
	id       string
	epoch    int64
	queue    []tick
	polls    []engine.WarehousePoint
	lastSeen time.Time

	// ----

	started bool
	lost    bool
	fold    *fold
	last    int64 // number of the last batch
	batch   *rollup.Live
	retry   time.Time
	backoff backoff.Backoff
	failing bool
}

// tick is what a stored second of a run says.
type tick struct {
	at                 time.Time
	snapshots          []engine.WorkerSnapshot
	operations, errors int64
	bytes              int
}

// StartLive begins to write.
func StartLive(opts LiveOptions) *LiveWriter {
	ctx, stop := context.WithCancel(context.Background())
	s := &LiveWriter{
		opts: opts,
		stop: stop,
		done: make(chan struct{}),
		wake: make(chan struct{}, 1),
		runs: map[string]*run{},
	}
	go s.loop(ctx)
	return s
}

// Close stops. What waits is left to when the runs are taken in.
func (s *LiveWriter) Close() {
	if s != nil {
		s.stop()
		<-s.done
	}
}

// Tick takes a second of a run that the control store has taken.
func (s *LiveWriter) Tick(t *store.Tick) {
	if s == nil || len(t.Snapshots) == 0 {
		return
	}
	rows, kinds := t.Size()
	s.withRun(t.RunID, t.Epoch, func(r *run) {
		r.queue = append(r.queue, tick{time.Now(), t.Snapshots, t.TotalOps, t.ErrorCount, rows + kinds})
		s.waiting += rows + kinds
		for s.waiting > maxQueuedBytes && s.drop() {
		}
	})
}

// Poll takes what a run's warehouse was when it was asked.
func (s *LiveWriter) Poll(runID string, epoch int64, p engine.WarehousePoint) {
	if s == nil {
		return
	}
	s.withRun(runID, epoch, func(r *run) {
		if p.Raw = nil; len(r.polls) < maxQueuedPolls {
			r.polls = append(r.polls, p)
		}
	})
}

func (s *LiveWriter) withRun(runID string, epoch int64, f func(*run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[runID]
	if r != nil && r.epoch < epoch {
		s.forget(r)
		r = nil
	}
	if r == nil {
		r = &run{id: runID, epoch: epoch, backoff: backoff.Backoff{Min: minBackoff, Max: maxBackoff}}
		s.runs[runID] = r
	}
	r.lastSeen = time.Now()
	if r.epoch == epoch {
		f(r)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drop leaves out the oldest second of the run of which most waits, but never the only one. It needs mu.
func (s *LiveWriter) drop() bool {
	var longest *run
	most := 0
	for _, r := range s.runs {
		if len(r.queue) < 2 {
			continue
		}
		bytes := 0
		for _, t := range r.queue {
			bytes += t.bytes
		}
		if longest == nil || bytes > most || bytes == most && r.id < longest.id {
			longest, most = r, bytes
		}
	}
	if longest == nil {
		return false
	}
	s.waiting -= longest.queue[0].bytes
	s.dropped++
	longest.queue[0] = tick{}
	longest.queue = longest.queue[1:]
	return true
}

// forget needs mu. What waited of a run that is still to be written here is left out.
func (s *LiveWriter) forget(r *run) {
	for _, t := range r.queue {
		s.waiting -= t.bytes
	}
	if !r.lost {
		s.dropped += int64(len(r.queue))
	}
	r.queue = nil
	delete(s.runs, r.id)
}

// Counts are the seconds of runs that were written, and that were left out because the results database was away.
func (s *LiveWriter) Counts() (written, dropped int64) {
	if s == nil {
		return 0, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written, s.dropped
}

func (s *LiveWriter) loop(ctx context.Context) {
	defer close(s.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
		next := time.Now().Add(runTTL)
		for _, r := range s.live() {
			if ctx.Err() != nil {
				return
			}
			if again := s.write(ctx, r); again.Before(next) {
				next = again
			}
		}
		timer.Reset(max(0, time.Until(next)))
	}
}

// live are the runs that something is known of, those excepted that nothing has come of for long.
func (s *LiveWriter) live() (all []*run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if time.Since(r.lastSeen) >= runTTL && (r.lost || len(r.queue)+len(r.polls) == 0 && r.batch == nil ||
			time.Since(r.lastSeen) > 10*runTTL) {
			s.forget(r)
			continue
		}
		all = append(all, r)
	}
	return all
}

// write brings what waits of a run into the results database, and says when to come again.
func (s *LiveWriter) write(ctx context.Context, r *run) (again time.Time) {
	later := time.Now().Add(runTTL)
	if time.Now().Before(r.retry) {
		return r.retry
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for {
		ticks, polls := s.take(r)
		if r.lost || r.batch == nil && len(ticks)+len(polls) == 0 {
			return later
		}
		err := s.put(ctx, r, ticks, polls)
		switch {
		case err == nil:
			if r.failing {
				s.opts.Log.Info().Str("run_id", r.id).Msg("live seconds of the run are written again")
			}
			r.failing = false
			r.backoff.Reset()
			return later
		case errors.Is(err, store.ErrFenced):
			s.opts.Log.Debug().Err(err).Str("run_id", r.id).Msg("no more live seconds of the run are written here")
			r.lost, r.batch = true, nil
			continue
		}
		if !r.failing && ctx.Err() == nil {
			s.opts.Log.Warn().Err(err).Str("run_id", r.id).
				Msg("live seconds of the run cannot be written; what is left out comes when the run is taken in")
		}
		r.failing = true
		r.retry = time.Now().Add(r.backoff.Next())
		return r.retry
	}
}

// take takes what waits of a run, unless there is a batch that has to be written first.
func (s *LiveWriter) take(r *run) (ticks []tick, polls []engine.WarehousePoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.batch != nil || !r.started && !r.lost {
		return r.queue, r.polls // looked at, not taken
	}
	ticks, polls = r.queue, r.polls
	r.queue, r.polls = nil, nil
	for _, t := range ticks {
		s.waiting -= t.bytes
	}
	return ticks, polls
}

func (s *LiveWriter) put(ctx context.Context, r *run, ticks []tick, polls []engine.WarehousePoint) error {
	target, err := s.opts.Target(ctx)
	if err != nil {
		return err
	}
	if !r.started {
		about, err := s.opts.Run(ctx, r.id)
		if errors.Is(err, store.ErrNotFound) {
			return store.ErrFenced // it was deleted
		}
		if err != nil {
			return err
		}
		if about.StartTime.IsZero() {
			return errNotStarted
		}
		there, err := target.BeginLive(ctx, about, r.epoch)
		if err != nil {
			return err
		}
		// Another process of this epoch has written smaller numbers.
		r.started, r.fold, r.last = true, newFold(about.StartTime.Time, there, s.opts.PerHour), time.Now().UnixMicro()
		ticks, polls = s.take(r)
	}
	for {
		if r.batch == nil {
			if len(ticks)+len(polls) == 0 {
				return nil
			}
			r.last++
			r.batch = r.fold.batch(ticks, polls)
			r.batch.RunID, r.batch.Epoch, r.batch.Batch = r.id, r.epoch, r.last
		}
		if err := target.PutLive(ctx, *r.batch); err != nil {
			return err
		}
		s.mu.Lock()
		s.written += int64(len(r.batch.Seconds.Run))
		s.mu.Unlock()
		r.batch = nil
		ticks, polls = s.take(r)
	}
}

var errNotStarted = errors.New("the run has not started")
