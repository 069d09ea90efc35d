package system

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/host"
)

// cpuShare is the part of the processors that all queries over executions of a process may take together. A run that
// has use for all of them is to lose 5 % of its rate at most. Making the columns that queries share is nobody's, and
// not in the account: it takes 0.1 µs of an execution that takes the process 10 µs or more, which is 1 %. The rest is
// theirs.
const cpuShare = 0.04

// Account is what queries over executions have taken of the processors of a process. The hubs of a process have one
// together. The zero value is ready.
type Account struct {
	sharers atomic.Int32
	mu      sync.Mutex
	all     bucket
}

// allowance is what one of them has taken.
type allowance struct {
	began time.Time
	own   bucket
	took  atomic.Int64 // ns in all
}

// bucket is filled at a rate with processor time, and holds that of a second.
type bucket struct {
	left time.Duration
	at   time.Time
}

// take takes processor time out, and returns how long it is until there is some again.
func (b *bucket) take(d time.Duration, rate float64, now time.Time) time.Duration {
	most := time.Duration(rate * float64(time.Second))
	if b.at.IsZero() {
		b.left = most
	} else {
		b.left = min(b.left+time.Duration(rate*float64(now.Sub(b.at))), most)
	}
	b.at = now
	b.left -= d
	if b.left >= 0 {
		return 0
	}
	return time.Duration(float64(-b.left) / rate)
}

// rate is how much of a processor all may take. Schedulers that event loops have been lent are no processors.
func (a *Account) rate() float64 { return cpuShare * float64(host.Processors()) }

// take counts what a query has taken, and returns for how long it has to wait: only who has taken more than an equal
// part waits, and only while all together have taken more than there is.
func (a *Account) take(part *allowance, d time.Duration, now time.Time) time.Duration {
	part.took.Add(int64(d))
	a.mu.Lock()
	defer a.mu.Unlock()
	rate := a.rate()
	all := a.all.take(d, rate, now)
	own := part.own.take(d, rate/float64(max(a.sharers.Load(), 1)), now)
	return min(all, own)
}

// figures say what a query costs.
func (p *allowance) figures(rows int64, now time.Time) string {
	took := time.Duration(p.took.Load())
	perRow := time.Duration(0)
	if rows > 0 {
		perRow = took / time.Duration(rows)
	}
	return fmt.Sprintf("it had read %d in %.1f s, of which each took %v of processor time; all queries over executions "+
		"may take %.0f ms a second together", rows, now.Sub(p.began).Seconds(), perRow.Round(time.Nanosecond),
		1000*(&Account{}).rate())
}

// metered is a reader that is told what its rows cost.
type metered struct{ *reader }

// Took implements connector.Metered. Who was given up while a batch went on is told so at once: on a busy machine the
// rest of it may take longer than the run.
func (m *metered) Took(d time.Duration) (wait time.Duration, err error) {
	m.mu.Lock()
	failed := m.failed
	m.mu.Unlock()
	if failed != nil && m.limits.failFast {
		return 0, failed
	}
	return m.hub.CPUAccount().take(&m.part, d, time.Now()), nil
}
