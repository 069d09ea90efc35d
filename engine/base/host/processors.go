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
	// base is GOMAXPROCS without those lent, valid while some are: lent to loops, beside for threads that sleep.
	base, lent, beside int
}

// ownCount is how many the process has when none are lent.
func (p *processorPool) ownCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent+p.beside > 0 {
		return p.base
	}
	return p.procs(0)
}

// begin notes how many there are before the first is lent. It needs mu.
func (p *processorPool) begin() {
	if p.lent+p.beside == 0 {
		p.base = p.procs(0)
	}
}

// lend adds one, or returns false when every own one has been matched.
func (p *processorPool) lend() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	if p.lent >= p.base {
		return false
	}
	p.lent++
	p.procs(p.base + p.lent + p.beside)
	return true
}

// lendBeside adds one beside those of loops.
func (p *processorPool) lendBeside() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	p.beside++
	p.procs(p.base + p.lent + p.beside)
}

// release ends a successful lend.
func (p *processorPool) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent--
	p.end()
}

// releaseBeside ends a lendBeside.
func (p *processorPool) releaseBeside() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beside--
	p.end()
}

// end takes back what is not lent any more. It needs mu.
func (p *processorPool) end() {
	if n := p.lent + p.beside; n > 0 {
		p.procs(p.base + n)
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
