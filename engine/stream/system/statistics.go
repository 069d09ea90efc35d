package system

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// statistic is what figures of a second are of.
type statistic struct {
	statement uint16
	kind      engine.Kind
	inside    bool // of a transaction
	warmup    bool
}

type figures struct {
	count, errors int64
	latency       histogram.Compact
}

// count adds up the second of each statement. It needs mu.
func (f *follower) count(recs []engine.Execution) {
	f.begin(f.hub.rows.generation.Load())
	var last *figures
	var of statistic
	for i := range recs {
		r := &recs[i]
		if key := (statistic{r.Statement, r.Kind, r.Position != 0, r.Warmup}); last == nil || key != of {
			if of, last = key, f.statistics[key]; last == nil {
				last = &figures{}
				f.statistics[key] = last
			}
		}
		last.count++
		if !r.Success {
			last.errors++
		}
		last.latency.Record(r.Elapsed)
	}
}

// publishStatistics tells what statements have done since the last time. It needs the follower's mu.
func (h *Hub) publishStatistics(f *follower) {
	if !h.HasReaders(connector.StatementStatistics) || f.generation != h.rows.generation.Load() || len(f.statistics) == 0 {
		return
	}
	now := f.stream.Now()
	h.Publish(connector.StatementStatistics, func(b *column.Batch) {
		for _, s := range slices.SortedFunc(maps.Keys(f.statistics), statistic.compare) {
			its := f.statistics[s]
			phase := engine.PhaseMeasurement
			if s.warmup {
				phase = engine.PhaseWarmup
			}
			data := its.latency.Data()
			q := quantiles(&data)
			row(b, now, f.stream.RunID, f.stream.WorkerID, f.stream.NodeID, string(phase),
				string(f.name(&engine.Execution{Statement: s.statement, Kind: s.kind})), s.kind.String(), s.inside, its.count,
				its.errors, q[0], q[1], q[2])
		}
	})
	clear(f.statistics)
}

func (s statistic) compare(o statistic) int {
	number := func(s statistic) int {
		n := int(s.statement)<<16 | int(s.kind)<<2
		if s.inside {
			n |= 2
		}
		if s.warmup {
			n |= 1
		}
		return n
	}
	return number(s) - number(o)
}

// quantiles are the P50, P95 and P99 in milliseconds, or nil.
func quantiles(d *engine.HistogramData) (q [3]any) {
	if d == nil {
		return q
	}
	latency := histogram.New()
	if err := latency.MergeData(d); err != nil || latency.Count() == 0 {
		return q
	}
	for i, at := range []float64{0.5, 0.95, 0.99} {
		q[i] = latency.Quantile(at) / float64(time.Millisecond)
	}
	return q
}

// lastKinds are the last snapshots of run workers: their distributions by kind count over a phase, and a second is what
// the next one has by it.
type lastKinds struct {
	mu   sync.Mutex
	seen map[[2]string]lastKind
}

type lastKind struct {
	tick  int64
	phase engine.Phase
	kinds map[engine.Kind]*engine.PackedHistogram
}

// publishKinds tells a second by kind.
func (h *Hub) publishKinds(t *store.Tick) {
	k := &h.kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	if !h.HasReaders(connector.KindStatistics) {
		clear(k.seen)
		return
	}
	if k.seen == nil {
		k.seen = map[[2]string]lastKind{}
	}
	h.Publish(connector.KindStatistics, func(b *column.Batch) {
		for i := range t.Snapshots {
			s := &t.Snapshots[i]
			key := [2]string{t.RunID, s.WorkerID}
			before, known := k.seen[key]
			if known && s.Tick <= before.tick {
				continue
			}
			k.seen[key] = lastKind{s.Tick, s.Phase, s.KindLatency}
			// Without the snapshot before the second's part of a phase is not known, but at its beginning.
			follows := known && s.Tick == before.tick+1 && (before.phase != s.Phase || before.kinds != nil) || s.Tick == 1
			if before.phase != s.Phase {
				before.kinds = nil
			}
			kinds := slices.Sorted(maps.Keys(s.TickByKind))
			for _, kind := range kinds {
				n := s.TickByKind[kind]
				if n.Count <= 0 {
					continue
				}
				var latency *engine.HistogramData
				switch {
				case len(kinds) == 1:
					latency = histogram.Unpack(s.TickLatency)
				case follows:
					latency = histogram.Delta(histogram.Unpack(s.KindLatency[kind]), histogram.Unpack(before.kinds[kind]))
				}
				q := quantiles(latency)
				row(b, s.Timestamp.Time, t.RunID, s.WorkerID, s.NodeID, string(s.Phase), kind.String(), n.Count, n.Errors,
					q[0], q[1], q[2])
			}
		}
	})
}

// forget drops what is kept of a run that has ended.
func (k *lastKinds) forget(runID string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.seen, func(key [2]string, _ lastKind) bool { return key[0] == runID })
}
