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
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Connectors open what queries read and write on a worker.
type Connectors interface {
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
func Run(ctx context.Context, b Bound, feeds Connectors, limits memory.Limits, link Link) {
	run(ctx, b, feeds, limits, link, nil)
}

// shutdown says that the process of a fragment ends. Why is known once it is closed.
type shutdown struct {
	closed chan struct{}
	why    string
}

// run is Run on a worker that may leave. What tells of the worker itself has come to its end then, and its last rows go
// out; everything else is lost, and may be tried again.
func run(ctx context.Context, b Bound, feeds Connectors, limits memory.Limits, link Link, leaves *shutdown) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &runner{Bound: b, connectors: feeds, limits: limits, link: link, cancel: cancel, started: make(chan struct{}),
		drains: make(chan struct{}), frames: make(chan []byte)}
	r.drain = sync.OnceFunc(func() { close(r.drains) })
	hearing := make(chan struct{})
	go func() { defer close(hearing); r.receive(ctx) }()
	leave := make(chan struct{})
	if leaves == nil {
		close(leave)
	} else {
		go func() { defer close(leave); r.leave(ctx, leaves) }()
	}
	err := r.run(ctx)
	e := EndReport{Counts: r.counts}
	switch {
	case r.left.Load() && (err != nil || !r.selfReports.Load()):
		e.Failure = leaves.why
	case r.stopped.Load() || err == nil && r.drained.Load():
		e.Stopped = true
	case err != nil:
		e.Failure, e.Terminal = err.Error(), closed(r.started) || final(err)
	}
	saying, done := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	_ = link.Send(saying, newMessage(End, e)) // who is gone knows
	done()
	cancel()
	<-hearing
	<-leave
}

// endTimeout is how long a fragment waits to say what it came to.
const endTimeout = 5 * time.Second

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
	Bound
	connectors Connectors
	limits     memory.Limits
	link       Link
	cancel     context.CancelFunc
	stopped    atomic.Bool
	// drained: the owner has said so; left: the process ends. tells: all that is read here is what the worker tells of
	// itself.
	drained, left, selfReports atomic.Bool
	drain                      func()
	// started and drains are closed when the owner said so; frames are those for the tail.
	started, drains chan struct{}
	frames          chan []byte
	counts          exec.Counts
}

// receive does what the owner says, until ctx or the link ends.
func (r *runner) receive(ctx context.Context) {
	for {
		w, err := r.link.Receive(ctx)
		if err != nil {
			r.cancel()
			return
		}
		switch w.Kind {
		case Go:
			if !closed(r.started) {
				close(r.started)
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
func (r *runner) leave(ctx context.Context, leaves *shutdown) {
	select {
	case <-leaves.closed:
	case <-ctx.Done():
		return
	}
	r.left.Store(true)
	if r.selfReports.Load() && closed(r.started) {
		r.drain()
		return
	}
	r.cancel()
}

// run opens what the fragment needs, says that it is ready, and runs it when the others are.
func (r *runner) run(ctx context.Context) error {
	var err error
	job := exec.Job{Plan: r.Plan, Now: time.Now, Drain: r.drains, Owner: r.Query.Author(), Limits: r.limits,
		OnEvict: r.cancel}
	var open []connector.Source
	defer func() {
		for _, s := range open {
			_ = s.Close()
		}
	}()
	r.selfReports.Store(!r.IsTail() && r.onlySelfReports())
	for i, scan := range r.Plan.Scans {
		of := make([]connector.Source, len(r.Origins[i]))
		for k, o := range r.Origins[i] {
			if !sql.SameName(o.Host, r.Host) {
				continue
			}
			if of[k], err = r.connectors.Source(ctx, o.Source, scan.Columns); err != nil {
				return err
			}
			open = append(open, of[k])
			if s, is := of[k].(connector.Partial); is {
				s.SetRemote(r.remoteHosts(o.Source))
			}
		}
		job.Sources = append(job.Sources, of)
	}
	var sink connector.Sink
	if r.IsTail() {
		if sink, err = r.connectors.Sink(ctx, r.Query, r.Sink, r.Plan.Columns); err != nil {
			return err
		}
		defer func() {
			if sink != nil {
				_ = sink.Close()
			}
		}()
		job.Out = func(b *column.Batch) error { return sink.Write(b) }
		job.Sink, _ = sink.(connector.Holding)
		job.Remote = r.next
	} else {
		job.Heads = flow.NewWriter(func(frame []byte) error {
			return r.link.Send(ctx, Message{Kind: Frame, Body: frame})
		})
	}
	job.Report = func(c exec.Counts) { _ = r.link.Send(ctx, newMessage(Report, c)) }
	if err := r.link.Send(ctx, Message{Kind: Ready}); err != nil {
		return err
	}
	select {
	case <-r.started:
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

// onlySelfReports reports whether the worker reads nothing but what it tells of itself.
func (b Bound) onlySelfReports() bool {
	for _, origins := range b.Origins {
		for _, o := range origins {
			if sql.SameName(o.Host, b.Host) && !o.Source.OnEveryWorker() {
				return false
			}
		}
	}
	return true
}

// remoteHosts reports of which workers the query reads a source besides: where who made the source chose the worker it
// is to be that one alone.
func (s Spec) remoteHosts(p catalog.PhysicalSource) func(host string) bool {
	if !p.OnEveryWorker() {
		return func(string) bool { return true }
	}
	return func(host string) bool {
		return slices.ContainsFunc(s.Hosts, func(h string) bool { return sql.SameName(h, host) })
	}
}
