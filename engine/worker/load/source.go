package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// batchSize is how many operations a slot asks for at once: the call into the
// plugin and the lock cost little for each, and a batch is gone soon enough for
// delays and key distributions to stay fresh.
const batchSize = 64

// Many connections get smaller batches: each that a goroutine drives keeps one, and with
// thousands of them one lasts as long.
const (
	manyConnections = 256
	smallBatch      = 16
)

func batchSizeFor(connections int) int {
	if connections > manyConnections {
		return smallBatch
	}
	return batchSize
}

// Source hands out whole batches of the workload's stream. A slot that leaves
// returns what it has not begun; the next slot gets it first. In a closed loop
// stock fills some ahead, so that slots seldom wait for the plugin.
type Source struct {
	stream plugin.Stream
	kept   memoryBudget
	// size is how many operations a batch is asked for.
	size atomic.Int32
	// filling is held while the stream is used. It is taken before mu.
	filling sync.Mutex

	mu       sync.Mutex
	leftover []*OpBatch
	// ready were filled ahead, in the stream's order; spare are used up.
	ready, spare []*OpBatch
	err          error
	// low holds a token when few are ready; nil when nothing fills ahead.
	low chan struct{}
}

// stockSize is how many batches are kept ready, lowStock when more are asked
// for: waking the one who fills costs about as much as filling one.
const (
	stockSize = 8
	lowStock  = 2
)

// OpBatch is a batch that one slot takes its operations from, or all slots of an
// event loop.
type OpBatch struct {
	Batch plugin.Batch
	Next  int
	// users counts the slots that still execute operations of the batch, where several
	// do. In an open loop shared fills it, and its mu guards users; on an event loop shared is nil, and
	// only the loop touches users.
	shared *Prefetcher
	Users  int
	// share is what it adds to the source's kept.
	share *share
}

// NewSource returns the source of a stream for so many connections, whose operations
// keep at most so many bytes; who makes them is named when they keep more.
func NewSource(stream plugin.Stream, who engine.PluginRef, most int64, connections int) *Source {
	s := &Source{stream: stream, kept: memoryBudget{max: most, owner: who}}
	s.size.Store(int32(batchSizeFor(connections)))
	return s
}

// Expect prepares for so many connections; batches only get smaller.
func (s *Source) Expect(connections int) {
	s.size.Store(min(s.size.Load(), int32(batchSizeFor(connections))))
}

// KeptBytes is how many bytes all operations keep that are not executed.
func (s *Source) KeptBytes() int64 { return s.kept.bytes.Load() }

// Refill gives the slot a batch with at least one operation left. It returns p,
// or another one and keeps p. The error is plugin.ErrEnded at the stream's
// end, or a user-facing error; both are final and the same for every slot.
func (s *Source) Refill(p *OpBatch) (*OpBatch, error) {
	if r, ok, err := s.stocked(p); ok {
		return r, err
	}
	s.filling.Lock()
	defer s.filling.Unlock()
	// Somebody may have filled one meanwhile, or come to the end.
	if r, ok, err := s.stocked(p); ok {
		return r, err
	}
	return p, s.fill(p)
}

// stocked is refill without the stream; ok is false when that is needed.
func (s *Source) stocked(p *OpBatch) (r *OpBatch, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.leftover); n > 0 {
		r = s.leftover[n-1]
		s.leftover = s.leftover[:n-1]
		return r, true, nil
	}
	if len(s.ready) == 0 {
		return p, s.err != nil, s.err
	}
	r = s.ready[0]
	s.ready = slices.Delete(s.ready, 0, 1)
	s.spare = append(s.spare, p)
	if len(s.ready) <= lowStock && s.err == nil {
		select {
		case s.low <- struct{}{}:
		default:
		}
	}
	return r, true, nil
}

// fill takes the next batch of the stream. It needs filling.
func (s *Source) fill(p *OpBatch) error {
	p.Trim()
	p.Batch.Reset()
	p.Next = 0
	err := s.stream.Fill(&p.Batch, int(s.size.Load()))
	s.kept.account(p)
	if err == nil {
		err = s.kept.exceeded()
	}
	var final error
	switch {
	case errors.Is(err, plugin.ErrEnded):
		final = plugin.ErrEnded
	case err != nil:
		p.Batch.Reset()
		hint := "The run cannot go on without operations; check the plugin's parameters, or its code."
		if s.kept.bytes.Load() > s.kept.max {
			hint = "Lower max_in_flight or the number of connections, or make the operations smaller."
		}
		final = &engine.Error{Code: engine.CodePlugin, Cause: err,
			Message: "The workload plugin failed: " + strings.TrimRight(err.Error(), ".") + ".", Hint: hint}

	case len(p.Batch.Ops) == 0:
		final = plugin.ErrEnded
	}
	if final == nil {
		return nil
	}
	s.mu.Lock()
	s.err = final
	s.mu.Unlock()
	if len(p.Batch.Ops) > 0 {
		return nil // the last ones
	}
	return final
}

