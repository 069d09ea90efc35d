package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is a results database in memory.
type database struct {
	mu      sync.Mutex
	start   time.Time
	away    error
	lost    bool // the answers of what is written
	epoch   int64
	batch   int64
	closed  bool
	ticks   map[string]int64
	seconds *rollup.Seconds
	seen    map[int32]time.Duration // how long after its end a second was there
	writes  int
}

func newDatabase() *database {
	start := time.Now()
	return &database{start: start, ticks: map[string]int64{}, seconds: rollup.New(start), seen: map[int32]time.Duration{}}
}

func (d *database) BeginLive(_ context.Context, _ engine.Run, epoch int64) (map[string]int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away != nil {
		return nil, d.away
	}
	if d.closed || epoch < d.epoch {
		return nil, store.ErrFenced
	}
	d.epoch = epoch
	ticks := map[string]int64{}
	for worker, tick := range d.ticks {
		ticks[worker] = tick
	}
	return ticks, nil
}

func (d *database) PutLive(_ context.Context, l rollup.Live) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.away != nil:
		return d.away
	case d.closed || l.Epoch != d.epoch:
		return store.ErrFenced
	case l.Batch <= d.batch:
		return nil
	}
	d.batch, d.writes = l.Batch, d.writes+1
	for worker, tick := range l.Ticks {
		d.ticks[worker] = tick
	}
	for m := range l.Seconds.Run {
		if _, ok := d.seen[m.Second]; !ok {
			d.seen[m.Second] = time.Since(d.start) - time.Duration(m.Second+1)*time.Second
		}
	}
	d.seconds.Merge(l.Seconds)
	if d.lost {
		return errors.New("the answer was lost")
	}
	return nil
}

func (d *database) open(context.Context) (ingest.LiveTarget, error) { return d, nil }

func (d *database) run(_ context.Context, id string) (engine.Run, error) {
	return engine.Run{RunID: id, StartTime: engine.At(d.start)}, nil
}

func (d *database) operations() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.seconds.Run {
		n += c.Operations
	}
	return n
}

func (d *database) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// snapshot is the tick of a run worker that ends now: so many point lookups of 1 ms, and a tenth of that range scans
// of 10 ms that fail.
func (d *database) snapshot(worker string, tick, operations int64) engine.WorkerSnapshot {
	both, each := histogram.New(), map[engine.Kind]*histogram.Histogram{}
	for kind, ns := range map[engine.Kind]int64{engine.KindPointLookup: 1e6, engine.KindRangeScan: 1e7} {
		each[kind] = histogram.New()
		n := operations
		if kind == engine.KindRangeScan {
			n = operations / 10
		}
		for range n {
			both.Record(ns)
		}
		for range n * tick {
			each[kind].Record(ns)
		}
	}
	return engine.WorkerSnapshot{WorkerID: worker, Tick: tick, Phase: engine.PhaseMeasurement,
		Timestamp: engine.At(time.Now()), TickSeconds: 1, TickStarted: operations + operations/10,
		TickErrors: operations / 10,
		TickByKind: map[engine.Kind]engine.KindCounts{engine.KindPointLookup: {Count: operations},
			engine.KindRangeScan: {Count: operations / 10, Errors: operations / 10}},
		TickLatency: histogram.Pack(both.Data()),
		ByClass:     map[engine.ErrorClass]int64{engine.ErrClassTimeout: tick * operations / 10},
		KindLatency: map[engine.Kind]*engine.PackedHistogram{
			engine.KindPointLookup: histogram.Pack(each[engine.KindPointLookup].Data()),
			engine.KindRangeScan:   histogram.Pack(each[engine.KindRangeScan].Data())}}
}

func (d *database) tick(s *ingest.LiveWriter, epoch, tick, operations int64, workers ...string) {
	t := &store.Tick{RunID: "r", Epoch: epoch}
	for _, w := range workers {
		t.Snapshots = append(t.Snapshots, d.snapshot(w, tick, operations))
	}
	s.Tick(t)
}

func start(d *database) *ingest.LiveWriter {
	return ingest.StartLive(ingest.LiveOptions{Target: d.open, Run: d.run, Log: zerolog.Nop()})
}

// TestSecondsAreThereWithinTwo: each second of two run workers is there, whole, within two seconds of its end; kinds
// and errors, which snapshots count over the phase, are told apart by second.
func TestSecondsAreThereWithinTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		s := start(d)
		defer s.Close()
		time.Sleep(300 * time.Millisecond)
		for tick := int64(1); tick <= 10; tick++ {
			time.Sleep(time.Second)
			d.tick(s, 1, tick, 100, "one", "two")
		}
		synctest.Wait()
		for second := range int32(10) {
			m := rollup.Moment{Second: second}
			after, there := d.seen[second]
			if !there || after > 2*time.Second {
				t.Errorf("second %d was there %v after its end (%v)", second, after, there)
			}
			if c := d.seconds.Run[m]; c == nil || c.Operations != 220 || c.Errors != 20 || count(c) != 220 {
				t.Errorf("second %d: %+v", second, c)
			}
			for kind, want := range map[string]int64{"POINT_LOOKUP": 200, "RANGE_SCAN": 20} {
				if c := d.seconds.Kinds[rollup.KindKey{Moment: m, Kind: kind}]; c == nil || c.Operations != want ||
					count(c) != want {
					t.Errorf("second %d of %s: %+v", second, kind, c)
				}
			}
			if n := d.seconds.Errors[rollup.ErrorKey{Moment: m, Class: "timeout"}]; n != 20 {
				t.Errorf("second %d has %d errors of 20", second, n)
			}
			if c := d.seconds.Workers[rollup.WorkerKey{Moment: m, Worker: "two"}]; c == nil || c.Operations != 110 {
				t.Errorf("second %d of a run worker: %+v", second, c)
			}
		}
	})
}

