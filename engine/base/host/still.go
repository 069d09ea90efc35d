package host

import (
	"context"
	"sync/atomic"
	"time"
)

// looks is how often a stillness is looked for.
const looks = 100 * time.Millisecond

// stillness is the longest time since it was last asked for in which this process did not run although it was to.
type stillness struct {
	longest atomic.Int64
	told    int64 // the time before: who asks alone has it
}

// Watch looks ten times a second whether this process runs, until ctx ends: one that was stopped, or to which the
// machine gave no processor, sees nothing of it but how late it is. Without it Sample knows of no stillness.
func (s *Sampler) Watch(ctx context.Context) {
	ticker := time.NewTicker(looks)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		s.still.saw(now.Sub(last))
		last = now
	}
}

// saw takes the time between two looks.
func (s *stillness) saw(between time.Duration) {
	if late := int64(between - looks); late > s.longest.Load() {
		s.longest.Store(late) // the one goroutine that raises it
	}
}

// take is how long the process stood still at most since the call before the last one: whoever reads one of two samples
// hears of it.
func (s *stillness) take() time.Duration {
	now := s.longest.Swap(0)
	longest := max(now, s.told)
	s.told = now
	return time.Duration(longest)
}
