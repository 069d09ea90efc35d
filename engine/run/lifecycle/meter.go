package lifecycle

import (
	"maps"
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
	// decode is the least time that an operation of a step took, on the mean, from the first byte of its answer on.
	decode time.Duration
}

// workerStep is one run worker's part. Its time is that of its ticks in the step.
type workerStep struct {
	seconds              float64
	operations, failures int64
	dropped              int64
	due                  int64
	missing              int
	latency              *histogram.Histogram
	over                 bool
	// perSecond are the operations of each tick, in a second.
	perSecond []float64
	late      lateness
}

// shortestTick is the least length in seconds of a tick whose rate tells how rates scatter.
const shortestTick = 0.5

// Number is that of the step, 0 before the first.
func (m *Meter) Number() int { return m.number }

// Level is that of the step.
func (m *Meter) Level() float64 { return m.level }

// Queued notes that the warehouse had queries waiting during the step.
func (m *Meter) Queued() { m.queued = true }

// Begin forgets the step before and expects reports of the given workers.
func (m *Meter) Begin(number int, level float64, workers []string) {
	m.keepDecode()
	before := m.workers
	*m = Meter{number: number, level: level, workers: map[string]*workerStep{}, decode: m.decode}
	for _, id := range workers {
		m.workers[id] = &workerStep{latency: histogram.New()}
		if w := before[id]; w != nil {
			m.workers[id].late.last = w.late.last
		}
	}
}

// Add takes a snapshot; one that does not lie in the step changes nothing.
func (m *Meter) Add(s *engine.WorkerSnapshot) {
	w := m.workers[s.WorkerID]
	if w == nil {
		return
	}
	if s.Step == 0 || s.Step != m.number || w.over {
		if s.Resources.Witness != nil {
			w.late.last = s.Resources.Witness // what is between steps counts in none
		}
		return
	}
	w.seconds += s.TickSeconds
	w.operations += s.TickStarted
	w.failures += s.TickErrors
	w.dropped += s.TickDropped
	w.due += s.TickScheduled
	w.missing, w.over = s.StepMissing, s.StepOver
	if s.TickSeconds > shortestTick {
		w.perSecond = append(w.perSecond, float64(s.TickStarted)/s.TickSeconds)
	}
	w.late.add(s)
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
	longest, perSecond := 0.0, []float64(nil)
	for _, id := range slices.Sorted(maps.Keys(m.workers)) {
		w := m.workers[id]
		o.Operations += w.operations
		o.Errors += w.failures
		o.Dropped += w.dropped
		o.Missing += w.missing
		o.Due += w.due
		longest = max(longest, w.seconds)
		if w.seconds > 0 {
			o.QPS += float64(w.operations) / w.seconds
		}
		for i, n := range w.perSecond {
			if i == len(perSecond) {
				perSecond = append(perSecond, 0)
			}
			perSecond[i] += n
		}
		if why := w.late.judge(w.latency, m.decode); why != "" && o.GeneratorLate == "" {
			o.GeneratorLate = id + " " + why
		}
		o.StoodStillMs = max(o.StoodStillMs, w.late.stoodMs())
		if w.latency.Count() == 0 {
			continue
		}
		all.Merge(w.latency)
		o.P95, o.P99 = slower(o.P95, w.latency.Quantile(0.95)), slower(o.P99, w.latency.Quantile(0.99))
	}
	o.QPSError = findmax.StandardError(perSecond)
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
