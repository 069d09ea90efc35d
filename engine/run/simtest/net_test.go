package simtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// window is how many messages of one direction may be under way before the sender waits.
const window = 256

// errRefused is what a dial meets where nobody listens.
var errRefused = errors.New("connection refused")

// wire is the way from a server to a node. It implements protocol.Dialer.
type wire struct {
	w    *world
	srv  *server
	node *node

	// cutDown and cutUp say that nothing arrives at the node, and from it.
	cutDown, cutUp bool
	slow           time.Duration // what each message takes at most, besides
	stream         *stream
	streams        int
}

func (l *wire) name() string { return l.srv.name + "-" + l.node.name }

// delay is how long one message travels.
func (l *wire) delay() time.Duration {
	if l.node.own != nil {
		return l.w.between(time.Microsecond, 20*time.Microsecond)
	}
	return l.w.between(50*time.Microsecond, 3*time.Millisecond) + l.w.between(0, l.slow)
}

// cut reports whether nothing arrives in one of the directions.
func (l *wire) cut() bool { return l.cutDown || l.cutUp }

type dialled struct {
	end protocol.ServerEnd
	err error
}

// Dial implements protocol.Dialer.
func (l *wire) Dial(ctx context.Context) (protocol.ServerEnd, error) {
	reply := make(chan dialled, 1)
	l.w.hand("dial "+l.name(), func() { l.dial(ctx, reply) })
	select {
	case d := <-reply:
		return d.end, d.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *wire) dial(ctx context.Context, reply chan dialled) {
	if l.srv.dead.Load() {
		reply <- dialled{err: protocol.ErrClosed}
		return
	}
	l.w.after(l.delay()+l.delay(), func() {
		switch {
		case ctx.Err() != nil:
		case l.srv.dead.Load():
			reply <- dialled{err: protocol.ErrClosed}
		case l.cut() || l.node.frozen.Load():
			l.node.unanswered = append(l.node.unanswered, func() { l.dial(ctx, reply) })
		case l.node.process == nil:
			reply <- dialled{err: errRefused}
		default:
			if l.stream != nil {
				l.stream.node.close()
			}
			s := l.open()
			l.w.note("%s stream %d", l.name(), s.id)
			l.node.process.mu.Lock()
			l.node.process.joined = time.Now()
			l.node.process.mu.Unlock()
			l.node.process.accepts.put(nodeEnd{s})
			if l.node.own != nil {
				reply <- dialled{end: ownEnd{serverEnd{s}}}
				return
			}
			reply <- dialled{end: serverEnd{s}}
		}
	})
}

func (l *wire) open() *stream {
	l.streams++
	s := &stream{wire: l, id: l.streams, process: l.node.process}
	s.server, s.node = newSide(), newSide()
	s.down = &lane{stream: s, to: s.node, cut: func() bool { return l.cutDown || l.node.frozen.Load() },
		name: l.name() + " down"}
	s.up = &lane{stream: s, to: s.server, cut: func() bool { return l.cutUp }, name: l.name() + " up"}
	l.stream = s
	return s
}

// stream is a session between a server and a node.
type stream struct {
	wire         *wire
	id           int
	process      *process
	server, node *side
	down, up     *lane
}

// broken breaks the stream; each side hears of it when it does.
func (s *stream) broken(server, node time.Duration) {
	s.wire.w.after(server, func() { s.server.close() })
	s.wire.w.after(node, func() { s.node.close() })
}

// repeats has a snapshot arrive once more now and then, before or after others.
func (s *stream) repeats(m protocol.Snapshot) {
	w := s.wire.w
	about, what := describe(m)
	w.hand("repeat "+s.up.name+" "+about, func() {
		sim := s.wire.node.sim
		one := m.WorkerSnapshot
		sim.model.heard[m.RunID] = append(sim.model.heard[m.RunID], &one)
		if !w.oneIn(15) {
			return
		}
		if sim.without == withoutCounting {
			m.Tick += 1 << 20
		}
		w.after(w.between(0, 4*time.Second), func() {
			if !s.up.cut() && !s.server.closed() {
				w.note("%s %d again %s", s.up.name, s.id, what)
				s.server.put(m)
			}
		})
	})
}

// lane is one direction of a stream: messages arrive in order, or not at all.
type lane struct {
	stream *stream
	name   string
	to     *side
	cut    func() bool
	last   time.Time
	held   []func()

	mu     sync.Mutex
	flight int
	freed  chan struct{}
}

// travel has a message arrive after all before it.
func (l *lane) travel(arrive func()) {
	if l.cut() || len(l.held) > 0 {
		l.held = append(l.held, arrive)
		return
	}
	w := l.stream.wire.w
	at := time.Now().Add(l.stream.wire.delay())
	if !at.After(l.last) {
		at = l.last.Add(1)
	}
	l.last = at
	w.after(time.Until(at), func() {
		if l.cut() || len(l.held) > 0 {
			l.held = append(l.held, arrive)
			return
		}
		arrive()
	})
}

// healed lets go what was held.
func (l *lane) healed() {
	if l.cut() {
		return
	}
	held := l.held
	l.held = nil
	for _, arrive := range held {
		l.travel(arrive)
	}
}

// enter waits until there is room for one more message.
func (l *lane) enter(ctx context.Context, from *side) error {
	limit := time.NewTimer(protocol.SendTimeout)
	defer limit.Stop()
	for {
		if from.closed() {
			return protocol.ErrClosed
		}
		l.mu.Lock()
		if l.flight < window {
			l.flight++
			l.mu.Unlock()
			return nil
		}
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		select {
		case <-freed:
		case <-from.over:
		case <-limit.C:
			return protocol.ErrStalled
		case <-ctx.Done():
			return errors.Join(protocol.ErrStalled, ctx.Err())
		}
	}
}

func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flight--
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}

