//go:build !linux

package host

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// system is the portable fallback: the Go runtime's own view of the process,
// nothing of the host.
type system struct{}

func newSystem() system { return system{} }

// processCPU is the runtime's estimate of the CPU time it did not spend idle.
func (system) processCPU() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64 || s[1].Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return time.Duration((s[0].Value.Float64() - s[1].Value.Float64()) * float64(time.Second))
}

func (system) cpus() float64 { return float64(runtime.NumCPU()) }

func (system) processMemory() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64())
}

func (system) memoryLimit() int64             { return 0 }
func (system) hostMemoryPercent() float64     { return 0 }
func (system) hostCPU() (busy, total float64) { return 0, 0 }
