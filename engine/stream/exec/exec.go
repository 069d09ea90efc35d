// Package exec runs continuous queries: it reads their sources, each in a goroutine of its own, pushes the rows
// through the plan, and writes the results to the sink. A source waits while the query is busy; with ON OVERFLOW DROP
// it reads on, and the rows are counted as dropped.
package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Job is a query with all it needs.
type Job struct {
	Plan *plan.Plan
	// Sources are the physical sources of each scan of the plan, nil where one is read elsewhere. Run closes them.
	Sources [][]connector.Source
	// Heads, if it is set, is given what the heads of the plan come to, for the tail elsewhere, in place of Out.
	Heads Heads
	// Remote brings frames of the heads of sources that are read elsewhere: it waits for the next one, as long as its
	// context lets it. It has to be set where a source is nil and Heads is not set.
	Remote func(ctx context.Context) ([]byte, error)
	// Out is given the results; a batch is valid until it returns.
	Out func(*column.Batch) error
	// Sink, where it is set, says how many bytes what Out leads to holds for its rows.
	Sink connector.Holding
	// Owner is the user whose query it is: when all queries hold too much, one ends of the user who holds the most.
	Owner string
	// Limits are those of the process; Budget, where it is not 0, is how many bytes the query may hold in place of what
	// its plan and they say.
	Limits memory.Limits
	Budget int
	// OnEvict, which may be nil, is told when the query has to end since all queries hold too much. It ends what Out waits
	// for, and must not block.
	OnEvict func()
	Now     func() time.Time
	// Drain, once it is closed, ends the sources: what came from them goes through, and the query ends. May be nil.
	Drain <-chan struct{}
	// Report is told the counts about once a second, also while Out waits, and need not be set. It is called by one at a
	// time, and not any more when Run has returned.
	Report func(Counts)
}

// Heads takes what the heads of a plan come to. Its calls wait while the tail is busy.
type Heads interface {
	flow.HeadSink
	// Sync sends what was said.
	Sync() error
}

// Counts are what became of rows.
type Counts struct {
	flow.Counts
	// Malformed did not fit the schema of their source, Dropped found the query busy.
	Malformed, Dropped int64
	// Waiting is what a source waits for, empty where none does.
	Waiting string `json:",omitempty"`
}

// maxBatchesAhead is how many batches a source may be ahead of the query.
const maxBatchesAhead = 3

// idleAfter is how long a source has no row until windows do not wait for it.
const idleAfter = flow.IdleAfter

// arrival is a batch of a physical source, or its end.
type arrival struct {
	scan, origin int
	batch        *column.Batch
	err          error
	// frame came from heads elsewhere, in place of a batch.
	frame []byte
}

// reader is a physical source with the batches that go around between it and the query.
type reader struct {
	scan, origin int
	source       connector.Source
	free         chan *column.Batch
	last         time.Time
	paused       bool
	// held is what its batches take, and buffered what those of all readers of the query do that are not metered: rows of
	// metered sources are shared, and in nobody's account. Beyond most bytes it reads no further.
	held     map[*column.Batch]int
	buffered *atomic.Int64
	most     int64
	meter    *cpuMeter // of a source that is metered, else nil
}

