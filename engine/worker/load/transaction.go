package load

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Step is what the driver of a connection does next with its unit.
type Step uint8

const (
	// StepSend is to send the operation that Op returns; then report with Succeeded or Fail.
	StepSend Step = iota
	// StepPause is to wait as long as Pause says, then Resume; or GiveUp, when the connection should leave first.
	StepPause
	// StepDone is nothing more: the unit has ended.
	StepDone
)

// RetryPolicy says which failures are tried again. The zero value retries nothing.
type RetryPolicy struct {
	MaxRetries int
	classes    []engine.ErrorClass
	backoff    time.Duration
}

// NewRetryPolicy returns the policy of a workload, which may have none.
func NewRetryPolicy(r *engine.Retry) RetryPolicy {
	if r == nil {
		return RetryPolicy{}
	}
	return RetryPolicy{MaxRetries: min(r.Max, engine.MaxRetries), classes: r.Classes,
		backoff: time.Duration(r.BackoffMs * float64(time.Millisecond))}
}

// Covers reports whether failures of a class are tried again.
func (p *RetryPolicy) Covers(class engine.ErrorClass) bool {
	return p.MaxRetries > 0 && slices.Contains(p.classes, class)
}

// Pause is the time before a retry (from 1): the backoff, doubled with each
// further one, times 0.5 to 1.5 as random (0 to 1) says, so that transactions
// that met once do not meet again.
func (p *RetryPolicy) Pause(retry int, random float64) time.Duration {
	return time.Duration(float64(backoff.After(retry, p.backoff)) * (0.5 + random))
}

// Progress is where a unit stands: which operation is next, after each result.
// It reads no clock and does no I/O, so that a loop that blocks and a loop over events
// can both drive it:
//
//	start ──▶ send ──succeeded──▶ send … ──▶ done
//	            │ failed: a transaction that is open is rolled back first
//	            └──▶ send ROLLBACK ──▶ pause ──resume──▶ send (from BEGIN)
//	                               └─▶ done (nothing left to try)
type Progress struct {
	ops      []plugin.Op
	next     int
	Rows     int64
	Tries    uint8  // retries begun
	Failed   uint32 // the error of this try, 0 for none
	retry    bool   // that error may be retried
	rollback bool   // ROLLBACK of a failed try is under way

	// rolledBack: the unit ended with a ROLLBACK that it asked for itself.
	RolledBack bool
	// unclean: nobody knows whether the transaction has ended. The connection must not be used again.
	Unclean bool
}

// Start begins a unit: one operation, or BEGIN … COMMIT/ROLLBACK.
func (p *Progress) Start(ops []plugin.Op) Step {
	*p = Progress{ops: ops}
	return StepSend
}

// Transaction reports whether the unit is one.
func (p *Progress) Transaction() bool { return len(p.ops) > 1 }

// Op is the operation to send.
func (p *Progress) Op() plugin.Op {
	if p.rollback {
		return plugin.Op{Statement: plugin.StatementRollback}
	}
	return p.ops[p.next]
}

// Position numbers, from 1, the operations that have been sent in this try, with op as the last.
func (p *Progress) Position() uint16 {
	if p.rollback {
		return uint16(p.next + 2)
	}
	return uint16(p.next + 1)
}

// Succeeded takes the result of op.
func (p *Progress) Succeeded(rows int32) Step {
	if p.rollback {
		p.rollback = false
		return p.ended()
	}
	switch statement := p.ops[p.next].Statement; {
	case statement < plugin.StatementBegin:
		p.Rows += int64(rows)
	case statement == plugin.StatementRollback:
		p.RolledBack = true
	}
	p.next++
	if p.next == len(p.ops) {
		return StepDone
	}
	return StepSend
}

// Fail takes the error of op: its id, whether the policy retries it, whether the connection is lost, and where its
// session stands now. A COMMIT that fails has mostly ended its transaction, and one that was cancelled may not have.
func (p *Progress) Fail(id uint32, retry, broken bool, session target.Transaction, policy *RetryPolicy) Step {
	last := p.next == len(p.ops)-1
	switch {
	case p.rollback && session == target.TransactionNone:
		p.rollback = false
		return p.ended()
	case p.rollback:
		p.rollback, p.retry, p.Unclean = false, false, true
		return StepDone
	case broken:
		p.Failed = id
		return StepDone
	}
	p.Failed, p.retry = id, retry && int(p.Tries) < policy.MaxRetries
	switch session {
	case target.TransactionNone:
		return p.ended()
	case target.TransactionOpen, target.TransactionFailed:
		p.rollback = true
		return StepSend
	}
	switch {
	case !p.Transaction() || p.next == 0:
		return p.ended()
	case last && p.ops[p.next].Statement == plugin.StatementRollback:
		p.retry, p.Unclean = false, true
		return StepDone
	case last: // a COMMIT that fails ends the transaction
		return p.ended()
	}
	p.rollback = true
	return StepSend
}

// ended is the end of a failed try.
func (p *Progress) ended() Step {
	if p.retry {
		return StepPause
	}
	return StepDone
}

// Resume begins the next try.
func (p *Progress) Resume() Step {
	p.Tries++
	p.next, p.Rows, p.Failed, p.retry = 0, 0, 0, false
	return StepSend
}

// Cut ends the unit before its next operation, which must not be sent; id says why. A
// transaction that has begun is left to the target, which ends it with the connection.
func (p *Progress) Cut(id uint32) Step {
	p.Unclean = p.Unclean || p.rollback || p.Transaction() && p.next > 0
	if p.Failed == 0 {
		p.Failed = id
	}
	p.retry, p.rollback = false, false
	return StepDone
}

// GiveUp ends the unit instead of trying again: the last try's failure stands.
func (p *Progress) GiveUp() Step {
	p.retry = false
	return StepDone
}