// Stocker returns what fills batches ahead until stop is closed, for a goroutine of its own.
func (s *Source) Stocker(stop <-chan struct{}) func() {
	s.low = make(chan struct{}, 1)
	s.low <- struct{}{}
	return func() { s.stock(stop) }
}

func (s *Source) stock(stop <-chan struct{}) {
	for {
		select {
		case <-s.low:
		case <-stop:
			return
		}
		for s.stockOne() {
		}
	}
}

// stockOne fills one batch ahead; it returns false when there are enough, or there are no more.
func (s *Source) stockOne() bool {
	s.filling.Lock()
	defer s.filling.Unlock()
	s.mu.Lock()
	if len(s.ready) >= stockSize || s.err != nil {
		s.mu.Unlock()
		return false
	}
	p := &OpBatch{}
	if n := len(s.spare); n > 0 {
		p = s.spare[n-1]
		s.spare = s.spare[:n-1]
	}
	s.mu.Unlock()
	if s.fill(p) != nil {
		return false
	}
	s.mu.Lock()
	s.ready = append(s.ready, p)
	s.mu.Unlock()
	return true
}

// Single is usedUp for a batch that has one user.
func (p *OpBatch) Single() *OpBatch { return p }

// Split is a batch of its own with operations of p that have not begun.
func (p *OpBatch) Split(ops []plugin.Op) *OpBatch {
	return &OpBatch{Batch: plugin.Batch{Ops: slices.Clone(ops), Args: slices.Clone(p.Batch.Args),
		Data: slices.Clone(p.Batch.Data)}}
}

// GiveBack keeps operations that a slot has taken and not begun.
func (s *Source) GiveBack(p *OpBatch) {
	if p.Next >= len(p.Batch.Ops) {
		return
	}
	s.kept.account(p)
	s.mu.Lock()
	s.leftover = append(s.leftover, p)
	s.mu.Unlock()
}

// Unit is what a connection runs at a time, and what is recorded as one execution:
// an operation, or BEGIN … COMMIT.
type Unit struct {
	Ops  []plugin.Op
	Kind engine.Kind
	// statement is the operation's, or that of the transaction's first one.
	Statement uint16
	// delay is think time that the workload placed before it.
	Delay time.Duration
}

// Take cuts the next unit from the batch. ok is false when the batch is used
// up; delays met on the way are in u.Delay even then.
func (p *OpBatch) Take(u *Unit, kinds []engine.Kind) (ok bool, err error) {
	ops := p.Batch.Ops
	for p.Next < len(ops) && ops[p.Next].Statement == plugin.StatementDelay {
		u.Delay += ops[p.Next].Delay
		p.Next++
	}
	if p.Next >= len(ops) {
		return false, nil
	}
	first := p.Next
	op := &ops[first]
	if int(op.Statement) < len(kinds) {
		p.Next++
		u.Ops, u.Kind, u.Statement = ops[first:p.Next], kinds[op.Statement], op.Statement
		return true, nil
	}
	if op.Statement != plugin.StatementBegin {
		return false, fmt.Errorf("%w: operation %d names statement %d", plugin.ErrInvalidBatch, first, op.Statement)
	}
	u.Kind, u.Statement = engine.KindTransaction, 0
	inside := false
	for i := first + 1; i < len(ops); i++ {
		switch s := ops[i].Statement; {
		case s == plugin.StatementCommit || s == plugin.StatementRollback:
			p.Next = i + 1
			u.Ops = ops[first:p.Next]
			return true, nil
		case int(s) < len(kinds):
			if !inside {
				u.Statement, inside = s, true
			}
		default:
			return false, fmt.Errorf("%w: operation %d inside a transaction names statement %d", plugin.ErrInvalidBatch, i, s)
		}
	}
	return false, fmt.Errorf("%w: a transaction begins at operation %d and does not end", plugin.ErrInvalidBatch, first)
}

// InvalidUnitError is the error of a batch that take refuses.
func InvalidUnitError(err error) *engine.Error {
	return &engine.Error{Code: engine.CodePlugin, Cause: err,
		Message: "The workload plugin failed: " + strings.TrimRight(err.Error(), ".") + ".",
		Hint:    "It asked for something that its own statement list does not contain."}
}