// Run reads until all sources have ended or ctx is done, and returns what became of the rows. What ended the query
// otherwise is a *sql.Error.
func Run(ctx context.Context, j Job) (Counts, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	account := j.Limits.Open(memory.Holder{Owner: j.Owner}, cmp.Or(j.Budget, j.Plan.Memory), func() {
		cancel()
		if j.OnEvict != nil {
			j.OnEvict()
		}
	})
	defer account.Close()
	defer context.AfterFunc(ctx, account.Stop)()
	var origins []int
	var readers []*reader
	var elsewhere [][2]int
	var buffered atomic.Int64
	for scan, sources := range j.Sources {
		origins = append(origins, len(sources))
		for origin, s := range sources {
			if s == nil {
				elsewhere = append(elsewhere, [2]int{scan, origin})
				continue
			}
			r := &reader{scan: scan, origin: origin, source: s, free: make(chan *column.Batch, maxBatchesAhead), last: j.Now(),
				held: map[*column.Batch]int{}, buffered: &buffered, most: int64(account.Limit())}
			if m, is := s.(connector.Metered); is {
				r.meter = &cpuMeter{source: m}
			}
			for range maxBatchesAhead {
				r.free <- &column.Batch{} // room: the channel was made for them
			}
			readers = append(readers, r)
		}
	}
	d := driver{j: j, readers: readers, account: account, buffered: &buffered}
	o := flow.Options{Origins: origins, Account: account, Now: j.Now, Out: d.write, Ended: ctx.Err}
	if j.Report != nil && j.Out != nil {
		o.Out = d.out
		d.waiting = time.AfterFunc(time.Hour, d.reportWaiting)
		defer d.waiting.Stop()
	}
	if j.Heads != nil {
		o.Heads = j.Heads
		elsewhere = nil // that is the tail's
	}
	q := flow.New(j.Plan, o)
	// There is room for every batch that goes around, and for each source's end: a reader that may drop rows waits for
	// nobody.
	arrivals := make(chan arrival, len(readers)*(maxBatchesAhead+1))
	frames := make(chan arrival, maxBatchesAhead)
	var dropped atomic.Int64
	var reading sync.WaitGroup
	if len(elsewhere) > 0 {
		reading.Go(func() { receiveFrames(ctx, j.Remote, frames) })
	}
	for _, r := range readers {
		reading.Go(func() { r.read(ctx, arrivals, j.Plan.Drop, &dropped) })
	}
	d.q, d.arrivals, d.frames, d.heads, d.dropped = q, arrivals, frames, flow.NewReader(q, elsewhere), &dropped
	err := d.drive(ctx)
	held := account.Used()
	cancel()
	for _, r := range readers {
		_ = r.source.Close()
	}
	reading.Wait()
	q.Release()
	account.Collect(held)
	if evicted := account.Evicted(); evicted != nil {
		err = q.StateLimit(evicted, fmt.Sprintf("%d MiB", max(held>>20, 1)))
	}
	return d.counts(), err
}

// reportInterval is how often counts are told.
const reportInterval = time.Second

