package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

const (
	// readyTimeout is how long a fragment may take until it has opened what it needs.
	readyTimeout = time.Minute
	// stopTimeout is how long one may take to end that was told to; then its link is ended, and whether it has gone is not
	// known.
	stopTimeout = 3 * time.Second
)

// deployment is an attempt to run a query: all its fragments run, or none. When one of them is lost or fails the others
// are ended, too: what they hold is of no use without it. Another attempt begins from the sources.
type deployment struct {
	key    fragment.Key
	o      Options
	notify func()
	fail   context.CancelFunc
	done   chan struct{}
	began  time.Time
	// created is when the query was: another one has taken its place where that is another time.
	created time.Time
	tail    string
	drain   func()
	drains  chan struct{}

	mu    sync.Mutex
	parts map[string]*deployedFragment
	// started: all fragments were ready, and told to run.
	started bool
}

// deployedFragment is what is known of a fragment.
type deployedFragment struct {
	host  string
	state catalog.FragmentState
	// failure is its error; terminal says that another attempt is of no use.
	failure  string
	terminal bool
	// lost: its worker is not there; confirming: it is asked whether the fragment has gone.
	lost, confirming bool
	link             fragment.Link
	// localDone is closed when a fragment of this process has ended; nil of one elsewhere.
	localDone chan struct{}
	counts    exec.Counts
	rates     rates
	// endedAt is when it has said what it came to.
	endedAt time.Time
	// missingSince is when its worker was found not to be there, zero while it is.
	missingSince time.Time
}

// deploy begins to run a query; told is called whenever something of it has changed.
func deploy(o Options, q catalog.Query, contents catalog.Contents, told func()) *deployment {
	d := adoptedDeployment(o, q, told)
	d.key.Attempt = 0
	for _, f := range q.Fragments {
		d.key.Attempt = max(d.key.Attempt, f.Attempts)
		d.parts[f.Host] = &deployedFragment{host: f.Host, state: catalog.FragmentStarted}
	}
	var running context.Context
	running, d.fail = context.WithCancel(context.Background())
	d.done = make(chan struct{})
	go func() {
		defer close(d.done)
		defer d.fail()
		d.run(running, q, contents)
		told()
	}()
	return d
}

// adoptedDeployment is a deployment of which nothing runs that is known of here, and whose fragments elsewhere have to
// be ended.
func adoptedDeployment(o Options, q catalog.Query, told func()) *deployment {
	d := &deployment{key: fragment.Key{QueryID: q.ID, Epoch: q.Epoch, Attempt: math.MaxInt64}, o: o, notify: told,
		fail: func() {}, done: make(chan struct{}), began: o.Now().UTC(), created: q.CreatedAt, drains: make(chan struct{}),
		parts: map[string]*deployedFragment{}}
	close(d.done)
	d.drain = sync.OnceFunc(func() { close(d.drains) })
	for _, f := range q.Fragments {
		d.parts[f.Host] = &deployedFragment{host: f.Host, state: f.State, failure: f.Failure}
		if sql.SameName(f.Host, catalog.Server) && !f.State.Final() {
			d.parts[f.Host].state = catalog.FragmentStopped // with the process that it ran in
		}
	}
	return d
}

