package rollup

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Unknown is a value of a Load that nobody knows, or that there is none of.
const Unknown = -1

// Counts are arrivals of an open loop, those of them that were never begun, and repetitions of failed operations.
type Counts struct{ Scheduled, Dropped, Retries int64 }

func (c Counts) minus(o Counts) Counts {
	return Counts{max(c.Scheduled-o.Scheduled, 0), max(c.Dropped-o.Dropped, 0), max(c.Retries-o.Retries, 0)}
}

// Load is what a run worker reported at the end of a second, and what it counted in it.
type Load struct {
	Node string
	Counts
	Connections, TargetConnections int
	// Waiting operations are due and have no connection; Unknown in records of earlier versions.
	Waiting int
	// TargetRate is what the schedule asks for, in operations a second; Unknown where the workload paces itself.
	TargetRate float64
	// CPU and Memory are fractions of what the node's process may use, HostCPU and HostMemory of its machine.
	CPU, Memory, HostCPU, HostMemory float64
	MemoryBytes                      int64
}

// loadOf is what a snapshot says; its counts are those of the phase.
func loadOf(w *engine.WorkerSnapshot) *Load {
	r := &w.Resources
	l := &Load{Node: w.NodeID, Counts: Counts{w.Scheduled, w.Dropped, w.Retries}, Connections: w.ActiveConnections,
		TargetConnections: w.TargetConnections, Waiting: w.Waiting, TargetRate: Unknown,
		CPU: r.CPUPercent / 100, Memory: r.MemoryPercent / 100, MemoryBytes: r.MemoryBytes,
		HostCPU: r.HostCPUPercent / 100, HostMemory: r.HostMemoryPercent / 100}
	if w.TargetQPS != nil {
		l.TargetRate = *w.TargetQPS
	}
	return l
}

// SecondAt is the one, counted from the start of the run, that most of a tick lies in which ended at a time.
func SecondAt(start, end time.Time, tickSeconds float64) int32 {
	covered := min(max(tickSeconds, 0), 60)
	middle := end.Add(-time.Duration(covered / 2 * float64(time.Second)))
	return int32(min(max(math.Floor(middle.Sub(start).Seconds()), 0), math.MaxInt32))
}

// Report adds what a run worker reported in a second; outside of the load that is nothing. before is its snapshot
// before that, nil when this is the first. Where it made two in one second, their counts add up, and of the rest the
// later one stays.
func (s *Seconds) Report(second int32, w, before *engine.WorkerSnapshot) {
	if w.Phase != engine.PhaseWarmup && w.Phase != engine.PhaseMeasurement {
		return
	}
	l := loadOf(w)
	if before != nil && before.Phase == w.Phase {
		l.Counts = l.minus(Counts{before.Scheduled, before.Dropped, before.Retries})
	}
	s.load(WorkerKey{Moment{second, w.Phase == engine.PhaseWarmup}, w.WorkerID}, l)
}

func (s *Seconds) load(key WorkerKey, l *Load) {
	if old := s.Loads[key]; old != nil {
		l.Scheduled, l.Dropped, l.Retries = l.Scheduled+old.Scheduled, l.Dropped+old.Dropped, l.Retries+old.Retries
	}
	s.Loads[key] = l
}
