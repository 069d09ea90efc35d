package simtest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
)

// workerLife is one life of a node's process: the product's host of fragments. What it reads and writes, and the ways
// to it, are played.
type workerLife struct {
	of   *streaming
	name string
	host *fragment.Host
	dead atomic.Bool
	ctx  context.Context //nolint:containedctx // of the process
	end  context.CancelFunc
	// bears: it has a run worker.
	bears bool
}

func (s *streaming) startNode(name string) {
	n := &workerLife{of: s, name: name, bears: s.w.oneIn(2)}
	n.ctx, n.end = context.WithCancel(context.Background())
	n.host = fragment.NewHost(feeds{n}, memory.Limits{}, zerolog.Nop())
	s.mu.Lock()
	s.hosts[name] = n
	s.mu.Unlock()
	s.w.note("the node %s begins", name)
}

// home is a process in which fragments run.
type home interface {
	gone() bool
	label() string
	// worker is the name that the catalog has for it.
	worker() string
	world() *streaming
}

func (n *workerLife) gone() bool        { return n.dead.Load() }
func (n *workerLife) label() string     { return n.name }
func (n *workerLife) worker() string    { return n.name }
func (n *workerLife) world() *streaming { return n.of }

func (l *carrier) gone() bool        { return l.dead.Load() }
func (l *carrier) label() string     { return l.name }
func (l *carrier) worker() string    { return coordinator.Server }
func (l *carrier) world() *streaming { return l.of }

// killNode ends a node's process, and starts another one later.
func (s *streaming) killNode(name string, long time.Duration) {
	n := s.hosts[name]
	if n.dead.Swap(true) {
		return
	}
	s.w.note("the node %s is killed for %v", name, long)
	n.end()
	for _, w := range s.ways {
		if w.n == n {
			s.w.after(s.w.between(0, 15*time.Second), w.breaks)
		}
	}
	s.seen(name)
	s.w.after(long, func() { s.revive(name) })
}

func (s *streaming) revive(name string) {
	if s.hosts[name].dead.Load() && !s.ending {
		s.startNode(name)
		s.seen(name)
	}
}

// seen has the servers that are there see a node as it is, each a while later.
func (s *streaming) seen(name string) {
	for _, l := range s.lives {
		s.w.after(s.w.between(100*time.Millisecond, 4*time.Second), func() {
			state := catalog.Active
			switch {
			case s.hosts[name].dead.Load() || l.parted[name]:
				state = catalog.Unreachable
			case s.draining[name]:
				state = catalog.Draining
			}
			s.set(l, name, state)
		})
	}
}

// drain has an operator ask a node to rest, for a while.
func (s *streaming) drain(name string, long time.Duration) {
	s.w.note("the node %s drains for %v", name, long)
	s.draining[name] = true
	s.seen(name)
	s.w.after(long, func() { s.resume(name) })
}

func (s *streaming) resume(name string) {
	if s.draining[name] {
		s.w.note("the node %s drains no more", name)
		delete(s.draining, name)
		s.seen(name)
	}
}

// HasLoad is what the server knows of the load of a node.
func (l *carrier) HasLoad(host string) bool {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	n := l.of.hosts[host]
	return n != nil && n.bears
}

// Removed implements coordinator.Cluster: no operator takes nodes out here.
func (l *carrier) Removed(string) bool { return false }

// part cuts the ways between a server and a node, for a while: what is said on them comes never, and each end finds
// that out by itself.
func (s *streaming) part(l *carrier, name string, long time.Duration) {
	s.w.note("%s and %s are parted for %v", l.name, name, long)
	l.parted[name] = true
	for _, w := range s.ways {
		if w.l == l && w.n.name == name {
			w.cut = true
			s.w.after(s.w.between(time.Second, 25*time.Second), func() { w.owner.lose() })
			s.w.after(s.w.between(time.Second, 25*time.Second), func() { w.worker.lose() })
		}
	}
	s.seen(name)
	s.w.after(long, func() { s.join(l, name) })
}

func (s *streaming) join(l *carrier, name string) {
	delete(l.parted, name)
	s.seen(name)
}

func (s *streaming) newWay(l *carrier, n *workerLife, k fragment.Key) *way {
	w := openWay(s.w, l.name, n.name, fmt.Sprint(k))
	w.l, w.n = l, n
	s.ways = append(s.ways, w)
	return w
}

