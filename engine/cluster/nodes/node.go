package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/backoff"
	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
)

// The pause before a node is dialled again doubles up to longestPause, and is half to all of that,
// so that the servers of a node that comes back do not come at once.
const (
	minBackoff  = 100 * time.Millisecond
	maxBackoff  = 10 * time.Second
	dialTimeout = 10 * time.Second
)

// flushTimeout is how long what was decided before the end may take to go out.
const flushTimeout = time.Second

// node is the server's side of one node: its stream with a queue of its own, so
// that one stalled node delays nobody else.
type node struct {
	fleet  *Fleet
	dialer protocol.Dialer
	out    *protocol.Mailbox[protocol.ToNode]
	ready  chan struct{} // closed when the first Hello is taken in
	once   sync.Once
	// leave ends the way; nil for one that the fleet was made with.
	leave context.CancelFunc
	// greetings counts those that were taken in.
	greetings atomic.Int64
	// from is the node that has introduced itself here; it belongs to the goroutine that listens.
	from *handle
	// segments are those that it wants.
	segments segments

	mu      sync.Mutex
	retired bool // the way ends with its stream
	id      string
	session string
	end     protocol.ServerEnd
	version string
	// status is the last of the stream that stands; failure why there is none.
	status  *protocol.Status
	failure string
	unfit   string    // why the node of the last stream cannot be used
	lost    time.Time // when its stream broke; zero while it stands or never did
}

func newNode(f *Fleet, d protocol.Dialer) *node {
	return &node{fleet: f, dialer: d, out: protocol.NewMailbox(protocol.PolicyToNode, nil), ready: make(chan struct{}),
		segments: newSegments()}
}

// Send implements Node.
func (n *node) Send(m protocol.ToNode) error {
	n.out.Put(m)
	if n.disconnected() {
		return protocol.ErrClosed
	}
	return nil
}

// ID implements Node.
func (n *node) ID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

// rejectTimeout bounds how long a node may take to hear why it is sent away.
const rejectTimeout = 2 * time.Second

// reject ends the stream of that session, if it is this node's, and says why.
func (n *node) reject(session, reason string) {
	n.mu.Lock()
	end := n.end
	if n.session != session {
		end = nil
	}
	n.mu.Unlock()
	if end == nil {
		return
	}
	go func() {
		if r, ok := end.(protocol.Refuser); ok {
			ctx, cancel := context.WithTimeout(context.Background(), rejectTimeout)
			defer cancel()
			_ = r.Refuse(ctx, reason) // the server's log has it too
		}
		_ = end.Close()
	}()
}

// maintain holds a stream to the node until ctx ends, and opens another whenever it breaks.
func (n *node) maintain(ctx context.Context) {
	again, said := backoff.Backoff{Min: minBackoff, Max: maxBackoff}, ""
	for ctx.Err() == nil {
		end, err := n.dial(ctx)
		if err == nil {
			begin := time.Now()
			err = n.serve(ctx, end)
			if said = ""; time.Since(begin) > maxBackoff {
				again.Reset()
			}
			n.fleet.notifyDisconnected()
		}
		if ctx.Err() != nil || n.retiring() {
			return
		}
		n.failed(err)
		if err != nil && err.Error() != said {
			// Once, and not for each attempt.
			said = err.Error()
			n.logFailure(err)
		}
		pause := again.Next()
		select {
		case <-time.After(pause/2 + n.fleet.opts.Jitter(pause/2)):
		case <-ctx.Done():
		}
	}
}

// So many nodes are dialled at a time, each counting for dialShare at most: the handshakes of a thousand that
// begin at once would all take longer than they may, and begin again. One that does not answer keeps nobody waiting.
const (
	maxDialing = 64
	dialShare  = time.Second
)

