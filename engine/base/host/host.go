// Package host measures what this process and its machine use, and what the process may use. Where a cgroup limits it,
// that counts.
package host

import (
	"math"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

const gcPauses = "/sched/pauses/total/gc:seconds"

// CPUs is how many processors the process may use, a part of one included.
func CPUs() float64 { return newSystem().cpus() }

// Memory is how much memory the process may use, in bytes: the machine's, or less where a cgroup says so; 0 where that
// is not known.
func Memory() int64 { return newSystem().memoryLimit() }

// Sampler measures the process and its host over the time between two calls.
type Sampler struct {
	os     system
	last   time.Time
	cpu    time.Duration
	busy   float64 // host CPU, in its own units
	total  float64
	pauses []uint64
	gc     []metrics.Sample
	stalls stallDetector

	schedule scheduleReader
}

// New begins to measure.
func New() *Sampler {
	s := &Sampler{os: newSystem(), gc: []metrics.Sample{{Name: gcPauses}}}
	s.Sample()
	return s
}

// Sample returns what was used since the call before. One goroutine calls it.
func (s *Sampler) Sample() engine.Resources {
	now := time.Now()
	r := engine.Resources{Goroutines: runtime.NumGoroutine()}
	cpu := s.os.processCPU()
	if wall := now.Sub(s.last); !s.last.IsZero() && wall > 0 {
		r.CPUPercent = bounded(100 * float64(cpu-s.cpu) / float64(wall) / s.os.cpus())
	}
	s.last, s.cpu = now, cpu
	r.MemoryBytes = s.os.processMemory()
	if limit := s.os.memoryLimit(); limit > 0 {
		r.MemoryPercent = bounded(100 * float64(r.MemoryBytes) / float64(limit))
	}
	busy, total := s.os.hostCPU()
	if total > s.total {
		r.HostCPUPercent = bounded(100 * (busy - s.busy) / (total - s.total))
	}
	s.busy, s.total = busy, total
	r.HostMemoryPercent = bounded(s.os.hostMemoryPercent())
	r.GCPauseMaxMs, r.MaxStallMs = s.longestPause(), engine.Milliseconds(s.stalls.takeLongest())
	r.Witness = s.witness()
	return r
}

func bounded(percent float64) float64 {
	if math.IsNaN(percent) {
		return 0
	}
	return math.Max(0, math.Min(100, percent))
}

// longestPause returns the upper bound, in ms, of the longest stop of the world
// for garbage collection since the call before.
func (s *Sampler) longestPause() float64 {
	metrics.Read(s.gc)
	if s.gc[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := s.gc[0].Value.Float64Histogram()
	longest := 0.0
	for i, n := range h.Counts {
		if i < len(s.pauses) && n > s.pauses[i] {
			bound := h.Buckets[i+1]
			if math.IsInf(bound, 1) {
				bound = h.Buckets[i]
			}
			longest = bound * 1000
		}
	}
	s.pauses = append(s.pauses[:0], h.Counts...)
	return longest
}
