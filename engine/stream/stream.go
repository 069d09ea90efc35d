// Package stream runs continuous queries: it reads their sources, each in a goroutine of its own, pushes the rows
// through the plan, and writes the results to the sink. A source waits while the query is busy; with ON OVERFLOW DROP
// it reads on, and the rows are counted as dropped.
package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/statement"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
	"github.com/loadstone-db/loadstone/engine/stream/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
)

// Job is a query with all it needs.
type Job struct {
	Plan *plan.Plan
	// Sources are the physical sources of each scan of the plan. Run closes them.
	Sources [][]feed.Source
	// Out is given the results; a batch is valid until it returns.
	Out        func(*column.Batch) error
	StateBytes int
	Now        func() time.Time
	// Drain, once it is closed, ends the sources: what came from them goes through, and the query ends. May be nil.
	Drain <-chan struct{}
	// Report is told the counts about once a second, and need not be set. It is called by who calls Out.
	Report func(Counts)
}

// Counts are what became of rows.
type Counts struct {
	flow.Counts
	// Malformed did not fit the schema of their source, Dropped found the query busy.
	Malformed, Dropped int64
}

// batches is how many batches a source may be ahead of the query.
const batches = 3

// quietAfter is how long a source has no row until windows do not wait for it.
const quietAfter = 5 * time.Second

// arrival is a batch of a physical source, or its end.
type arrival struct {
	scan, origin int
	batch        *column.Batch
	err          error
}

// reader is a physical source with the batches that go around between it and the query.
type reader struct {
	scan, origin int
	source       feed.Source
	free         chan *column.Batch
	last         time.Time
	paused       bool
}

// Run reads until all sources have ended or ctx is done, and returns what became of the rows. What ended the query
// otherwise is a *statement.Error.
func Run(ctx context.Context, j Job) (Counts, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var origins []int
	var readers []*reader
	for scan, sources := range j.Sources {
		origins = append(origins, len(sources))
		for origin, s := range sources {
			r := &reader{scan: scan, origin: origin, source: s, free: make(chan *column.Batch, batches), last: j.Now()}
			for range batches {
				r.free <- &column.Batch{} // room: the channel was made for them
			}
			readers = append(readers, r)
		}
	}
	q := flow.New(j.Plan, flow.Options{Origins: origins, StateBytes: j.StateBytes, Now: j.Now, Out: j.Out})
	// There is room for every batch that goes around, and for each source's end: a reader that may drop rows waits for
	// nobody.
	arrivals := make(chan arrival, len(readers)*(batches+1))
	var dropped atomic.Int64
	var reading sync.WaitGroup
	for _, r := range readers {
		reading.Go(func() { r.read(ctx, arrivals, j.Plan.Drop, &dropped) })
	}
	err := drive(ctx, j, q, readers, arrivals, &dropped)
	cancel()
	for _, r := range readers {
		_ = r.source.Close()
	}
	reading.Wait()
	c := Counts{Counts: q.Counts(), Dropped: dropped.Load()}
	for _, r := range readers {
		c.Malformed += r.source.Malformed()
	}
	return c, err
}

// reportEvery is how often counts are told.
const reportEvery = time.Second

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
		if lost && err == nil {
			dropped.Add(int64(b.N))
			continue
		}
		select {
		case to <- arrival{r.scan, r.origin, b, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// drive pushes what arrives.
func drive(ctx context.Context, j Job, q *flow.Query, readers []*reader, arrivals <-chan arrival,
	dropped *atomic.Int64) error {
	open := len(readers)
	drain, draining := j.Drain, false
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	of := map[[2]int]*reader{}
	for _, r := range readers {
		of[[2]int{r.scan, r.origin}] = r
	}
	tick := time.NewTicker(quietAfter / 5)
	defer tick.Stop()
	for open > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-drain:
			drain, draining = nil, true
			for _, r := range readers {
				_ = r.source.Close()
			}
		case <-report.C:
			if j.Report != nil {
				j.Report(Counts{Counts: q.Counts(), Dropped: dropped.Load()})
			}
		case <-tick.C:
			if len(arrivals) > 0 {
				continue // whose they are is not known: nobody is called quiet while rows wait
			}
			for _, r := range readers {
				if !r.paused && j.Now().Sub(r.last) > quietAfter {
					r.paused = true
					if err := q.Pause(r.scan, r.origin); err != nil {
						return err
					}
				}
			}
		case a := <-arrivals:
			r := of[[2]int{a.scan, a.origin}]
			switch {
			case errors.Is(a.err, io.EOF), a.err != nil && draining:
				open--
				r.paused = true
				if err := q.End(a.scan, a.origin); err != nil {
					return err
				}
				continue
			case a.err != nil:
				if known := (*statement.Error)(nil); errors.As(a.err, &known) {
					return known
				}
				e := statement.Errorf(statement.NetworkError, "", -1, "start the source again, then the query",
					"a source of %s was lost: %v", j.Plan.Scans[a.scan].Source, a.err)
				e.Cause = a.err
				return e
			}
			if a.batch.N > 0 {
				r.last, r.paused = j.Now(), false
				if err := q.Push(a.scan, a.origin, a.batch); err != nil {
					return pushed(err)
				}
				// While the query was busy its sources may have had to wait: that is not their silence.
				busy := j.Now().Sub(r.last)
				for _, r := range readers {
					r.last = r.last.Add(busy)
				}
			}
			r.free <- a.batch // room: it was taken from there
		}
	}
	return nil
}

// pushed says what ended a query.
func pushed(err error) error {
	var known *statement.Error
	if errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("writing to the sink: %w", err)
}
