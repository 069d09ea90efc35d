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

// Beside stores parts of one run beside its load, those whose nodes need the room; one at
// a time, in the order in which they are asked for, so that it takes no more of the machine than
// it must. The zero Beside is ready.
type Beside struct {
	turn sync.Mutex

	mu sync.Mutex
	// tried is closed when the part that was asked for last has been tried.
	tried chan struct{}
	// asked are the parts that are being stored, or are stored (true), by work id.
	asked map[string]bool
	over  bool
}

// besidePause is the time between two attempts to store a part.
const besidePause = 5 * time.Second

// Keep stores a part in a goroutine that run starts, however often that takes, until End or ctx's;
// a part that is being stored already is left to whoever is at it.
func (e *Beside) Keep(ctx context.Context, run func(func()), s *Service, k *writer.Keeper, log zerolog.Logger,
	p nodes.Part) {
	before, tried, ok := e.begin(p.WorkID)
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
			case <-time.After(besidePause):
			case <-ctx.Done():
				return
			}
			again = e.try(ctx, s, k, log, p)
		}
	})
}

// try is one attempt; it reports whether there should be another one.
func (e *Beside) try(ctx context.Context, s *Service, k *writer.Keeper, log zerolog.Logger, p nodes.Part) bool {
	e.turn.Lock()
	defer e.turn.Unlock()
	if e.ended() || ctx.Err() != nil {
		return false
	}
	if err := s.Keep(ctx, k, p); err != nil {
		log.Warn().Err(err).Str("work_id", p.WorkID).
			Msg("a part that its node needs the room of cannot be stored; it is tried again")
		return true
	}
	e.done(p.WorkID)
	return false
}

// End ends it: nothing more is begun. It returns those of the parts, by work id, that are
// not stored, in their order: they are for Process.
func (e *Beside) End(parts map[string]nodes.Part) (left []nodes.Part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		if !e.asked[id] {
			left = append(left, parts[id])
		}
	}
	return left
}

// begin reports whether the part is to be stored now: once before is closed, and tried is to be
// closed when that was tried.
func (e *Beside) begin(id string) (before, tried chan struct{}, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, asked := e.asked[id]; asked || e.over {
		return nil, nil, false
	}
	if e.asked == nil {
		e.asked = map[string]bool{}
	}
	e.asked[id] = false
	before, e.tried = e.tried, make(chan struct{})
	return before, e.tried, true
}

func (e *Beside) done(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[id] = true
}

func (e *Beside) ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over
}
