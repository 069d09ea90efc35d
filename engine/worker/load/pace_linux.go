package load

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine/base/host"
)

// pace learns how long a loop's waits last, and says how the next one is made. It is for the one goroutine that waits.
type pace struct {
	now   func() int64
	yield yieldPolicy
	// read is the last reading of the clock that it was told, gap a running mean of
	// how long waits last, in ns; waited is true from a wait to the next answer.
	read, gap int64
	waited    bool
	// ownsProcessor: there is a processor for it alone, and it may wait without telling the scheduler.
	ownsProcessor bool
}

const (
	// One whose waits are shorter than busyGap waits without telling the
	// scheduler, which saves more than a tenth of the CPU of an operation, and at most
	// for busyWait. While it does, its processor, which was lent to it, runs nothing else;
	// the signal by which the scheduler and the garbage collector stop a goroutine ends the wait.
	busyGap  = 2_000_000
	busyWait = 5 * time.Millisecond
)

// newPace reads the time, in ns, with now.
func newPace(now func() int64) pace { return pace{now: now, gap: busyGap} }

// AcquireProcessor takes a processor for the one who waits, if there is one.
func (p *pace) AcquireProcessor() { p.ownsProcessor = host.LendProcessor() }

// ReleaseProcessor gives back what AcquireProcessor took.
func (p *pace) ReleaseProcessor() {
	if p.ownsProcessor {
		p.ownsProcessor = false
		host.ReturnProcessor()
	}
}

// NoteIdle notes the time without an answer.
func (p *pace) NoteIdle(now int64) { p.read = now }

// NoteActivity notes that something has arrived, and learns how long waits last.
func (p *pace) NoteActivity(now int64) {
	if p.waited {
		p.waited = false
		p.gap += (now - p.read - p.gap) / 8
	}
	p.read = now
}

// Holds reports whether a wait of left ns, negative for ever, is made without telling the scheduler, for busyWait.
func (p *pace) Holds(left int64) bool {
	p.waited = true
	return p.ownsProcessor && p.gap < busyGap && (left < 0 || left > int64(busyWait))
}

// NoteNothing notes that a wait of busyWait was for nothing.
func (p *pace) NoteNothing() { p.gap = busyGap }

// LetOthers lets threads that wait for the processor go first where that pays, with so many sockets.
func (p *pace) LetOthers(watched int) {
	if !p.yield.due(p.read) {
		return
	}
	before := p.now()
	_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	after := p.now()
	p.yield.took(after-before, after, watched)
}
