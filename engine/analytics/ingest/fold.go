package ingest

import (
	"maps"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// fold adds the snapshots of one run up to its seconds.
type fold struct {
	start   time.Time
	perHour rollup.CreditRateFunc
	workers map[string]*workerState
	scratch *histogram.Histogram
	// A second's distribution, that of a kind, and that of the kind before are looked at together.
	second, kind, before histogram.Unpacker
}

// workerState is the last snapshot of a run worker. Its counters are subtracted from those of the next snapshot; a new
// phase starts from zero.
type workerState struct {
	tick    int64
	phase   engine.Phase
	kinds   map[engine.Kind]*engine.PackedHistogram
	classes map[engine.ErrorClass]int64
	// thinned: its distributions by kind are not known.
	thinned bool
	report  *rollup.Report
}

func newFold(start time.Time, ticks map[string]int64, perHour rollup.CreditRateFunc) *fold {
	f := &fold{start: start, perHour: perHour, workers: map[string]*workerState{}, scratch: histogram.New()}
	for worker, tick := range ticks {
		f.workers[worker] = &workerState{tick: tick}
	}
	return f
}

// batch adds up ticks.
func (f *fold) batch(ticks []tick, polls []engine.WarehousePoint) *rollup.Live {
	l := &rollup.Live{Seconds: rollup.New(f.start), Warehouse: polls, PerHour: f.perHour, Ticks: map[string]int64{}}
	for _, t := range ticks {
		l.Operations, l.Errors = t.operations, t.errors
		for i := range t.snapshots {
			f.add(l, &t.snapshots[i], t.at)
		}
	}
	return l
}

// add adds a snapshot, once.
func (f *fold) add(l *rollup.Live, w *engine.WorkerSnapshot, at time.Time) {
	before := f.workers[w.WorkerID]
	if before == nil {
		before = &workerState{}
	}
	if w.Tick <= before.tick {
		return
	}
	// What a phase has counted is known from its beginning, or since the snapshot before.
	follows := w.Tick == before.tick+1 && (before.phase != "" || before.tick == 0)
	// While the store was away, a snapshot may have lost its distributions by kind.
	kindsFollow := follows && (before.phase != w.Phase || !before.thinned)
	report := f.report(l, w, before, at)
	if before.phase != w.Phase {
		before = &workerState{}
	}
	f.workers[w.WorkerID] = &workerState{tick: w.Tick, phase: w.Phase, kinds: w.KindLatency, classes: w.ByClass,
		thinned: w.KindLatency == nil && w.Started > 0, report: report}
	l.Ticks[w.WorkerID] = w.Tick
	if w.TickStarted <= 0 {
		return
	}
	m := rollup.Moment{Second: f.secondOf(w, at), Warmup: w.Phase == engine.PhaseWarmup}
	s := l.Seconds
	s.Executions += w.TickStarted
	latency := f.checked(f.second.Unpack(w.TickLatency))
	for _, c := range []*rollup.Cell{rollup.CellFor(s.Run, m), rollup.CellFor(s.Workers, rollup.WorkerKey{Moment: m,
		Worker: w.WorkerID})} {
		addTo(c, w.TickStarted, w.TickErrors, latency)
	}
	f.addKinds(s, m, w, before, kindsFollow, latency)
	if follows {
		for class, n := range w.ByClass {
			if more := n - before.classes[class]; more > 0 {
				s.Errors[rollup.ErrorKey{Moment: m, Class: string(class)}] += more
			}
		}
	}
}

// report adds what the run worker was, and how its schedule went.
func (f *fold) report(l *rollup.Live, w *engine.WorkerSnapshot, before *workerState, at time.Time) *rollup.Report {
	r := rollup.NewReport(w)
	last := before.report
	if last == nil && w.Tick > 1 {
		// What was before is there already, or is another owner's: of this snapshot counts what its tick did.
		last = &rollup.Report{Phase: w.Phase, Load: rollup.Load{Counts: rollup.Counts{Retries: w.Retries,
			Scheduled: w.Scheduled - w.TickScheduled, Dropped: w.Dropped - w.TickDropped}}}
	}
	if r.Counted() {
		l.Seconds.Report(f.secondOf(w, at), &r, last)
	}
	return &r
}

func (f *fold) addKinds(s *rollup.Seconds, m rollup.Moment, w *engine.WorkerSnapshot, before *workerState, follows bool,
	latency *engine.HistogramData) {
	kinds := slices.Sorted(maps.Keys(w.TickByKind))
	kinds = slices.DeleteFunc(kinds, func(k engine.Kind) bool { return w.TickByKind[k].Count <= 0 })
	for _, kind := range kinds {
		its := latency
		if len(kinds) > 1 {
			// The phase's less that of the snapshot before; where that is not known, the second has no percentiles.
			its = nil
			if follows {
				now := f.checked(f.kind.Unpack(w.KindLatency[kind]))
				its = histogram.Delta(now, f.before.Unpack(before.kinds[kind]))
			}
		}
		n := w.TickByKind[kind]
		addTo(rollup.CellFor(s.Kinds, rollup.KindKey{Moment: m, Kind: kind.String()}), n.Count, n.Errors, its)
	}
}

func addTo(c *rollup.Cell, operations, errors int64, latency *engine.HistogramData) {
	c.Operations += operations
	c.Errors += errors
	if latency != nil {
		c.Latency.MergeData(latency)
	}
}

// secondOf is the one that most of a snapshot lies in. A clock that is wrong does not put it outside of the run.
func (f *fold) secondOf(w *engine.WorkerSnapshot, at time.Time) int32 {
	middle := w.Timestamp.Time
	if middle.After(at) || at.Sub(middle) > time.Hour {
		middle = at
	}
	return rollup.SecondAt(f.start, middle, w.TickSeconds)
}

// checked is a histogram that adds up, nil for others.
func (f *fold) checked(d *engine.HistogramData) *engine.HistogramData {
	if d == nil {
		return nil
	}
	f.scratch.Reset()
	if f.scratch.MergeData(d) != nil || f.scratch.Count() == 0 {
		return nil
	}
	return d
}
