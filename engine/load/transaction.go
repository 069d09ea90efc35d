package load

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// step is what the driver of a connection does next with its group.
type step uint8

const (
	// stepSend: send the operation that op returns; then report with succeeded or failed.
	stepSend step = iota
	// stepPause: wait as long as pause says, then resume; or giveUp, when the slot should leave first.
	stepPause
	// stepDone: the group has ended; outcome says how.
	stepDone
)

// retryPolicy says which failures are tried again. The zero value retries nothing.
type retryPolicy struct {
	most    int
	classes []engine.ErrorClass
	backoff time.Duration
}

func newRetryPolicy(r *engine.Retry) retryPolicy {
	if r == nil {
		return retryPolicy{}
	}
	return retryPolicy{most: min(r.Max, engine.MaxRetries), classes: r.Classes,
		backoff: time.Duration(r.BackoffMs * float64(time.Millisecond))}
}

func (p *retryPolicy) covers(class engine.ErrorClass) bool {
	return p.most > 0 && slices.Contains(p.classes, class)
}

// maxDoublings bounds how often the pause before a retry doubles.
const maxDoublings = 5

// pause is the time before a retry (from 1): the backoff, doubled with each
// further one, times 0.5 to 1.5 as random (0 to 1) says, so that transactions
// that met once do not meet again.
func (p *retryPolicy) pause(retry int, random float64) time.Duration {
	return time.Duration(float64(p.backoff<<min(retry-1, maxDoublings)) * (0.5 + random))
}

// progress is where a group stands: which operation is next, after each result.
// It reads no clock and does no I/O, so that a loop that blocks and a loop over events
// can both drive it:
//
//	start ──▶ send ──succeeded──▶ send … ──▶ done
//	            │ failed: inside a transaction it is rolled back first
//	            └──▶ send ROLLBACK ──▶ pause ──resume──▶ send (from BEGIN)
//	                               └─▶ done (nothing left to try)
type progress struct {
	ops    []plugin.Op
	next   int
	rows   int64
	tries  uint8  // retries begun
	failed uint32 // the error of this try, 0 for none
	again  bool   // that error may be retried
	undoes bool   // ROLLBACK of a failed try is under way

	// rolledBack: the group ended with a ROLLBACK that it asked for itself.
	rolledBack bool
	// unclean: nobody knows whether the transaction has ended. The connection must not be used again.
	unclean bool
}

// start begins a group: one operation, or BEGIN … COMMIT/ROLLBACK.
func (p *progress) start(ops []plugin.Op) step {
	*p = progress{ops: ops}
	return stepSend
}

// transaction reports whether the group is one.
func (p *progress) transaction() bool { return len(p.ops) > 1 }

// op is the operation to send.
func (p *progress) op() plugin.Op {
	if p.undoes {
		return plugin.Op{Statement: plugin.StatementRollback}
	}
	return p.ops[p.next]
}

// position numbers, from 1, the operations that have been sent in this try, with op as the last.
func (p *progress) position() uint16 {
	if p.undoes {
		return uint16(p.next + 2)
	}
	return uint16(p.next + 1)
}

// succeeded takes the result of op.
func (p *progress) succeeded(rows int32) step {
	if p.undoes {
		p.undoes = false
		return p.ended()
	}
	switch statement := p.ops[p.next].Statement; {
	case statement < plugin.StatementBegin:
		p.rows += int64(rows)
	case statement == plugin.StatementRollback:
		p.rolledBack = true
	}
	p.next++
	if p.next == len(p.ops) {
		return stepDone
	}
	return stepSend
}

// fail takes the error of op: its id, whether the policy retries it, and whether
// the connection is lost.
func (p *progress) fail(id uint32, retry, broken bool, policy *retryPolicy) step {
	last := p.next == len(p.ops)-1
	switch {
	case p.undoes:
		p.undoes, p.again, p.unclean = false, false, true
		return stepDone
	case broken:
		p.failed = id
		return stepDone
	}
	p.failed, p.again = id, retry && int(p.tries) < policy.most
	switch {
	case !p.transaction() || p.next == 0:
		return p.ended()
	case last && p.ops[p.next].Statement == plugin.StatementRollback:
		p.again, p.unclean = false, true
		return stepDone
	case last: // a COMMIT that fails ends the transaction
		return p.ended()
	}
	p.undoes = true
	return stepSend
}

// ended is the end of a failed try.
func (p *progress) ended() step {
	if p.again {
		return stepPause
	}
	return stepDone
}

// resume begins the next try.
func (p *progress) resume() step {
	p.tries++
	p.next, p.rows, p.failed, p.again = 0, 0, 0, false
	return stepSend
}

// giveUp ends the group instead of trying again: the last try's failure stands.
func (p *progress) giveUp() step {
	p.again = false
	return stepDone
}