// send hands a message over.
func (l *lane) send(ctx context.Context, from *side, m any) error {
	if err := l.enter(ctx, from); err != nil {
		return err
	}
	about, what := describe(m)
	l.stream.wire.w.hand(fmt.Sprintf("message %s %s", l.name, about), func() {
		l.stream.wire.node.sim.shares(l.stream.wire.srv, m)
		l.travel(func() {
			l.leave()
			if l.to.closed() {
				return
			}
			l.stream.wire.w.note("%s %d %s", l.name, l.stream.id, what)
			l.to.put(m)
		})
	})
	return nil
}

// side is what has arrived at one end of a stream.
type side struct {
	over  chan struct{}
	once  sync.Once
	ready chan struct{}

	mu sync.Mutex
	in []any
}

func newSide() *side { return &side{over: make(chan struct{}), ready: make(chan struct{}, 1)} }

func (s *side) close() { s.once.Do(func() { close(s.over) }) }

func (s *side) closed() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

func (s *side) put(m any) {
	s.mu.Lock()
	s.in = append(s.in, m)
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *side) receive(ctx context.Context) (any, error) {
	for {
		if s.closed() {
			return nil, protocol.ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		if len(s.in) > 0 {
			m := s.in[0]
			s.in = s.in[1:]
			s.mu.Unlock()
			return m, nil
		}
		s.mu.Unlock()
		select {
		case <-s.ready:
		case <-s.over:
		case <-ctx.Done():
		}
	}
}

// serverEnd is the server's end of a stream to another process.
type serverEnd struct{ s *stream }

var _ protocol.PluginReceiver = serverEnd{}

func (e serverEnd) Send(ctx context.Context, m protocol.ToNode) error {
	if e.s.wire.node.sim.without == withoutStop {
		if ev, ok := m.(protocol.RunEvent); ok && ev.Event.Type == engine.EventStop {
			return nil
		}
		if st, ok := m.(protocol.RunState); ok && st.Status != engine.StatusRunning {
			return nil
		}
	}
	if e.s.wire.node.sim.without == withoutSteps {
		switch t := m.(type) {
		case protocol.RunEvent:
			if t.Event.Data.StepNumber > 0 {
				t.Event.Data.TargetConnections, t.Event.Data.TargetQPS = nil, nil
				m = t
			}
		case protocol.RunState:
			t.Targets = nil
			m = t
		}
	}
	if e.s.wire.node.sim.without == withoutBounds {
		switch t := m.(type) {
		case protocol.RunEvent:
			t.AtMost = false
			m = t
		case protocol.RunState:
			t.AtMost = false
			m = t
		}
	}
	if e.s.wire.node.sim.without == withoutTargets {
		switch t := m.(type) {
		case protocol.RunEvent:
			if t.Event.Type == engine.EventSetWorkerTarget && t.Event.Data.Reason != string(engine.TargetInitial) {
				return nil
			}
		case protocol.RunState:
			t.Targets = nil
			m = t
		}
	}
	if a, ok := m.(protocol.AssignRun); ok {
		if !e.s.wire.srv.dead.Load() {
			e.s.wire.node.sim.model.assigned(a)
		}
		if e.s.wire.node.own == nil {
			a.Clock = nil // it does not travel
		}
		m = a
	}
	if a, ok := m.(protocol.StatusAck); ok {
		a.Received, a.Sent = travelled(a.Received), travelled(a.Sent)
		if e.s.wire.node.sim.without == withoutClocks {
			a.Received, a.Sent = time.Time{}, time.Time{}
		}
		m = a
	}
	if t, ok := m.(protocol.RunState); ok {
		t.StartAt = travelled(t.StartAt)
		m = t
	}
	if a, ok := m.(protocol.ArtifactAck); ok && !e.s.wire.srv.dead.Load() {
		e.s.wire.srv.acknowledges(a.RunID, a.Name)
	}
	return e.s.down.send(ctx, e.s.server, m)
}

func (e serverEnd) Receive(ctx context.Context) (protocol.FromNode, error) {
	m, err := e.s.server.receive(ctx)
	if err != nil {
		return nil, err
	}
	return m.(protocol.FromNode), nil
}

// Close tells the other side, after what is under way.
func (e serverEnd) Close() error {
	e.s.server.close()
	l := e.s.wire
	l.w.hand("close "+e.s.down.name, func() {
		if !l.srv.dead.Load() {
			e.s.down.travel(e.s.node.close)
		}
	})
	return nil
}

func (e serverEnd) PutPlugin(context.Context, string, []byte) error { return nil }

// OpenPart asks the node for a part, beside the stream.
func (e serverEnd) OpenPart(ctx context.Context, p protocol.WorkReady) (io.ReadCloser, error) {
	type opened struct {
		r   io.ReadCloser
		err error
	}
	if e.s.wire.srv.dead.Load() {
		return nil, protocol.ErrClosed
	}
	reply := make(chan opened, 1)
	l := e.s.wire
	l.w.hand("part "+l.name()+" "+p.WorkID, func() {
		l.w.after(l.delay()+l.delay(), func() {
			r, err := l.part(p)
			l.w.note("%s part %s %v", l.name(), p.WorkID, err)
			reply <- opened{r, err}
		})
	})
	select {
	case o := <-reply:
		return o.r, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// travelled is a time as another process reads it: its monotonic reading says nothing there.
func travelled(t time.Time) time.Time { return t.Round(0) }

// said is what a run worker says as another process reads it.
func said(w protocol.WorkerState) protocol.WorkerState {
	w.At, w.BeganAt, w.MeasuresSince = travelled(w.At), travelled(w.BeganAt), travelled(w.MeasuresSince)
	return w
}

// nodeEnd is the node's end.
type nodeEnd struct{ s *stream }

var _ protocol.Peer = nodeEnd{}

func (e nodeEnd) Server() string { return e.s.wire.srv.name }

func (e nodeEnd) Send(ctx context.Context, m protocol.FromNode) error {
	n := e.s.wire.node
	if err := n.awake(ctx); err != nil {
		return err
	}
	if st, ok := m.(protocol.WorkerState); ok && n.sim.without == withoutHearing {
		st.LastSequence = 1 << 40
		m = st
	}
	e.s.process.said(m)
	switch t := m.(type) {
	case protocol.WorkerState:
		t = said(t)
		e.s.process.timed(t)
		m = t
	case protocol.Hello:
		t.Workers = slices.Clone(t.Workers)
		for i, w := range t.Workers {
			t.Workers[i] = said(w)
		}
		m = t
	}
	if snap, ok := m.(protocol.Snapshot); ok {
		e.s.repeats(snap)
	}
	return e.s.up.send(ctx, e.s.node, m)
}

func (e nodeEnd) Receive(ctx context.Context) (protocol.ToNode, error) {
	m, err := e.s.node.receive(ctx)
	if err != nil {
		return nil, err
	}
	e.s.process.heard(m)
	return m.(protocol.ToNode), nil
}

func (e nodeEnd) Close() error {
	e.s.node.close()
	if e.s.process.dead.Load() {
		return nil // its machine tells the other side
	}
	l := e.s.wire
	l.w.hand("close "+e.s.up.name, func() { e.s.up.travel(e.s.server.close) })
	return nil
}

// accepts are the streams that wait for their node. It implements protocol.Listener.
type accepts struct {
	*side
	mu    sync.Mutex
	parts protocol.Parts
}

func (a *accepts) Serve(parts protocol.Parts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parts = parts
}

func (a *accepts) Accept(ctx context.Context) (protocol.NodeEnd, error) {
	m, err := a.receive(ctx)
	if err != nil {
		return nil, err
	}
	return m.(nodeEnd), nil
}