// read brings batches until the source ends.
func (r *reader) read(ctx context.Context, to chan<- arrival, drop bool, dropped *atomic.Int64) {
	spare := &column.Batch{}
	for ctx.Err() == nil {
		var b *column.Batch
		if drop {
			select {
			case b = <-r.free:
			default:
			}
		} else {
			select {
			case b = <-r.free:
			case <-ctx.Done():
				return
			}
		}
		lost := b == nil
		if lost {
			b = spare
		}
		err := r.source.Read(b)
		if r.meter == nil {
			size := b.Size()
			r.buffered.Add(int64(size - r.held[b]))
			r.held[b] = size
		}
		if lost && err == nil {
			dropped.Add(int64(b.N))
			continue
		}
		select {
		case to <- arrival{scan: r.scan, origin: r.origin, batch: b, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		if r.buffered.Load() > r.most { // what has arrived ends the query
			<-ctx.Done()
			return
		}
	}
}

// receiveFrames brings frames until there are no more.
func receiveFrames(ctx context.Context, next func(context.Context) ([]byte, error), to chan<- arrival) {
	for {
		frame, err := next(ctx)
		select {
		case to <- arrival{frame: frame, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// driver pushes what arrives through a query, in one goroutine.
type driver struct {
	j       Job
	q       *flow.Query
	account *memory.Account
	readers []*reader
	// sinkHeld is what the sink holds, batchesHeld what is counted of the buffered batches of sources.
	sinkHeld, batchesHeld int
	buffered              *atomic.Int64

	arrivals, frames <-chan arrival
	// heads are those elsewhere.
	heads   *flow.Reader
	dropped *atomic.Int64
	// reading is how many of the readers have not ended.
	reading  int
	draining bool
	// waiting fires when Out has not returned for long; waits says that it has not.
	waiting *time.Timer
	mu      sync.Mutex
	waits   bool
}

// out hands a batch on. While that takes long the counts are reported by somebody else: rows may be dropped meanwhile.
func (d *driver) out(b *column.Batch) error {
	d.mu.Lock()
	d.waits = true
	d.mu.Unlock()
	d.waiting.Reset(reportInterval)
	err := d.write(b)
	d.waiting.Stop()
	d.mu.Lock()
	d.waits = false
	d.mu.Unlock()
	return err
}

// write hands a batch to the sink, and counts what that holds then.
func (d *driver) write(b *column.Batch) error {
	if err := d.j.Out(b); err != nil || d.j.Sink == nil {
		return err
	}
	now, err := d.account.Set(d.sinkHeld, d.j.Sink.Held())
	if d.sinkHeld = now; err != nil {
		return d.q.StateLimit(err, "rows that the sink has not taken yet")
	}
	return nil
}

// counts are those of now.
func (d *driver) counts() Counts {
	c := Counts{Counts: d.q.Counts(), Dropped: d.dropped.Load()}
	for _, r := range d.readers {
		c.Malformed += r.source.Malformed()
		if w, is := r.source.(connector.Waiting); is && c.Waiting == "" {
			c.Waiting = w.Waiting()
		}
	}
	return c
}

// reportWaiting reports while the query stands still in Out.
func (d *driver) reportWaiting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waits {
		d.j.Report(d.counts())
		d.waiting.Reset(reportInterval)
	}
}

// flushInterval is how often heads give what they have added up, whatever the time of rows.
const flushInterval = 200 * time.Millisecond

func (d *driver) drive(ctx context.Context) error {
	d.reading = len(d.readers)
	drain := d.j.Drain
	report := time.NewTicker(reportInterval)
	defer report.Stop()
	tick := time.NewTicker(idleAfter / 5)
	defer tick.Stop()
	var flush <-chan time.Time
	if d.j.Heads != nil {
		t := time.NewTicker(flushInterval)
		defer t.Stop()
		flush = t.C
	}
	for d.reading+d.heads.Open() > 0 {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-drain:
			drain, d.draining = nil, true
			for _, r := range d.readers {
				_ = r.source.Close()
			}
		case <-report.C:
			if d.j.Report != nil {
				d.j.Report(d.counts())
			}
		case <-flush:
			err = d.q.Flush()
		case <-tick.C:
			err = d.quiet()
		case a := <-d.frames:
			err = d.frame(a)
		case a := <-d.arrivals:
			err = d.handle(ctx, a)
		}
		if err == nil && d.j.Heads != nil {
			err = d.j.Heads.Sync()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// quiet has windows not wait for sources that have had nothing for long, nor for rows that may never come.
func (d *driver) quiet() error {
	if len(d.arrivals)+len(d.frames) > 0 {
		return nil // whose they are is not known: nobody is called quiet while rows wait
	}
	for _, r := range d.readers {
		if !r.paused && d.j.Now().Sub(r.last) > idleAfter {
			r.paused = true
			if err := d.q.Pause(r.scan, r.origin); err != nil {
				return err
			}
		}
	}
	return d.wrapError(d.q.Tick())
}

// busy takes note that the query was, since then: its sources may have had to wait, which is not their silence.
func (d *driver) busy(since time.Time) {
	took := d.j.Now().Sub(since)
	for _, r := range d.readers {
		r.last = r.last.Add(took)
	}
}

// frame takes what heads elsewhere came to.
func (d *driver) frame(a arrival) error {
	if a.err != nil {
		return a.err
	}
	defer d.busy(d.j.Now())
	if err := d.account.Grow(len(a.frame)); err != nil {
		return d.q.StateLimit(err, "rows from another process")
	}
	defer d.account.Free(len(a.frame))
	return d.wrapError(d.heads.Read(a.frame))
}

// handle takes what a source has brought.
func (d *driver) handle(ctx context.Context, a arrival) error {
	i := slices.IndexFunc(d.readers, func(r *reader) bool { return r.scan == a.scan && r.origin == a.origin })
	r := d.readers[i]
	switch {
	case errors.Is(a.err, io.EOF), a.err != nil && d.draining:
		d.reading--
		r.paused = true
		return d.q.End(a.scan, a.origin)
	case a.err != nil:
		if known := (*sql.Error)(nil); errors.As(a.err, &known) {
			return known
		}
		e := sql.Errorf(sql.NetworkError, "", -1, "start the source again, then the query",
			"a source of %s was lost: %v", d.j.Plan.Scans[a.scan].Source, a.err)
		e.Cause = a.err
		return e
	}
	if err := d.take(r); err != nil {
		return err
	}
	if a.batch.N > 0 || a.batch.HasWatermark {
		r.last, r.paused = d.j.Now(), false
		began := r.last
		if err := r.push(ctx, d.q, a.batch, d.j.Drain); err != nil {
			return d.wrapError(err)
		}
		if d.j.Heads != nil {
			if err := d.j.Heads.Sync(); err != nil {
				return err
			}
		}
		d.busy(began)
	}
	r.free <- a.batch // room: it was taken from there
	return nil
}

// take counts what the batches of all sources hold by now, those that are read ahead too.
func (d *driver) take(r *reader) error {
	now, err := d.account.Set(d.batchesHeld, int(d.buffered.Load()))
	if d.batchesHeld = now; err != nil {
		return d.q.StateLimit(err, "rows of the source "+d.j.Plan.Scans[r.scan].Source)
	}
	return nil
}

// wrapError says what ended a query.
func (d *driver) wrapError(err error) error {
	var known *sql.Error
	if err == nil || d.j.Heads != nil || errors.As(err, &known) || errors.Is(err, column.ErrWire) ||
		errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("writing to the sink: %w", err)
}
