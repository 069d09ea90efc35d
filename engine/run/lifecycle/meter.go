package lifecycle

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// Meter adds up what the run workers measured in the step under way.
type Meter struct {
	number  int
	level   float64
	workers map[string]*workerStep
	// queued: the warehouse had queries waiting during the step.
	queued bool
}

// workerStep is one run worker's part. Its time is that of its ticks in the step.
type workerStep struct {
	seconds              float64
	operations, failures int64
	dropped              int64
	missing              int
	latency              *histogram.Histogram
	over                 bool
}

// Number is that of the step, 0 before the first.
func (m *Meter) Number() int { return m.number }

// Level is that of the step.
func (m *Meter) Level() float64 { return m.level }

// Queued notes that the warehouse had queries waiting during the step.
func (m *Meter) Queued() { m.queued = true }

// Begin forgets the step before and expects reports of the given workers.
func (m *Meter) Begin(number int, level float64, workers []string) {
	*m = Meter{number: number, level: level, workers: map[string]*workerStep{}}
	for _, id := range workers {
		m.workers[id] = &workerStep{latency: histogram.New()}
	}
}

// Add takes a snapshot; one that does not lie in the step changes nothing.
func (m *Meter) Add(s *engine.WorkerSnapshot) {
	w := m.workers[s.WorkerID]
	if s.Step == 0 || s.Step != m.number || w == nil || w.over {
		return
	}
	w.seconds += s.TickSeconds
	w.operations += s.TickStarted
	w.failures += s.TickErrors
	w.dropped += s.TickDropped
	w.missing, w.over = s.StepMissing, s.StepOver
	// A histogram that is not well-formed counts as one that was not sent.
	_ = w.latency.MergeData(histogram.Unpack(s.TickLatency))
}

// Complete reports whether every worker that has not left has reported all of the step.
func (m *Meter) Complete(left func(id string) bool) bool {
	for id, w := range m.workers {
		if !w.over && !left(id) {
			return false
		}
	}
	return m.number > 0
}

// Missing are the run workers that have not reported all of the step, by their ids.
func (m *Meter) Missing() (ids []string) {
	for id, w := range m.workers {
		if !w.over {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Observation is the step so far: P50 of all run workers together, P95 and P99
// of the slowest, and the longest time that one of them has measured.
func (m *Meter) Observation() (findmax.Observation, time.Duration) {
	o := findmax.Observation{Queued: m.queued}
	all := histogram.New()
	longest := 0.0
	for _, w := range m.workers {
		o.Operations += w.operations
		o.Errors += w.failures
		o.Dropped += w.dropped
		o.Missing += w.missing
		longest = max(longest, w.seconds)
		if w.seconds > 0 {
			o.QPS += float64(w.operations) / w.seconds
		}
		if w.latency.Count() == 0 {
			continue
		}
		all.Merge(w.latency)
		o.P95, o.P99 = slower(o.P95, w.latency.Quantile(0.95)), slower(o.P99, w.latency.Quantile(0.99))
	}
	if all.Count() > 0 {
		o.P50 = slower(nil, all.Quantile(0.5))
	}
	return o, time.Duration(longest * float64(time.Second))
}

// slower is the greater latency; ns becomes milliseconds.
func slower(than *float64, ns float64) *float64 {
	if ms := ns / 1e6; than == nil || ms > *than {
		return &ms
	}
	return than
}
