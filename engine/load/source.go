package load

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// batchSize is how many operations a slot asks for at once: the call into the
// plugin and the lock cost little for each, and a batch is gone soon enough for
// delays and key distributions to stay fresh.
const batchSize = 64

// source hands out whole batches of the workload's stream. A slot that leaves
// returns what it has not begun; the next slot gets it first.
type source struct {
	mu       sync.Mutex
	stream   plugin.Stream
	leftover []*private
	err      error
}

// private is a slot's own copy of a batch.
type private struct {
	batch plugin.Batch
	next  int
	// In an open loop a batch is shared: by whom it is filled, and how many use it (guarded by shared.mu).
	shared *ahead
	users  int
}

// refill gives the slot a batch with at least one operation left. It returns p
// or one that another slot left. The error is plugin.ErrEnded at the stream's
// end, or a user-facing error; both are final and the same for every slot.
func (s *source) refill(p *private) (*private, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.leftover); n > 0 {
		p = s.leftover[n-1]
		s.leftover = s.leftover[:n-1]
		return p, nil
	}
	if s.err != nil {
		return p, s.err
	}
	p.batch.Reset()
	p.next = 0
	err := s.stream.Fill(&p.batch, batchSize)
	switch {
	case errors.Is(err, plugin.ErrEnded):
		s.err = plugin.ErrEnded
		if len(p.batch.Ops) > 0 {
			return p, nil
		}
	case err != nil:
		p.batch.Reset()
		s.err = &engine.Error{Code: engine.CodePlugin, Cause: err,
			Message: "The workload plugin failed: " + strings.TrimRight(err.Error(), ".") + ".",
			Hint:    "The run cannot go on without operations; check the plugin's parameters, or its code."}
	case len(p.batch.Ops) == 0:
		s.err = plugin.ErrEnded
	}
	return p, s.err
}

// giveBack keeps operations that a slot has taken and not begun.
func (s *source) giveBack(p *private) {
	if p.next >= len(p.batch.Ops) {
		return
	}
	s.mu.Lock()
	s.leftover = append(s.leftover, p)
	s.mu.Unlock()
}

// group is a unit of work: one operation, or BEGIN … COMMIT, which one
// connection runs whole and which is recorded as one execution.
type group struct {
	ops  []plugin.Op
	kind engine.Kind
	// statement is the operation's, or that of the transaction's first one.
	statement uint16
	// delay is think time that the workload placed before it.
	delay time.Duration
}

// take cuts the next group from the batch. ok is false when the batch is used
// up; delays met on the way are in g.delay even then.
func (p *private) take(g *group, kinds []engine.Kind) (ok bool, err error) {
	ops := p.batch.Ops
	for p.next < len(ops) && ops[p.next].Statement == plugin.StatementDelay {
		g.delay += ops[p.next].Delay
		p.next++
	}
	if p.next >= len(ops) {
		return false, nil
	}
	first := p.next
	op := &ops[first]
	if int(op.Statement) < len(kinds) {
		p.next++
		g.ops, g.kind, g.statement = ops[first:p.next], kinds[op.Statement], op.Statement
		return true, nil
	}
	if op.Statement != plugin.StatementBegin {
		return false, fmt.Errorf("%w: operation %d names statement %d", plugin.ErrInvalidBatch, first, op.Statement)
	}
	g.kind, g.statement = engine.KindTransaction, 0
	inside := false
	for i := first + 1; i < len(ops); i++ {
		switch s := ops[i].Statement; {
		case s == plugin.StatementCommit || s == plugin.StatementRollback:
			p.next = i + 1
			g.ops = ops[first:p.next]
			return true, nil
		case int(s) < len(kinds):
			if !inside {
				g.statement, inside = s, true
			}
		default:
			return false, fmt.Errorf("%w: operation %d inside a transaction names statement %d", plugin.ErrInvalidBatch, i, s)
		}
	}
	return false, fmt.Errorf("%w: a transaction begins at operation %d and does not end", plugin.ErrInvalidBatch, first)
}
