package simtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
)

// feeds are what queries read and write in one process.
type feeds struct{ at home }

var _ coordinator.Connectors = feeds{}

// ranIn is a query in an epoch on a worker.
type ranIn struct {
	query, epoch int64
	worker       string
}

// instance is a fragment of which something is open: its sink, or, on a node, a source. From then until all is closed
// it acts. Of one in the server that has sources alone it is not known whose it is.
type instance struct {
	at           home
	query, epoch int64
	ctx          context.Context //nolint:containedctx // says whether the fragment was ended from outside
	sources      []*rowSource
	open         int
	written      int64
	// ended is when all was closed; clean says that nobody had ended it from outside then.
	ended time.Time
	clean bool
	// replaced: another query has taken the place of its own since it began.
	replaced bool
}

// closes takes note that one of what it has open is closed; the simulation is locked.
func (i *instance) closes() {
	if i.open--; i.open == 0 {
		i.ended, i.clean = time.Now(), i.ctx.Err() == nil && !i.at.gone()
	}
}

// tells reports whether it reads what its worker tells of itself, and writes nowhere: it ends with its call, and nobody
// waits until that is known.
func (i *instance) tells() bool {
	return i.at.worker() != coordinator.Server && len(i.sources) > 0 && !slices.ContainsFunc(i.sources,
		func(r *rowSource) bool { return !r.everywhere })
}

// lives reports whether it can act; the simulation is locked.
func (i *instance) lives() bool { return i.open > 0 && !i.at.gone() }

// rowSource is a physical source that is open.
type rowSource struct {
	at       home
	of       *instance // nil until that is known
	physical int64
	// everywhere: each node reads it, of itself.
	everywhere bool
	columns    []column.Column
	rows       chan int64
	closed     chan struct{}
	once       sync.Once
	end        error
	read       int64 // rows that the query has taken
	ended      bool
}

var errGone = errors.New("connection reset by peer")

// Source implements coordinator.Connectors.
func (f feeds) Source(
	ctx context.Context,
	p catalog.PhysicalSource,
	columns []column.Column,
) (connector.Source, error) {
	s := f.at.world()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.at.gone() || s.down[p.ID] {
		return nil, errRefused
	}
	r := &rowSource{at: f.at, physical: p.ID, everywhere: p.OnEveryWorker(), columns: columns,
		rows: make(chan int64, 1000), closed: make(chan struct{})}
	if k, known := ctx.Value(fragmentKey{}).(fragment.Key); known {
		r.of = s.instance(ctx, f.at, k.QueryID, k.Epoch)
		r.of.sources = append(r.of.sources, r)
		r.of.open++
		s.reads(r.of)
	} else {
		s.opening[ctx] = append(s.opening[ctx], r)
	}
	return r, nil
}

// instance is that of a context, whose life may begin now; the simulation is locked.
func (s *streaming) instance(ctx context.Context, at home, query, epoch int64) *instance {
	for _, i := range s.instances {
		if i.ctx == ctx {
			return i
		}
	}
	i := &instance{at: at, query: query, epoch: epoch, ctx: ctx}
	s.begins(i)
	s.instances = append(s.instances, i)
	return i
}

// Read implements connector.Source.
func (r *rowSource) Read(b *column.Batch) error {
	select {
	case <-r.closed:
		return io.EOF
	default:
	}
	select {
	case n, more := <-r.rows:
		if !more {
			return r.end
		}
		b.Reset(r.columns)
		for i, c := range r.columns {
			switch {
			case c.Name == "n" || c.Name == "seq":
				b.Cols[i].AppendInt(n)
			case c.Type.Kind == column.Timestamp:
				b.Cols[i].AppendInt(time.Now().UnixMicro())
			default:
				b.Cols[i].AppendNull()
			}
		}
		b.N = 1
		s := r.at.world()
		s.mu.Lock()
		r.read++
		s.mu.Unlock()
		return nil
	case <-r.closed:
		return io.EOF
	}
}

// Malformed implements connector.Source.
func (r *rowSource) Malformed() int64 { return 0 }

// Close implements connector.Source.
func (r *rowSource) Close() error {
	s := r.at.world()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.once.Do(func() {
		close(r.closed)
		if r.of != nil {
			r.of.closes()
		}
	})
	return nil
}

