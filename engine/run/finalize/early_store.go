package finalize

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/run/writer"
)

// EarlyStore stores parts of one run beside its load, those whose nodes need the room; one at
// a time, in the order in which they are asked for, so that it takes no more of the machine than
// it must. The zero Beside is ready.
type EarlyStore struct {
	mu sync.Mutex
	// storing has room for the one attempt that is under way.
	storing chan struct{}
	// attempted is closed when the part that was asked for last has been tried.
	attempted chan struct{}
	// requested are the parts that are being stored, or are stored (true), by work id.
	requested map[string]bool
	stopped   bool
}

// earlyRetryDelay is the time between two attempts to store a part.
const earlyRetryDelay = 5 * time.Second

// Store stores a part in a goroutine that run starts, however often that takes, until End or ctx's;
// a part that is being stored already is left to whoever is at it.
func (e *EarlyStore) Store(ctx context.Context, run func(func()), s *Service, k *writer.Writer, log zerolog.Logger,
	p nodes.Part) {
	before, tried, ok := e.claim(p.WorkID)
	if !ok {
		return
	}
	run(func() {
		if before != nil {
			<-before
		}
		again := e.try(ctx, s, k, log, p)
		close(tried)
		for again {
			select {
			case <-time.After(earlyRetryDelay):
			case <-ctx.Done():
				return
			}
			again = e.try(ctx, s, k, log, p)
		}
	})
}

// try is one attempt; it reports whether there should be another one.
func (e *EarlyStore) try(ctx context.Context, s *Service, k *writer.Writer, log zerolog.Logger, p nodes.Part) bool {
	select {
	case e.storing <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-e.storing }()
	if e.isStopped() || ctx.Err() != nil {
		return false
	}
	if err := s.StorePart(ctx, k, p); err != nil {
		log.Warn().Err(err).Str("work_id", p.WorkID).
			Msg("a part that its node needs the room of cannot be stored; it is tried again")
		return true
	}
	e.done(p.WorkID)
	return false
}

// Stop ends it: nothing more is begun. It returns those of the parts, by work id, that are
// not stored, in their order: they are for Process.
func (e *EarlyStore) Stop(parts map[string]nodes.Part) (left []nodes.Part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		if !e.requested[id] {
			left = append(left, parts[id])
		}
	}
	return left
}

// claim reports whether the part is to be stored now: once before is closed, and tried is to be
// closed when that was tried.
func (e *EarlyStore) claim(id string) (before, tried chan struct{}, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, asked := e.requested[id]; asked || e.stopped {
		return nil, nil, false
	}
	if e.requested == nil {
		e.requested, e.storing = map[string]bool{}, make(chan struct{}, 1)
	}
	e.requested[id] = false
	before, e.attempted = e.attempted, make(chan struct{})
	return before, e.attempted, true
}

func (e *EarlyStore) done(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requested[id] = true
}

func (e *EarlyStore) isStopped() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}