// dial opens a stream, when it is the node's turn.
func (n *node) dial(ctx context.Context) (protocol.ServerEnd, error) {
	select {
	case n.fleet.dialing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave := sync.OnceFunc(func() { <-n.fleet.dialing })
	defer leave()
	defer time.AfterFunc(dialShare, leave).Stop()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return n.dialer.Dial(ctx)
}

// logFailure logs why there is no stream.
func (n *node) logFailure(err error) {
	if errors.As(err, new(unfitError)) {
		return // the refusal was logged
	}
	log := n.fleet.opts.Log.With().Str("node_id", n.ID()).Logger()
	if errors.Is(err, protocol.ErrSameNode) {
		log.Info().Err(err).Msg("two addresses lead to one node, which counts once")
		return
	}
	log.Warn().Err(err).Msg("there is no stream to a node; it is dialled again until there is")
}

// serve serves one stream to its end.
func (n *node) serve(ctx context.Context, end protocol.ServerEnd) error {
	session, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	writing.Go(func() { _ = n.out.Deliver(session, end.Send, n.handleUnsendable) })
	err := n.receive(ctx, end)
	cancel()
	writing.Wait()
	n.forwardUnsent()
	if ctx.Err() != nil {
		n.flush(end)
	}
	n.mu.Lock()
	id, name, unfit := n.id, n.session, n.unfit
	n.session, n.end, n.status, n.unfit = "", nil, nil, ""
	n.mu.Unlock()
	if name != "" {
		n.fleet.opts.Meter.Disconnected()
		n.fleet.apply(assignment.StreamLost{Node: id, Session: name})
		n.fleet.mu.Lock()
		n.fleet.forgetCancelled(id)
		n.fleet.mu.Unlock()
	}
	if unfit != "" {
		_ = end.Close()
		return unfitError(unfit)
	}
	return errors.Join(err, end.Close())
}

// unfitError says why a node was sent away that cannot be used.
type unfitError string

func (e unfitError) Error() string { return string(e) }

// handleUnsendable takes note of a message that can never be sent: a run worker whose assignment is one
// does not begin.
func (n *node) handleUnsendable(m protocol.ToNode, err error) {
	f, id := n.fleet, n.ID()
	f.opts.Log.Error().Err(err).Str("node_id", id).Type("message", m).Msg("a message cannot be sent to a node")
	if w, ok := m.(protocol.AssignWork); ok {
		n.mu.Lock()
		session := n.session
		n.mu.Unlock()
		n.handleQueryMessage(context.Background(), session, nil, protocol.WorkFailed{WorkKey: w.WorkKey, Final: true,
			Reason: fmt.Sprintf("a part of the query cannot be sent to a node: %v", err)})
		return
	}
	a, ok := m.(protocol.AssignRun)
	if !ok {
		return
	}
	f.mu.Lock()
	from := f.handle(id)
	f.mu.Unlock()
	n.mu.Lock()
	session := n.session
	n.mu.Unlock()
	f.apply(assignment.Rejected{Node: id, Session: session, Key: keyOf(a.RunID, a.WorkerID)})
	f.listener.Receive(a.RunID, from, protocol.RunRejected{RunID: a.RunID, WorkerID: a.WorkerID, NodeID: id,
		Err: &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("%s cannot be given to the node %s: %v.", a.WorkerID, id, err),
			Hint:    "Make the feed, the parameters or the statements of the run smaller."}})
}

// flush sends what was decided before the end.
func (n *node) flush(end protocol.ServerEnd) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	for {
		m, ok := n.out.Take()
		if !ok {
			return
		}
		err := end.Send(ctx, m)
		if err != nil && !errors.Is(err, protocol.ErrTooLarge) && !errors.Is(err, protocol.ErrUnsendable) {
			return
		}
	}
}

// receive takes what the node says until its stream ends; what the node wanted is not brought any longer.
func (n *node) receive(ctx context.Context, end protocol.ServerEnd) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		m, err := end.Receive(ctx)
		if err != nil {
			return err
		}
		if h, ok := m.(protocol.Hello); ok {
			n.handleHello(h, end)
			continue
		}
		n.mu.Lock()
		session := n.session
		n.mu.Unlock()
		if session != "" {
			n.handleMessage(ctx, session, end, m)
		}
	}
}

// handleHello takes in who the node is, and what it still holds.
func (n *node) handleHello(h protocol.Hello, end protocol.ServerEnd) {
	f := n.fleet
	f.mu.Lock()
	f.stream++
	session := fmt.Sprintf("%s/%d", h.Session, f.stream)
	from := f.handle(h.NodeID)
	f.mu.Unlock()
	n.mu.Lock()
	n.id, n.from, n.session, n.end, n.version = h.NodeID, from, session, end, h.Version
	n.mu.Unlock()
	held := make([]assignment.Key, len(h.Workers))
	for i, w := range h.Workers {
		held[i] = keyOf(w.RunID, w.WorkerID)
	}
	unfit := ""
	if err := version.Check(f.build(), version.Build{Version: h.Version, Protocol: h.Protocol}); err != nil {
		unfit = err.Error()
	}
	var rtt time.Duration
	if m, ok := end.(protocol.TimedStream); ok {
		rtt = m.RoundTrip()
	}
	// What was for the stream before does not count on this one.
	n.out.RemoveMatching(protocol.IsQueryMessage)
	tell, refused := f.decide(
		assignment.HelloReceived{Node: h.NodeID, Session: session, Link: n.link(), Unfit: unfit, RTT: rtt,
			Process: h.Session, Capacity: h.Capacity, Accepting: true, Works: held,
			AcceptsQueries: h.Queries},
		n,
	)
	n.mu.Lock()
	n.unfit = unfit
	if refused {
		n.session = "" // whatever it says is not heard
	}
	n.mu.Unlock()
	if refused {
		return
	}
	f.mu.Lock()
	delete(f.refused, h.NodeID) // if it is refused again, that is news
	f.mu.Unlock()
	n.connected()
	for _, p := range h.Quarantined {
		f.listener.PartQuarantined(p)
	}
	// A run that ends because a run worker of it is lost wants the parts that it left.
	for _, p := range h.Parts {
		n.handlePart(context.Background(), session, end, p)
	}
	tell()
	for _, w := range h.Workers {
		if !n.handleWorkerState(session, w) && !w.Status.Ended() {
			f.listener.UnknownWorker(from, w)
		}
	}
	n.greetings.Add(1)
	n.once.Do(func() { close(n.ready) })
}

