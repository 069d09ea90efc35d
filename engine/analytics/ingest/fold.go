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
	// last are the last snapshots of the run workers. Their counters are subtracted from those of the next ones; a new
	// phase starts from zero. One without a phase is of an owner before, and only its tick is known.
	last    map[string]*engine.WorkerSnapshot
	scratch *histogram.Histogram
	// A second's distribution, that of a kind, and that of the kind before are looked at together.
	second, kind, before histogram.Unpacker
}

func newFold(start time.Time, ticks map[string]int64, perHour rollup.CreditRateFunc) *fold {
	f := &fold{start: start, perHour: perHour, last: map[string]*engine.WorkerSnapshot{}, scratch: histogram.New()}
	for worker, tick := range ticks {
		f.last[worker] = &engine.WorkerSnapshot{Tick: tick}
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
	before := f.last[w.WorkerID]
	if before == nil {
		before = &engine.WorkerSnapshot{}
	}
	if w.Tick <= before.Tick {
		return
	}
	// What a phase has counted is known from its beginning, or since the snapshot before.
	follows := w.Tick == before.Tick+1 && (before.Phase != "" || before.Tick == 0)
	// While the store was away, a snapshot may have lost its distributions by kind.
	thinned := before.KindLatency == nil && before.Started > 0
	kindsFollow := follows && (before.Phase != w.Phase || !thinned)
	f.report(l, w, before, at)
	if before.Phase != w.Phase {
		before = &engine.WorkerSnapshot{}
	}
	kept := *w
	kept.TickLatency, kept.LastErrors = nil, nil
	f.last[w.WorkerID] = &kept
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
			if more := n - before.ByClass[class]; more > 0 {
				s.Errors[rollup.ErrorKey{Moment: m, Class: string(class)}] += more
			}
		}
	}
}

// report adds what the run worker was, and how its schedule went.
func (f *fold) report(l *rollup.Live, w, before *engine.WorkerSnapshot, at time.Time) {
	if before.Phase == "" && w.Tick > 1 {
		// What was before is there already, or is another owner's: of this snapshot counts what its tick did.
		before = &engine.WorkerSnapshot{Phase: w.Phase, Retries: w.Retries, Scheduled: w.Scheduled - w.TickScheduled,
			Dropped: w.Dropped - w.TickDropped}
	}
	l.Seconds.Report(f.secondOf(w, at), w, before)
}

func (f *fold) addKinds(s *rollup.Seconds, m rollup.Moment, w, before *engine.WorkerSnapshot, follows bool,
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
				its = histogram.Delta(now, f.before.Unpack(before.KindLatency[kind]))
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
