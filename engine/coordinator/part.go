package coordinator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/catalog"
	"github.com/loadstone-db/loadstone/engine/statement"
	"github.com/loadstone-db/loadstone/engine/stream"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
)

// part is a fragment that runs here, for one epoch of its query.
type part struct {
	epoch  int64
	cancel context.CancelFunc
	drain  func()
	drains chan struct{}
	done   chan struct{}
	began  time.Time

	mu    sync.Mutex
	state catalog.FragmentState
	err   error
	// terminal says that another attempt is of no use.
	terminal bool

	counts atomic.Pointer[stream.Counts]
	rates  atomic.Pointer[rates]
}

// begin runs a fragment; told is called whenever its state has changed.
func begin(feeds Feeds, q catalog.Query, contents catalog.Contents, told func()) *part {
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{epoch: q.Epoch, cancel: cancel, drains: make(chan struct{}), done: make(chan struct{}), began: time.Now(),
		state: catalog.FragmentStarted}
	p.drain = sync.OnceFunc(func() { close(p.drains) })
	p.counts.Store(&stream.Counts{})
	p.rates.Store(&rates{})
	go func() {
		defer close(p.done)
		defer cancel()
		err := p.run(ctx, feeds, q, contents, told)
		state := catalog.FragmentTerminated
		switch drained := isClosed(p.drains); {
		case err == nil && drained, err != nil && ctx.Err() != nil:
			state, err = catalog.FragmentStopped, nil
		case err != nil:
			state = catalog.FragmentFailed
		}
		p.mu.Lock()
		// What ends a fragment that ran is the end of its query: its state is gone.
		p.terminal = err != nil && (p.state == catalog.FragmentRunning || final(err))
		p.state, p.err = state, err
		p.mu.Unlock()
		told()
	}()
	return p
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// final reports whether an error stays, however often a fragment is started.
func final(err error) bool {
	var known *statement.Error
	return errors.Is(err, ErrUnusable) || errors.As(err, &known) && known.Kind != statement.NetworkError
}

// run opens what the query needs, and runs it to its end.
func (p *part) run(ctx context.Context, feeds Feeds, q catalog.Query, contents catalog.Contents, told func()) error {
	all := catalog.Of(contents)
	parsed, err := statement.Parse(q.Statement)
	if err != nil {
		return err
	}
	create, is := parsed[0].Statement.(*statement.CreateQuery)
	if !is {
		return statement.Errorf(statement.BinderError, q.Statement, 0, "", "this is no query")
	}
	bound, err := all.Bind(q.Statement, create)
	if err != nil {
		return err
	}
	into, _ := all.Sink(q.Sink)
	var open []feed.Source
	closeAll := func() {
		for _, s := range open {
			_ = s.Close()
		}
	}
	job := stream.Job{Plan: bound, Now: time.Now, Drain: p.drains}
	for _, scan := range bound.Scans {
		var of []feed.Source
		for _, physical := range all.Physical(scan.Source) {
			if !slices.Contains(q.Sources, physical.ID) {
				continue // it came after the query, which does not hold it
			}
			source, err := feeds.Source(ctx, physical, scan.Columns)
			if err != nil {
				closeAll()
				return err
			}
			of, open = append(of, source), append(open, source)
		}
		job.Sources = append(job.Sources, of)
	}
	sink, err := feeds.Sink(ctx, q, into, bound.Columns)
	if err != nil {
		closeAll()
		return err
	}
	job.Out = func(b *column.Batch) error { return sink.Write(b) }
	var before rates
	job.Report = func(counts stream.Counts) {
		before = before.next(counts, time.Now())
		r := before
		p.rates.Store(&r)
		p.counts.Store(&counts)
	}
	p.mu.Lock()
	p.state = catalog.FragmentRunning
	p.mu.Unlock()
	told()
	counts, err := stream.Run(ctx, job)
	p.counts.Store(&counts)
	if closing := sink.Close(); err == nil {
		err = closing
	}
	return err
}

// observe returns a fragment as it is known to be here.
func (p *part) observe(f catalog.Fragment) catalog.Fragment {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.State, f.Failure, f.Terminal = p.state, "", p.terminal
	if p.err != nil {
		f.Failure = p.err.Error()
	}
	return f
}

func (p *part) live() Live {
	counts, r := *p.counts.Load(), *p.rates.Load()
	l := Live{Counts: counts, InPerSecond: r.in, OutPerSecond: r.out, LastOut: r.lastOut, Since: p.began}
	if counts.Latest > 0 {
		l.LatestRow = time.UnixMicro(counts.Latest).UTC()
	}
	if isClosed(p.done) {
		l.InPerSecond, l.OutPerSecond = 0, 0
	}
	return l
}

// rates are what a fragment did between its last two reports.
type rates struct {
	at      time.Time
	read    stream.Counts
	in, out float64 // rows a second
	// lastOut is when rows were last seen to have gone to the sink.
	lastOut time.Time
}

func (r rates) next(c stream.Counts, now time.Time) rates {
	n := rates{at: now, read: c, lastOut: r.lastOut}
	seconds := 1.0 // the first report comes a second after the start
	if !r.at.IsZero() {
		seconds = max(now.Sub(r.at).Seconds(), 0.1)
	}
	n.in, n.out = float64(c.In-r.read.In)/seconds, float64(c.Out-r.read.Out)/seconds
	if c.Out > r.read.Out {
		n.lastOut = now
	}
	return n
}