// run has all fragments made ready, and then run, until all have ended.
func (d *deployment) run(ctx context.Context, q catalog.Query, contents catalog.Contents) {
	var opening, following sync.WaitGroup
	bound, err := fragment.Plan(contents, q, d.key.Attempt)
	d.mu.Lock()
	d.tail = bound.Tail
	d.mu.Unlock()
	for _, p := range d.parts {
		if err != nil {
			_ = d.ended(p, fragment.EndReport{Failure: err.Error(), Terminal: true})
			d.fail()
			continue
		}
		opening.Go(func() {
			if err := d.open(ctx, p, bound.On(p.host)); err != nil {
				d.fail()
			}
		})
	}
	opening.Wait()
	// None runs unless all are ready; those that opened are ended then.
	d.mu.Lock()
	// One after the other, and in the same order each time: a life of the simulation can be lived again.
	d.started = ctx.Err() == nil
	var order []*deployedFragment
	for _, host := range slices.Sorted(maps.Keys(d.parts)) {
		p := d.parts[host]
		if ctx.Err() == nil {
			p.state = catalog.FragmentRunning
		}
		if order = append(order, p); sql.SameName(p.host, d.tail) {
			order[0], order[len(order)-1] = order[len(order)-1], order[0]
		}
	}
	d.mu.Unlock()
	for _, p := range order {
		if p.link != nil && ctx.Err() == nil && p.link.Send(ctx, fragment.Message{Kind: fragment.Go}) != nil {
			d.markLost(p.host, "was lost")
		}
	}
	d.notify()
	for _, p := range d.parts {
		following.Go(func() { d.follow(ctx, p) })
	}
	over := make(chan struct{})
	go func() { following.Wait(); close(over) }()
	select {
	case <-over:
		return
	case <-d.drains:
	}
	for _, p := range order {
		if p.link != nil {
			_ = p.link.Send(ctx, fragment.Message{Kind: fragment.Drain}) // one that has ended has nothing to drain
		}
	}
	<-over
}

// open gives a fragment to its worker, and waits until it is ready.
func (d *deployment) open(ctx context.Context, p *deployedFragment, b fragment.Bound) error {
	opening, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var link fragment.Link
	var err error
	if sql.SameName(p.host, catalog.Server) {
		var worker fragment.Link
		link, worker = fragment.Pipe()
		p.localDone = make(chan struct{})
		go func() { //nolint:gosec // it ends with its owner
			defer close(p.localDone)
			fragment.Run(context.Background(), b, d.o.Connectors, d.o.Memory, worker)
		}()
	} else if link, err = d.o.Runner.Start(opening, p.host, b.Spec); err != nil {
		d.unready(ctx, p, "cannot be given its fragment: "+err.Error())
		return err
	}
	d.mu.Lock()
	p.link = link
	d.mu.Unlock()
	w, err := link.Receive(opening)
	switch {
	case opening.Err() != nil:
		d.unready(ctx, p, "was not ready within "+readyTimeout.String())
		return opening.Err()
	case err != nil:
		d.unready(ctx, p, "was lost")
		return err
	case w.Kind == fragment.Ready:
		return nil
	case w.Kind == fragment.End:
		e, err := fragment.ParseEnd(w)
		return errors.Join(err, d.ended(p, e))
	}
	d.unready(ctx, p, fmt.Sprintf("said %d before it was ready", w.Kind))
	return errNotReady
}

// unready notes that a fragment could not be made ready, unless it is not wanted any more.
func (d *deployment) unready(ctx context.Context, p *deployedFragment, how string) {
	if ctx.Err() == nil {
		d.markLost(p.host, how)
	}
}

var errNotReady = errors.New("a fragment is not ready")

// ended notes what a fragment came to. The error says that the others have to end.
func (d *deployment) ended(p *deployedFragment, e fragment.EndReport) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.counts, p.endedAt = e.Counts, time.Now()
	p.rates = rates{lastOut: p.rates.lastOut}
	switch {
	case e.Failure != "":
		p.state, p.failure, p.terminal = catalog.FragmentFailed, e.Failure, e.Terminal
		return errNotReady
	case e.Stopped:
		p.state = catalog.FragmentStopped
	default:
		p.state = catalog.FragmentTerminated
	}
	return nil
}

// markLost notes that a worker is not there, and has the others end. Whether the fragment runs on it is not known.
func (d *deployment) markLost(host, how string) {
	d.mu.Lock()
	if p := d.parts[host]; p != nil && !p.lost && !p.state.Final() {
		p.lost, p.state, p.failure = true, catalog.FragmentStarted, "the worker "+host+" "+how
	}
	d.mu.Unlock()
	d.fail()
}