// ways are a coordinator's to the nodes.
type ways struct{ l *carrier }

var _ coordinator.Runner = ways{}

// reaches asks a node for something, which happens when the loop says so; what it does may take its time. A node that
// cannot be reached says nothing, or the asking fails after a while.
func reaches[T any](l *carrier, ctx context.Context, host, what string,
	do func(n *workerLife, reply func(T, error))) (T, error) {
	s := l.of
	type answer struct {
		v   T
		err error
	}
	replies := make(chan answer, 4)
	reply := func(v T, err error) { replies <- answer{v, err} }
	var none T
	s.w.hand(fmt.Sprintf("node %s %s %s", l.name, host, what), func() {
		s.w.after(s.w.between(time.Millisecond, 60*time.Millisecond), func() {
			n := s.hosts[host]
			switch {
			case ctx.Err() != nil:
			case l.dead.Load():
				reply(none, errGone)
			case n == nil || n.dead.Load():
				s.w.after(s.w.between(0, 3*time.Second), func() { reply(none, errRefused) })
			case l.parted[host]:
				s.w.after(s.w.between(5*time.Second, 90*time.Second), func() { reply(none, errGone) })
			default:
				s.w.note("%s asks %s to %s", l.name, host, what)
				do(n, reply)
			}
		})
	})
	select {
	case a := <-replies:
		return a.v, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// fragmentKey is the key of the fragment in the contexts of a node.
type fragmentKey struct{}

// Start implements coordinator.Runner. Now and then the way breaks at any moment.
func (r ways) Start(ctx context.Context, host string, spec fragment.Spec) (fragment.Link, error) {
	s := r.l.of
	what := fmt.Sprintf("start %v", spec.Key)
	return reaches(r.l, ctx, host, what, func(n *workerLife, reply func(fragment.Link, error)) {
		w := s.newWay(r.l, n, spec.Key)
		body, err := spec.Marshal()
		if err != nil {
			reply(nil, err)
			return
		}
		s.going.Add(1)
		go func() {
			defer s.going.Add(-1)
			n.host.Run(context.WithValue(n.ctx, fragmentKey{}, spec.Key), spec.Key, body, w.worker)
			_ = w.worker.Close()
		}()
		if s.w.oneIn(s.breaks) {
			s.w.after(s.w.between(0, 40*time.Second), func() {
				s.w.note("the way of %s to %s for %v breaks", r.l.name, n.name, spec.Key)
				w.owner.lose()
				s.w.after(s.w.between(0, 15*time.Second), w.worker.lose)
			})
		}
		if s.w.oneIn(s.breaks) {
			s.w.note("that it has begun is not heard")
			s.w.after(s.w.between(0, 15*time.Second), w.breaks)
			reply(nil, errGone)
			return
		}
		s.w.after(s.w.between(time.Millisecond, 30*time.Millisecond), func() { reply(w.owner, nil) })
	})
}

// Stop implements coordinator.Runner.
func (r ways) Stop(ctx context.Context, host string, k fragment.Key) error {
	s := r.l.of
	_, err := reaches(r.l, ctx, host, fmt.Sprintf("stop %v", k), func(n *workerLife, reply func(struct{}, error)) {
		s.going.Add(1)
		go func() {
			defer s.going.Add(-1)
			limited, cancel := context.WithTimeout(n.ctx, 20*time.Second)
			defer cancel()
			err := n.host.Stop(limited, k)
			s.w.hand(fmt.Sprintf("stopped %s %s %v", r.l.name, host, k), func() {
				if s.w.oneIn(s.breaks) {
					err = errGone
				}
				s.w.after(s.w.between(time.Millisecond, 30*time.Millisecond), func() { reply(struct{}{}, err) })
			})
		}()
	})
	return err
}

// Status implements coordinator.Runner.
func (r ways) Status(ctx context.Context, host string) ([]fragment.Key, error) {
	return reaches(r.l, ctx, host, "say what runs", func(n *workerLife, reply func([]fragment.Key, error)) {
		list := n.host.List("", 0)
		r.l.of.w.after(r.l.of.w.between(time.Millisecond, 30*time.Millisecond), func() { reply(list.Running, nil) })
	})
}