func count(c *rollup.Cell) (n int64) {
	for _, bucket := range c.Latency.Data().Counts {
		n += bucket
	}
	return n
}

// TestNothingIsAddedTwice: snapshots that come again, answers that are lost and a second owner that hears the
// last snapshots again.
func TestNothingIsAddedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		first := start(d)
		defer first.Close()
		for tick := int64(1); tick <= 5; tick++ {
			time.Sleep(time.Second)
			d.set(func() { d.lost = tick == 3 })
			for range 2 {
				d.tick(first, 1, tick, 100, "one")
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if n := d.operations(); n != 550 {
			t.Fatalf("%d operations of 550", n)
		}
		second := start(d)
		defer second.Close()
		for tick := int64(4); tick <= 7; tick++ {
			d.tick(second, 2, tick, 100, "one")
			synctest.Wait()
			d.tick(first, 1, tick+4, 100, "one") // it has not noticed yet
			time.Sleep(time.Second)
		}
		if n := d.operations(); n != 770 {
			t.Errorf("%d operations of 770 behind a takeover", n)
		}
		d.set(func() { d.closed = true })
		d.tick(second, 2, 8, 100, "one")
		time.Sleep(time.Minute)
		if n := d.operations(); n != 770 {
			t.Errorf("%d operations behind the end", n)
		}
	})
}

// TestADatabaseThatIsAwayCostsABoundedAmount: what does not fit is left out, oldest first, what does comes when the
// database is back; and nobody waits.
func TestADatabaseThatIsAwayCostsABoundedAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		d.away = errors.New("away")
		s := start(d)
		defer s.Close()
		workers := make([]string, 1000)
		for i := range workers {
			workers[i] = fmt.Sprint("worker ", i)
		}
		distribution := &engine.PackedHistogram{Width: 1, Counts: make([]byte, 100)}
		for tick := int64(1); tick <= 30; tick++ {
			time.Sleep(time.Second)
			began := time.Now()
			idle := make([]engine.WorkerSnapshot, 999)
			for i := range idle {
				idle[i] = engine.WorkerSnapshot{WorkerID: workers[i+1], Tick: tick, Phase: engine.PhaseMeasurement,
					TickLatency: distribution}
			}
			s.Tick(&store.Tick{RunID: "r", Epoch: 1, Snapshots: idle})
			d.tick(s, 1, tick, 10, workers[0])
			if time.Since(began) != 0 {
				t.Fatal("a tick waited")
			}
		}
		d.set(func() { d.away = nil })
		time.Sleep(20 * time.Second)
		written, dropped := s.Counts()
		if written < 12 || dropped < 10 || d.operations() != written*11 {
			t.Errorf("%d seconds were written and %d dropped, %d operations", written, dropped, d.operations())
		}
		if _, ok := d.seconds.Run[rollup.Moment{Second: 29}]; !ok {
			t.Error("the newest second was left out")
		}
		d.tick(s, 1, 31, 10, workers[0])
		synctest.Wait()
		if now, _ := s.Counts(); now != written+1 {
			t.Errorf("%d seconds after %d when it is back", now, written)
		}
	})
}

// TestWhatWasThinnedIsNotCountedTwice: a second whose distributions by kind were given up while the control store was
// away has none, nor has the next one, as they count over the phase; all else of them is there.
func TestWhatWasThinnedIsNotCountedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		s := start(d)
		defer s.Close()
		for tick := int64(1); tick <= 4; tick++ {
			time.Sleep(time.Second)
			w := d.snapshot("w", tick, 10)
			w.Started = tick * 11
			if tick == 2 {
				w.KindLatency = nil
			}
			s.Tick(&store.Tick{RunID: "r", Epoch: 1, Snapshots: []engine.WorkerSnapshot{w}})
		}
		synctest.Wait()
		for second, want := range []int64{10, 0, 0, 10} {
			m := rollup.KindKey{Moment: rollup.Moment{Second: int32(second)}, Kind: engine.KindPointLookup.String()}
			c := d.seconds.Kinds[m]
			if c == nil {
				t.Fatalf("nothing of second %d", second)
			}
			n := int64(0)
			for _, count := range c.Latency.Data().Counts {
				n += count
			}
			if c.Operations != 10 || n != want {
				t.Errorf("second %d: %d operations and a distribution of %d, want 10 and %d", second, c.Operations, n, want)
			}
		}
	})
}

