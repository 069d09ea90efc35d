package host

import (
	"os"
	"runtime"
	"sync"
)

// Processors lends event loops scheduler processors (Ps) of their own. A loop that
// waits without telling the scheduler keeps one, and with as many loops as the
// machine has processors everything else in the process would stand still.
// The operating system shares the real ones out between the threads.
var processors = processorPool{procs: runtime.GOMAXPROCS, restore: runtime.SetDefaultGOMAXPROCS}

type processorPool struct {
	procs   func(n int) int
	restore func()

	mu sync.Mutex
	// base is GOMAXPROCS without those lent, valid while some are.
	base, lent int
}

// ownCount is how many the process has when none are lent.
func (p *processorPool) ownCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent > 0 {
		return p.base
	}
	return p.procs(0)
}

// lend adds one, or returns false when every own one has been matched.
func (p *processorPool) lend() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent == 0 {
		p.base = p.procs(0)
	}
	if p.lent >= p.base {
		return false
	}
	p.lent++
	p.procs(p.base + p.lent)
	return true
}

// release ends a successful lend.
func (p *processorPool) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent--
	if p.lent > 0 {
		p.procs(p.base + p.lent)
		return
	}
	p.procs(p.base)
	if os.Getenv("GOMAXPROCS") == "" {
		// The runtime follows the container's limit again, which setting a number has ended.
		p.restore()
	}
}

// Processors is how many processors the process may use at once: GOMAXPROCS
// without what event loops add while a load runs.
func Processors() int { return processors.ownCount() }

// LendProcessor adds a scheduler processor for an event loop, or returns false when every own one has been matched.
// ReturnProcessor ends it.
func LendProcessor() bool { return processors.lend() }

// ReturnProcessor ends a successful LendProcessor.
func ReturnProcessor() { processors.release() }
