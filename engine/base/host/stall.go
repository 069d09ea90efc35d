package host

import (
	"context"
	"sync/atomic"
	"time"
)

// pollInterval is how often a stillness is looked for.
const pollInterval = 100 * time.Millisecond

// stallDetector is the longest time since it was last asked for in which this process did not run although it was to.
type stallDetector struct {
	longest  atomic.Int64
	reported int64 // the time before: who asks alone has it
}

// Watch looks ten times a second whether this process runs, until ctx ends: one that was stopped, or to which the
// machine gave no processor, sees nothing of it but how late it is. Without it Sample knows of no stillness.
func (s *Sampler) Watch(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		s.stalls.observe(now.Sub(last))
		last = now
	}
}

// observe takes the time between two looks.
func (s *stallDetector) observe(between time.Duration) {
	if late := int64(between - pollInterval); late > s.longest.Load() {
		s.longest.Store(late) // the one goroutine that raises it
	}
}

// takeLongest is how long the process stood still at most since the call before the last one: whoever reads one of two
// samples hears of it.
func (s *stallDetector) takeLongest() time.Duration {
	now := s.longest.Swap(0)
	longest := max(now, s.reported)
	s.reported = now
	return time.Duration(longest)
}