// TestClocksThatAreWrongStayInTheRun: a snapshot of another year counts in the second in which it came.
func TestClocksThatAreWrongStayInTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		s := start(d)
		defer s.Close()
		time.Sleep(4 * time.Second)
		for i, off := range []time.Duration{200 * 365 * 24 * time.Hour, -200 * 365 * 24 * time.Hour} {
			w := d.snapshot(fmt.Sprint(i), 1, 100)
			w.Timestamp = engine.At(time.Now().Add(off))
			w.TickLatency.Offset = 1 << 40 // and one with buckets that do not exist has no percentiles
			s.Tick(&store.Tick{RunID: "r", Epoch: 1, Snapshots: []engine.WorkerSnapshot{w}})
		}
		synctest.Wait()
		c := d.seconds.Run[rollup.Moment{Second: 3}]
		if len(d.seconds.Run) != 1 || c == nil || c.Operations != 220 || count(c) != 0 {
			t.Errorf("%+v", d.seconds.Run)
		}
	})
}

// TestLoadsAreThoseOfTheRecord: what run workers reported is, second by second, what the record of their reports comes
// to, also behind a takeover and where one is missing.
func TestLoadsAreThoseOfTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		first := start(d)
		defer first.Close()
		record := rollup.New(d.start)
		last := map[string]*engine.WorkerSnapshot{}
		s, epoch := first, int64(1)
		for tick := int64(1); tick <= 8; tick++ {
			time.Sleep(time.Second)
			if tick == 5 {
				s, epoch = start(d), 2
				defer s.Close()
			}
			t := &store.Tick{RunID: "r", Epoch: epoch}
			for i, worker := range []string{"one", "two"} {
				w := engine.WorkerSnapshot{WorkerID: worker, NodeID: "node", Tick: tick, Phase: engine.PhaseMeasurement,
					Timestamp: engine.At(time.Now()), TickSeconds: 1, Scheduled: 10 * tick, TickScheduled: 10,
					Dropped: tick * int64(i), TickDropped: int64(i), ActiveConnections: int(tick), Waiting: i}
				if tick <= 2 {
					w.Phase = engine.PhaseWarmup
				} else {
					w.Scheduled, w.Dropped = 10*(tick-2), (tick-2)*int64(i)
				}
				if tick == 4 && i == 1 {
					continue // it was lost
				}
				record.Report(rollup.SecondAt(d.start, w.Timestamp.Time, w.TickSeconds), &w, last[worker])
				last[worker] = &w
				t.Snapshots = append(t.Snapshots, w)
			}
			if tick == 5 {
				// Of the one that was lost before a takeover nobody knows the counts.
				key := rollup.WorkerKey{Moment: rollup.Moment{Second: 4}, Worker: "two"}
				record.Loads[key].Counts = rollup.Counts{Scheduled: 10, Dropped: 1}
			}
			s.Tick(t)
			synctest.Wait()
		}
		if !reflect.DeepEqual(d.seconds.Loads, record.Loads) || len(record.Loads) != 15 {
			for key, l := range record.Loads {
				t.Errorf("%+v: %+v, want %+v", key, d.seconds.Loads[key], l)
			}
		}
	})
}

// forgetful is a target that knows nothing of owners before, as what is sent to other systems does not.
type forgetful struct{ *database }

func (f forgetful) BeginLive(ctx context.Context, run engine.Run, epoch int64) (map[string]int64, error) {
	_, err := f.database.BeginLive(ctx, run, epoch)
	return nil, err
}

// TestWhatAnotherOwnerHasSeenIsNotCounted: the first snapshot that comes of a run worker counts the arrivals of its own
// tick, and not of all ticks before it.
func TestWhatAnotherOwnerHasSeenIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		s := ingest.StartLive(ingest.LiveOptions{Target: func(context.Context) (ingest.LiveTarget, error) {
			return forgetful{d}, nil
		}, Run: d.run, Log: zerolog.Nop()})
		defer s.Close()
		time.Sleep(4 * time.Second)
		for tick := int64(5); tick <= 7; tick++ {
			time.Sleep(time.Second)
			s.Tick(&store.Tick{RunID: "r", Epoch: 1, Snapshots: []engine.WorkerSnapshot{{WorkerID: "one", Tick: tick,
				Phase: engine.PhaseMeasurement, Timestamp: engine.At(time.Now()), TickSeconds: 1, Scheduled: 10 * tick,
				TickScheduled: 10, Dropped: tick, TickDropped: 1, Retries: 2 * tick}}})
			synctest.Wait()
		}
		var got rollup.Counts
		for _, l := range d.seconds.Loads {
			got.Scheduled, got.Dropped, got.Retries = got.Scheduled+l.Scheduled, got.Dropped+l.Dropped, got.Retries+l.Retries
		}
		if want := (rollup.Counts{Scheduled: 30, Dropped: 3, Retries: 4}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
