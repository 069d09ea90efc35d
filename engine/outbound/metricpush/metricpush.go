// Package metricpush gives the metrics of runs that are going on to other systems: the same series, names and labels as
// PromQL has here (docs/guides/dashboards.md), about three seconds after the fact.
//
// # Beside the load
//
// Nothing of it waits for anybody: the server that owns a run adds the snapshots of its run workers up to seconds, as
// for the results database (engine/analytics/ingest, which keeps a bounded number of them), a Feed makes samples of
// these, and each Sink has a queue of its own that has an end.
//
// # A sample is sent once
//
// Here the newest sample of a run that goes on may still grow; elsewhere a sample cannot be changed. So a second is
// sent when it has settled. What comes later still is counted in the next second: no operation is lost or counted
// twice.
//
// # Who sends
//
// The owner of a run. Who takes a run over begins to count at 0, as a process does that was restarted: the start of
// its counters says so, and rate() and increase() add up over it.
package metricpush

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/metric"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Series is one series of a run. There is one of it in memory for all of its points.
type Series struct {
	Metric *metric.Metric
	// Labels include the name.
	Labels labels.Labels
}

// Latency is a distribution: a bucket i of the schema s holds what lies above 2^((i-1)/2^s) ns, up to 2^(i/2^s) ns;
// the first of Counts is that of the bucket at Offset. It is not changed after it was made.
type Latency struct {
	Schema, Offset int32
	Counts         []int64
	Count, SumNs   int64
}

// Point is a sample. Times are in milliseconds since the epoch of Unix.
type Point struct {
	Series  *Series
	AtMs    int64
	StartMs int64
	Value   float64
	Latency *Latency // of histograms
	Stale   bool     // the series has ended, and there is no value
}

// Bytes is about what a point takes while it waits.
func (p Point) Bytes() int {
	n := 64
	if p.Latency != nil {
		n += 48 + 8*len(p.Latency.Counts)
	}
	return n
}

// Sink takes the points of a run, those of each series in the order of their time. It must not wait.
type Sink interface{ Take(points []Point) }

const (
	// settleDelay is how long after its end a second is sent.
	settleDelay = 2 * time.Second
	// lingerDelay is for how long seconds of a run are taken that has ended.
	lingerDelay = 3 * time.Second
	// staleAfter is after how long without news of it a run worker, a node or a warehouse is not shown any more, as in
	// the series of runs that go on here.
	staleAfter = 15 * time.Second
	// maxGapSeconds bounds in seconds what is sent of a stretch in which nothing ended.
	maxGapSeconds = 300
	// runTTL is for how long nothing comes of a run whose end nobody has seen here.
	runTTL       = 15 * time.Minute
	pollInterval = 250 * time.Millisecond
)

// Pusher makes samples of the seconds of runs. It implements ingest.LiveTarget, and is safe for concurrent use.
type Pusher struct {
	sinks []Sink
	stop  context.CancelFunc
	done  chan struct{}

	mu   sync.Mutex
	runs map[string]*runSeries
}

// Start begins to make samples for sinks.
func Start(sinks ...Sink) *Pusher {
	ctx, stop := context.WithCancel(context.Background())
	f := &Pusher{sinks: sinks, stop: stop, done: make(chan struct{}), runs: map[string]*runSeries{}}
	go f.loop(ctx)
	return f
}

// Close ends what runs are going on without a marker, for whoever takes them over goes on with their series, and sends
// what is there.
func (f *Pusher) Close() {
	f.stop()
	<-f.done
}

// BeginLive implements ingest.LiveTarget.
func (f *Pusher) BeginLive(_ context.Context, run engine.Run, epoch int64) (map[string]int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.runs[run.RunID]; known != nil && known.epoch > epoch {
		return nil, store.ErrFenced
	}
	f.runs[run.RunID] = newRunSeries(run, epoch, time.Now())
	return nil, nil
}

// PutLive implements ingest.LiveTarget.
func (f *Pusher) PutLive(_ context.Context, l rollup.Live) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	flow := f.runs[l.RunID]
	if flow == nil || flow.epoch != l.Epoch {
		return store.ErrFenced
	}
	flow.add(l, time.Now())
	return nil
}

// Ended says that a run has ended: its series end with a marker, once what is on its way is here.
func (f *Pusher) Ended(runID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if flow := f.runs[runID]; flow != nil && flow.ended.IsZero() {
		flow.ended = time.Now()
	}
}

// Lost says that somebody else owns a run now, who goes on with its series.
func (f *Pusher) Lost(runID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.runs, runID)
}

func (f *Pusher) loop(ctx context.Context) {
	defer close(f.done)
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		last := false
		select {
		case <-ctx.Done():
			last = true
		case <-look.C:
		}
		f.pass(time.Now(), last)
		if last {
			return
		}
	}
}

// pass sends what has settled, or all.
func (f *Pusher) pass(now time.Time, all bool) {
	f.mu.Lock()
	var points []Point
	for id, r := range f.runs {
		over := !r.ended.IsZero() && (all || now.Sub(r.ended) >= lingerDelay)
		points = r.settled(points, now, all || over)
		if over {
			points = r.markers(points)
		}
		if over || now.Sub(r.lastSeen) > runTTL {
			delete(f.runs, id)
		}
	}
	f.mu.Unlock()
	if len(points) == 0 {
		return
	}
	for _, s := range f.sinks {
		s.Take(points)
	}
}
