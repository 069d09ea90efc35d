package fragment

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Feeds open what queries read and write on a worker.
type Feeds interface {
	// Source opens a physical source. ErrUnusable says that another attempt is of no use.
	Source(ctx context.Context, s catalog.PhysicalSource, columns []column.Column) (connector.Source, error)
	// Sink opens the sink of a query.
	Sink(ctx context.Context, q catalog.Query, s catalog.Sink, columns []column.Column) (connector.Sink, error)
}

// ErrUnusable says that a source or sink can not be opened, however often it is tried.
var ErrUnusable = errors.New("it can not be used")

// final reports whether an error stays, however often a fragment is started.
func final(err error) bool {
	var known *sql.Error
	return errors.Is(err, ErrUnusable) || errors.As(err, &known) && known.Kind != sql.NetworkError
}

// Run runs a fragment to its end, or until ctx or the link ends. Its last word is End.
func Run(ctx context.Context, s Spec, feeds Feeds, link Link) { run(ctx, s, feeds, link, nil) }

// leaving says that the process of a fragment ends. Why is known once it is closed.
type leaving struct {
	closed chan struct{}
	why    string
}

// run is Run on a worker that may leave. What tells of the worker itself has come to its end then, and its last rows go
// out; everything else is lost, and may be tried again.
func run(ctx context.Context, s Spec, feeds Feeds, link Link, leaves *leaving) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &runner{spec: s, feeds: feeds, link: link, cancel: cancel, went: make(chan struct{}),
		drains: make(chan struct{}), frames: make(chan []byte)}
	r.drain = sync.OnceFunc(func() { close(r.drains) })
	hearing := make(chan struct{})
	go func() { defer close(hearing); r.hear(ctx) }()
	leave := make(chan struct{})
	if leaves == nil {
		close(leave)
	} else {
		go func() { defer close(leave); r.leave(ctx, leaves) }()
	}
	err := r.run(ctx)
	e := Ended{Counts: r.counts}
	switch {
	case r.left.Load() && (err != nil || !r.tells.Load()):
		e.Failure = leaves.why
	case r.stopped.Load() || err == nil && r.drained.Load():
		e.Stopped = true
	case err != nil:
		e.Failure, e.Terminal = err.Error(), closed(r.went) || final(err)
	}
	saying, done := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	_ = link.Send(saying, worded(End, e)) // who is gone knows
	done()
	cancel()
	<-hearing
	<-leave
}

// lastWord is how long a fragment waits to say what it came to.
const lastWord = 5 * time.Second

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// runner is a fragment that runs.
type runner struct {
	spec    Spec
	feeds   Feeds
	link    Link
	cancel  context.CancelFunc
	stopped atomic.Bool
	// drained: the owner has said so; left: the process ends. tells: all that is read here is what the worker tells of
	// itself.
	drained, left, tells atomic.Bool
	drain                func()
	// went and drains are closed when the owner said so; frames are those for the tail.
	went, drains chan struct{}
	frames       chan []byte
	counts       exec.Counts
}

// hear does what the owner says, until ctx or the link ends.
func (r *runner) hear(ctx context.Context) {
	for {
		w, err := r.link.Receive(ctx)
		if err != nil {
			r.cancel()
			return
		}
		switch w.Kind {
		case Go:
			if !closed(r.went) {
				close(r.went)
			}
		case Drain:
			r.drained.Store(true)
			r.drain()
		case Stop:
			r.stopped.Store(true)
			r.cancel()
			return
		case Frame:
			select {
			case r.frames <- w.Body:
			case <-ctx.Done():
				return
			}
		}
	}
}

// leave ends the fragment when its process ends.
func (r *runner) leave(ctx context.Context, leaves *leaving) {
	select {
	case <-leaves.closed:
	case <-ctx.Done():
		return
	}
	r.left.Store(true)
	if r.tells.Load() && closed(r.went) {
		r.drain()
		return
	}
	r.cancel()
}

// run opens what the fragment needs, says that it is ready, and runs it when the others are.
func (r *runner) run(ctx context.Context) error {
	bound, err := r.spec.Bind()
	if err != nil {
		return err
	}
	job := exec.Job{Plan: bound.Plan, Now: time.Now, Drain: r.drains}
	var open []connector.Source
	defer func() {
		for _, s := range open {
			_ = s.Close()
		}
	}()
	r.tells.Store(!r.spec.IsTail() && bound.tells())
	for i, scan := range bound.Plan.Scans {
		of := make([]connector.Source, len(bound.Origins[i]))
		for k, o := range bound.Origins[i] {
			if !sql.Same(o.Host, r.spec.Host) {
				continue
			}
			if of[k], err = r.feeds.Source(ctx, o.Source, scan.Columns); err != nil {
				return err
			}
			open = append(open, of[k])
			if s, is := of[k].(connector.Partial); is {
				s.Elsewhere(r.spec.elsewhere(o.Source))
			}
		}
		job.Sources = append(job.Sources, of)
	}
	var sink connector.Sink
	if r.spec.IsTail() {
		if sink, err = r.feeds.Sink(ctx, r.spec.Query, bound.Sink, bound.Plan.Columns); err != nil {
			return err
		}
		defer func() {
			if sink != nil {
				_ = sink.Close()
			}
		}()
		job.Out = func(b *column.Batch) error { return sink.Write(b) }
		job.Elsewhere = r.next
	} else {
		job.Heads = flow.NewWriter(func(frame []byte) error {
			return r.link.Send(ctx, Word{Kind: Frame, Body: frame})
		})
	}
	job.Report = func(c exec.Counts) { _ = r.link.Send(ctx, worded(Report, c)) }
	if err := r.link.Send(ctx, Word{Kind: Ready}); err != nil {
		return err
	}
	select {
	case <-r.went:
	case <-ctx.Done():
		return ctx.Err()
	}
	open = nil // whoever runs them closes them
	running, end := context.WithCancel(ctx)
	defer end()
	if f, is := sink.(connector.Failing); is {
		go func() {
			select {
			case <-f.Failed():
				end()
			case <-running.Done():
			}
		}()
	}
	r.counts, err = exec.Run(running, job)
	if sink != nil {
		closing := sink.Close()
		// What ended the query, where it was the sink, is what the sink says.
		if sink = nil; err == nil || closing != nil && running.Err() != nil && ctx.Err() == nil {
			err = closing
		}
	}
	return err
}

// next waits for a frame.
func (r *runner) next(ctx context.Context) ([]byte, error) {
	select {
	case f := <-r.frames:
		return f, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tells reports whether the worker reads nothing but what it tells of itself.
func (b Bound) tells() bool {
	for _, origins := range b.Origins {
		for _, o := range origins {
			if sql.Same(o.Host, b.Host) && !o.Source.Everywhere() {
				return false
			}
		}
	}
	return true
}

// elsewhere reports of which workers the query reads a source besides: where who made the source chose the worker it is
// to be that one alone.
func (s Spec) elsewhere(p catalog.PhysicalSource) func(host string) bool {
	if !p.Everywhere() {
		return func(string) bool { return true }
	}
	return func(host string) bool {
		return slices.ContainsFunc(s.Hosts, func(h string) bool { return sql.Same(h, host) })
	}
}