// Sink implements coordinator.Connectors. It opens when the loop says so, or does not.
func (f feeds) Sink(ctx context.Context, q catalog.Query, _ catalog.Sink, _ []column.Column) (connector.Sink, error) {
	l, s := f.at, f.at.world()
	type answer struct {
		sink connector.Sink
		err  error
	}
	reply := make(chan answer, 1)
	s.w.hand(fmt.Sprintf("sink %s %d@%d", l.label(), q.ID, q.Epoch), func() {
		takes := s.w.between(time.Millisecond, 300*time.Millisecond)
		if !s.calm.Load() && s.w.oneIn(20) {
			takes = s.w.between(time.Second, 3*time.Minute)
		}
		s.w.after(takes, func() {
			if ctx.Err() != nil {
				return
			}
			sink, err := s.open(ctx, l, q)
			s.w.note("%s opens the sink of %d@%d: %s", l.label(), q.ID, q.Epoch, short(err))
			reply <- answer{sink, err}
		})
	})
	select {
	case a := <-reply:
		return a.sink, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open begins the life of an instance.
func (s *streaming) open(ctx context.Context, l home, q catalog.Query) (connector.Sink, error) {
	switch cursed := q.ID % 10; {
	case l.gone():
		return nil, errRefused
	case s.w.oneIn(s.broken), s.broken != never && cursed == 7:
		return nil, fmt.Errorf("%w: there is no such folder", coordinator.ErrUnusable)
	case s.w.oneIn(s.refuses), s.broken != never && cursed == 4, s.without == lacksWatchdog && cursed%2 == 0:
		return nil, errRefused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.instance(ctx, l, q.ID, q.Epoch)
	i.open++
	// of the server's own process; those that were closed since count as well
	i.sources = append(i.sources, s.opening[ctx]...)
	delete(s.opening, ctx)
	s.reads(i)
	return sink{i}, nil
}

// sink is that of an instance.
type sink struct{ i *instance }

// Write implements connector.Sink.
func (k sink) Write(b *column.Batch) error {
	i, s := k.i, k.i.at.world()
	if i.at.gone() {
		return errGone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.open == 0 {
		s.broke("closed", "the query %d writes to a sink that it has closed", i.query)
	}
	if i.written += int64(b.N); s.without == lacksRows && i.written%5 == 0 {
		i.written--
	}
	return nil
}

// Close implements connector.Sink.
func (k sink) Close() error {
	i, s := k.i, k.i.at.world()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.without != lacksConfirmation {
		i.closes()
	} else {
		s.w.hand(fmt.Sprintf("close %s %d@%d", i.at.label(), i.query, i.epoch), func() {
			s.w.after(5*time.Second, i.closes)
		})
	}
	read, failed := int64(0), false
	for _, r := range i.sources {
		read += r.read
		failed = failed || r.end != nil && !errors.Is(r.end, io.EOF)
	}
	if i.at.worker() != coordinator.Server || i.ctx.Err() != nil || i.at.gone() || failed {
		return nil
	}
	if more, known := s.heads(i); known && read+more != i.written {
		s.broke("drained", "the query %d has ended by itself, %d rows were read here, %d on nodes, and %d reached the sink",
			i.query, read, more, i.written)
	}
	return nil
}

// heads are the rows that the nodes of a query have read, which have ended by themselves before its tail; known says
// that all of them did. The simulation is locked.
func (s *streaming) heads(tail *instance) (read int64, known bool) {
	q, there := s.query(tail.query)
	for _, f := range q.Fragments {
		if f.Host == coordinator.Server {
			continue
		}
		var last *instance
		for _, i := range s.instances {
			if i.query == tail.query && i.epoch == tail.epoch && i.at.worker() == f.Host {
				last = i
			}
		}
		if last == nil || last.open > 0 || !last.clean {
			return 0, false
		}
		for _, r := range last.sources {
			read += r.read
		}
		s.over++
	}
	return read, there
}

// rows has sources tell rows, end, and break.
func (s *streaming) rows() {
	if s.ending {
		return
	}
	s.mu.Lock()
	s.instances = slices.DeleteFunc(s.instances, func(i *instance) bool {
		return !i.lives() && time.Since(i.ended) > 2*time.Minute
	})
	var open []*rowSource
	for _, i := range s.instances {
		if i.lives() {
			open = append(open, i.sources...)
		}
	}
	for _, r := range open {
		if r.ended {
			continue
		}
		for range s.w.chance.IntN(4) {
			select {
			case r.rows <- 1:
			default:
			}
		}
		if !s.calm.Load() && s.w.oneIn(200) {
			if r.end = io.EOF; s.w.oneIn(3) {
				r.end = errGone
			}
			r.ended = true
			close(r.rows)
			s.w.note("the physical source %d ends for a reader: %v", r.physical, r.end)
		}
	}
	s.mu.Unlock()
	s.w.after(s.w.between(200*time.Millisecond, 3*time.Second), s.rows)
}