// disconnected reports whether the node has no stream now.
func (n *node) disconnected() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.session == ""
}

// handleMessage takes one message in.
func (n *node) handleMessage(ctx context.Context, session string, end protocol.ServerEnd, m protocol.FromNode) {
	f, id := n.fleet, n.ID()
	switch m := m.(type) {
	case protocol.Pong:
		f.apply(assignment.PongReceived{Node: id, Session: session, Seq: m.Seq})
	case protocol.Status:
		received := f.clock.Now()
		n.mu.Lock()
		n.status = &m
		n.mu.Unlock()
		f.apply(assignment.StatusReceived{Node: id, Session: session, Accepting: m.AcceptingWork, Draining: m.Draining,
			Refusal: m.Refusal})
		_, remote := end.(protocol.PluginReceiver)
		_ = n.Send(protocol.StatusAck{Sequence: m.Sequence, Runs: f.listener.OwnedRuns(remote), Received: received,
			Sent: f.clock.Now()}) // the next Status is acknowledged too
	case protocol.RunAccepted:
		f.apply(assignment.Accepted{Node: id, Session: session, Key: keyOf(m.RunID, m.WorkerID)})
	case protocol.RunRejected:
		f.apply(assignment.Rejected{Node: id, Session: session, Key: keyOf(m.RunID, m.WorkerID)})
		f.listener.Receive(m.RunID, n.from, m)
	case protocol.WorkerState:
		n.handleWorkerState(session, m)
	case protocol.Snapshot:
		f.listener.Receive(m.RunID, n.from, m)
	case protocol.Log:
		f.listener.Receive(m.RunID, n.from, m)
	case protocol.WorkReady:
		n.handlePart(ctx, session, end, m)
	case protocol.PluginRequest:
		go n.sendPlugin(ctx, end, m.SHA256)
	default:
		n.handleQueryMessage(ctx, session, end, m)
	}
}

// handlePart takes in that the node has a part, unless it cannot have made what it says.
func (n *node) handlePart(ctx context.Context, session string, end protocol.ServerEnd, p protocol.WorkReady) {
	if err := p.Check(); err != nil {
		n.fleet.opts.Log.Error().Err(err).Str("node_id", n.ID()).Msg("a node announces what is no part; it is not fetched")
		return
	}
	if p.Artifact.Kind == protocol.KindLeaf {
		n.handleQueryMessage(ctx, session, end, p)
		return
	}
	n.from.noteAnnounced(p.WorkID)
	n.fleet.listener.Receive(p.Artifact.RunID, n.from, p)
}

// handleWorkerState takes in what a run worker says of itself, and reports whether somebody
// carries its run here. Who does acknowledges its end when that is stored: until then the
// node says it again on each new stream.
func (n *node) handleWorkerState(session string, m protocol.WorkerState) bool {
	f := n.fleet
	carried := f.listener.Receive(m.RunID, n.from, m)
	if m.Status.Ended() {
		f.apply(assignment.Ended{Node: n.ID(), Session: session, Key: keyOf(m.RunID, m.WorkerID)})
		if !carried {
			f.listener.UnknownWorker(n.from, m)
		}
	}
	return carried
}

// sendPlugin gives a node a plugin that it wanted.
func (n *node) sendPlugin(ctx context.Context, end protocol.ServerEnd, sum string) {
	log := n.fleet.opts.Log.With().Str("node_id", n.ID()).Str("sha256", sum).Logger()
	remote, ok := end.(protocol.PluginReceiver)
	if !ok || n.fleet.opts.Content == nil {
		log.Error().Msg("a node wants a plugin, and there is no way to bring it")
		return
	}
	wasm, err := n.fleet.opts.Content.ReadPlugin(ctx, sum)
	if err == nil {
		err = remote.PutPlugin(ctx, sum, wasm)
	}
	if err != nil {
		log.Error().Err(err).Msg("a plugin could not be brought to a node; it asks again")
		return
	}
	log.Info().Int("bytes", len(wasm)).Msg("a plugin was brought to a node")
}
