package runlog

import (
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

// How many lines of one plugin go to a run's log: a burst, then so many a second. A plugin has several
// instances, each with a limit of its own.
const (
	PluginBurst     = 50
	pluginPerSecond = 10
)

// Plugins holds what plugins logged in calls for a run until the run's loop takes it.
type Plugins struct {
	mu      sync.Mutex
	lines   []plugin.LogLine
	budgets map[string]*budget
}

type budget struct {
	left    float64
	last    time.Time
	dropped int
}

// Add takes a line; one beyond the limit of its plugin is counted with the next that is not.
func (p *Plugins) Add(line plugin.LogLine, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.budgets[line.Plugin]
	if b == nil {
		b = &budget{left: PluginBurst, last: now}
		if p.budgets == nil {
			p.budgets = map[string]*budget{}
		}
		p.budgets[line.Plugin] = b
	}
	b.left = min(PluginBurst, b.left+now.Sub(b.last).Seconds()*pluginPerSecond)
	b.last = now
	b.dropped += line.Dropped
	if b.left < 1 {
		b.dropped++
		return
	}
	b.left--
	line.Dropped, b.dropped = b.dropped, 0
	p.lines = append(p.lines, line)
}

// Take returns the lines that were not taken before.
func (p *Plugins) Take() []plugin.LogLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := p.lines
	p.lines = nil
	return lines
}