// markExited notes that a fragment of this process is known to be gone: its goroutine has ended. One that was given up
// since it was not ready in time is no more, whatever else is not known of it.
func (d *deployment) markExited(p *deployedFragment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case p.state.Final():
	case p.failure != "":
		p.state = catalog.FragmentFailed
	default:
		p.state = catalog.FragmentStopped
	}
}

// follow takes what a fragment says, hands on what is for the tail, and ends it when the deployment does.
func (d *deployment) follow(ctx context.Context, p *deployedFragment) {
	if p.link == nil {
		return
	}
	defer func() {
		_ = p.link.Close()
		if p.localDone != nil {
			<-p.localDone
			d.markExited(p)
		}
	}()
	for !d.state(p).Final() {
		w, err := p.link.Receive(ctx)
		switch {
		case ctx.Err() != nil:
			d.end(p)
			return
		case err != nil:
			d.markLost(p.host, "was lost")
			return
		}
		switch w.Kind {
		case fragment.Frame:
			d.mu.Lock()
			tail := d.parts[d.tail]
			d.mu.Unlock()
			if tail == nil || tail == p || tail.link == nil {
				continue
			}
			if err := tail.link.Send(ctx, w); err != nil && ctx.Err() == nil {
				d.markLost(tail.host, "was lost")
			}
		case fragment.Report:
			if c, err := fragment.ParseCounts(w); err == nil {
				d.mu.Lock()
				p.counts, p.rates = c, p.rates.next(c, d.o.Now().UTC())
				d.mu.Unlock()
			}
		case fragment.End:
			e, err := fragment.ParseEnd(w)
			if err != nil {
				d.markLost(p.host, "said what cannot be read")
				return
			}
			if d.ended(p, e) != nil {
				d.fail()
			}
			d.notify()
		}
	}
}

// hosts are the workers of the attempt.
func (d *deployment) hosts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.parts))
}

// fragments are what is known of all of them.
func (d *deployment) fragments() (list []catalog.Fragment) {
	for _, host := range d.hosts() {
		list = append(list, d.observe(catalog.Fragment{Host: host}))
	}
	return list
}

func (d *deployment) state(p *deployedFragment) catalog.FragmentState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return p.state
}

// end has a fragment end, and waits until it says so.
func (d *deployment) end(p *deployedFragment) {
	d.mu.Lock()
	lost := p.lost
	if !p.state.Final() {
		p.state = catalog.FragmentStarted // until it is known to be gone
	}
	d.mu.Unlock()
	if lost {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	go func() { _ = p.link.Send(ctx, fragment.Message{Kind: fragment.Stop}) }()
	for {
		w, err := p.link.Receive(ctx)
		if err != nil {
			break
		}
		if e, err := fragment.ParseEnd(w); w.Kind == fragment.End && err == nil {
			e.Stopped = true
			_ = d.ended(p, e)
			return
		}
	}
	if p.localDone != nil {
		_ = p.link.Close()
		<-p.localDone
		_ = d.ended(p, fragment.EndReport{Stopped: true, Counts: p.counts})
	}
}

// confirm has a fragment of which it is not known whether it runs ended on its worker.
func (d *deployment) confirm(host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.parts[host]
	if p == nil {
		// It has come to the query since this attempt began, and its worker may never have heard of it.
		p = &deployedFragment{host: host, state: catalog.FragmentStarted}
		d.parts[host] = p
	}
	if p.confirming || p.state.Final() {
		return
	}
	p.confirming = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		err := d.o.Runner.Stop(ctx, host, d.key)
		d.mu.Lock()
		p.confirming = false
		if err == nil {
			p.state = catalog.FragmentStopped
		}
		d.mu.Unlock()
		if err == nil {
			d.notify()
		}
	}()
}

// observe returns a fragment as it is known to be.
func (d *deployment) observe(f catalog.Fragment) catalog.Fragment {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.parts[f.Host]; p != nil {
		f.State, f.Failure, f.Terminal = p.state, p.failure, p.terminal
	}
	return f
}
