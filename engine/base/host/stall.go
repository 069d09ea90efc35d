package host

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// A thread looks how late it wakes: often while there is load, so that a second says by how much an operation is late
// that ends in it, and else seldom.
const (
	pollInterval = 100 * time.Millisecond
	beatInterval = 5 * time.Millisecond
	// From so much lateness on the process was stopped, and not only late.
	minStop = 50 * time.Millisecond
)

// stallDetector is the longest time since it was last asked for in which this process did not run although it was to.
type stallDetector struct {
	longest  atomic.Int64
	reported int64 // the time before: who asks alone has it

	mu      sync.Mutex
	late    engine.Lateness
	stopped time.Duration
}

// Watch looks whether this process runs, until ctx ends: one that was stopped, or to which the machine gave no
// processor, sees nothing of it but how late it is. busy says whether there is load. Without Watch, Sample knows of no
// stillness and no lateness. While there is load it keeps a thread to itself, which ends with the goroutine that calls.
func (s *Sampler) Watch(ctx context.Context, busy func() bool) {
	runtime.LockOSThread() // for good: the thread is not as others are
	wakeExactly()
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	for ctx.Err() == nil {
		if busy() {
			s.beat(ctx, busy)
			continue
		}
		due := time.Now().Add(pollInterval)
		timer.Reset(pollInterval)
		select {
		case <-ctx.Done():
		case <-timer.C:
			s.stalls.observe(time.Since(due), false)
		}
	}
}

// beat looks while there is load. Go's scheduler takes the processor of a thread that sleeps when no other is idle, and
// then looks every 20 µs whether there are more of the kind, thousands of times a second. So one is lent for as long.
func (s *Sampler) beat(ctx context.Context, busy func() bool) {
	processors.lendBeside()
	defer processors.releaseBeside()
	for ctx.Err() == nil && busy() {
		due := time.Now().Add(beatInterval)
		sleep(beatInterval)
		s.stalls.observe(time.Since(due), true)
	}
}

// observe takes by how much a look was late, and whether it is one of those that count for the lateness.
func (s *stallDetector) observe(late time.Duration, beats bool) {
	if int64(late) > s.longest.Load() {
		s.longest.Store(int64(late)) // the one goroutine that raises it
	}
	if !beats {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late.Record(engine.Milliseconds(late))
	if late >= minStop {
		s.stopped += late
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

// witness is what has been noticed so far.
func (s *Sampler) witness() *engine.Witness {
	w := &engine.Witness{Retransmits: retransmits("/proc")}
	w.RunNs, w.WaitNs, w.Slices, w.Known = s.schedule.read("/proc")
	s.stalls.mu.Lock()
	defer s.stalls.mu.Unlock()
	w.Late, w.StoppedNs = s.stalls.late, s.stalls.stopped.Nanoseconds()
	return w
}
