package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/base/host"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
	"github.com/loadstone-db/loadstone/engine/plugin"
	resultsexecutions "github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker/diskbudget"
)

// Options configure a node.
type Options struct {
	// NodeID is the node's stable name.
	NodeID  string
	Version string
	Plugins plugin.Host
	Drivers map[string]target.Driver
	// SpoolDir holds recorded parts until the server has them; nobody else opens a file in it.
	// One node at a time uses it.
	SpoolDir string
	// SpoolBytes is the budget of the spool; 0 is half of what its disk has free, less than 0 none.
	SpoolBytes int64
	// KeepStored is how long the node keeps a part that a server has acknowledged, for one that asks
	// again: diskbudget.AcknowledgedFor, or 0 where nobody else could.
	KeepStored time.Duration
	// Reserve is how many bytes of the spool's disk recording leaves free; 0 is the
	// default of record.Reserve, less than 0 none.
	Reserve int64
	// Space reads the free bytes of a folder's disk and its size; nil is record.Space.
	Space func(dir string) (free, size int64, ok bool)
	// Capacity bounds the connections of all run workers together; 0 means what the
	// machine's cores and memory suggest, less than 0 no bound.
	Capacity int
	Log      zerolog.Logger
	// Meter takes measurements; nil takes none.
	Meter Meter
	// Recordings opens the runs that a replay takes its operations from; nil where there are none.
	Recordings Recordings
	// ContactLimit is how long a run worker bears load without contact; 0 is protocol.ContactTimeout,
	// which is the most.
	ContactLimit time.Duration
	// Queries makes what carries out the work of queries, on the disk of the node; nil: it takes none.
	Queries func(Disk) Queries
	// Executions are told what run workers record, while they go on; nil where nobody is.
	Executions resultsexecutions.Observers
	// Clock reads the machine's clock, with its monotonic reading; nil means time.Now.
	Clock func() time.Time
	// OpenLoad opens the load of a run worker; nil means engine/worker/load.
	OpenLoad OpenLoad
	// Sample measures the process and its host over the time since the call before; nil means this one.
	Sample func() engine.Resources
}

// Node hosts run workers. It outlives sessions: when a stream breaks, its run
// workers go on until the watchdog ends them, and the next Serve reports them.
type Node struct {
	opts    Options
	session string
	out     *outbox
	clock   *clock.Clock
	disk    *spool
	queries Queries
	// statuses are those that wait for their acknowledgement.
	statuses statusLog

	// lifetime ends when the node closes; run workers live in it.
	lifetime context.Context
	end      context.CancelFunc
	workers  sync.WaitGroup

	resources atomic.Pointer[engine.Resources]
	// watch looks whether the process runs, where that is measured.
	watch func(context.Context, func() bool)
	// giveWay waits until what works beside the node has given way: see Beside.
	giveWay atomic.Pointer[func(context.Context)]

	salvage        sync.Once
	lastHeartbeats shared

	mu   sync.Mutex
	held map[workerKey]*runWorker
	// ended are run workers of whose end no server has said that it knows.
	ended map[workerKey]end
	parts map[string]heldPart // by work id
	// stored are parts that a server has and that are still on the disk, and early those that were
	// announced while their run worker has load; by work id.
	stored, announcedEarly map[string]bool
	// waits counts the parts of each run worker.
	waits map[workerKey]int
	// quarantined are those that cannot be opened.
	quarantined []protocol.QuarantinedPart
	// draining: the process is ending; drainAsked: an operator wants the node to rest.
	draining, drainRequested bool
	// refusal says why the node takes no run workers although it does not drain, empty where it does.
	refusal string
	// left is closed when the time is over that a draining node gives its work, which is drained.
	left    chan struct{}
	leaving sync.Once
	drained time.Duration
}

type workerKey struct{ runID, workerID string }

// heldPart is a part that no server has acknowledged, with its file.
type heldPart struct {
	protocol.WorkReady
	path string
}

// NewNode returns a node that waits for Serve.
func NewNode(opts Options) *Node {
	if opts.OpenLoad == nil {
		opts.OpenLoad = openLoad
	}
	watch := func(context.Context, func() bool) {}
	if opts.Sample == nil {
		sampler := host.New()
		opts.Sample, watch = sampler.Sample, sampler.Watch
	}
	if opts.ContactLimit <= 0 || opts.ContactLimit > protocol.ContactTimeout {
		opts.ContactLimit = protocol.ContactTimeout
	}
	if opts.Space == nil {
		opts.Space = record.Space
	}
	if opts.Capacity == 0 {
		opts.Capacity = capacityOf(host.CPUs(), host.Memory())
	}
	n := &Node{opts: opts, watch: watch, session: uuid.NewString(), out: newOutbox(),
		clock: clock.New(opts.Clock),
		held:  map[workerKey]*runWorker{}, ended: map[workerKey]end{}, parts: map[string]heldPart{}}
	n.stored, n.announcedEarly, n.waits = map[string]bool{}, map[string]bool{}, map[workerKey]int{}
	n.left = make(chan struct{})
	n.disk = newSpool(opts.SpoolDir, spoolBytes(opts.SpoolDir, opts.SpoolBytes), max(opts.KeepStored, 0), opts.Log,
		n.readyEarly, n.forgetFiles)
	if opts.Queries != nil {
		n.queries = opts.Queries(Disk{n.disk})
	}
	if opts.Meter != nil {
		n.disk.deleted = opts.Meter.Deleted
	}
	n.lifetime, n.end = context.WithCancel(context.Background())
	n.resources.Store(&engine.Resources{})
	return n
}

// What a connection may take of a machine before a node takes no more. Measured were
// 13 KB in an event loop and up to some hundred with a goroutine, TLS and large rows;
// a core that serves thousands of them does little else than switch between them.
const (
	connectionsPerCore = 4096
	connectionMemory   = 256 << 10
	minCapacity        = 64
)

// capacityOf is how many connections a node holds on so many cores, with half of
// that memory in bytes, of which 0 means that it is not known.
func capacityOf(cores float64, memory int64) int {
	most := int(cores * connectionsPerCore)
	if memory > 0 {
		most = min(most, int(memory/2/connectionMemory))
	}
	return max(most, minCapacity)
}

// Listen holds the sessions that come, of several servers at a time, until ctx ends or
// nothing is listened to any more. The node closes then, as Serve says.
func (n *Node) Listen(ctx context.Context, sessions protocol.Listener) error {
	defer n.Close()
	sessions.Serve(n.Part)
	if b, ok := sessions.(protocol.StoreListener); ok {
		b.SetHeld(n.holds)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		link, err := sessions.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, protocol.ErrClosed) {
				return nil
			}
			return err
		}
		serving.Go(func() {
			if err := n.Serve(ctx, link); err != nil {
				n.opts.Log.Warn().Err(err).Msg("a session with a server has ended")
			}
			_ = link.Close()
		})
	}
}

// Serve holds one session with a server; sessions with others may go on meanwhile. It
// returns nil when the server closed the stream, and run workers that are left go on until
// the watchdog ends them or a session of their server, or of one that takes them over,
// begins. It returns nil too when ctx ends; the node then closes: its run workers stop, and
// what they recorded stays in the spool.
func (n *Node) Serve(ctx context.Context, link protocol.NodeEnd) error {
	n.salvage.Do(n.salvageSpool)
	ending, cancel := context.WithCancel(ctx)
	defer cancel()
	server := ""
	if p, ok := link.(protocol.Peer); ok {
		server = p.Server()
	}
	s := n.out.open(server)
	defer n.out.close(s)
	if err := link.Send(ending, n.hello()); err != nil {
		return fmt.Errorf("greeting the server: %w", err)
	}
	var helpers sync.WaitGroup
	helpers.Go(func() {
		// A stream that has closed ends the session through Receive, and what waits goes with the next.
		_ = s.out.Deliver(ending, link.Send, n.handleUnsendable)
	})
	if !n.lastHeartbeats.begin(func(ctx context.Context) { n.heartbeat(ctx) }) {
		n.reportTo(s) // the clocks are compared by it; the first beat does that too
	}
	defer n.lastHeartbeats.end()
	q := n.serveQueries(s)
	err := n.receive(ending, s, q, link)
	q.Close() // before anything else is waited for
	cancel()
	helpers.Wait()
	if ctx.Err() != nil {
		n.Close()
		return nil
	}
	if errors.Is(err, protocol.ErrClosed) {
		return nil
	}
	return err
}

// Close stops all run workers at once and waits for them. Repeating it is harmless.
func (n *Node) Close() {
	n.end()
	n.workers.Wait()
	n.dropStored()
}

// hello says what the node is, and all that it holds, whoever owns it.
func (n *Node) hello() protocol.Hello {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := protocol.Hello{NodeID: n.opts.NodeID, Version: n.opts.Version, Protocol: version.Protocol, Session: n.session,
		Queries: n.queries != nil, Capacity: max(n.opts.Capacity, 0)}
	for _, w := range n.held {
		h.Workers = append(h.Workers, w.report())
	}
	for _, e := range n.ended {
		h.Workers = append(h.Workers, n.restampEnd(e))
	}
	for _, p := range n.parts {
		h.Parts = append(h.Parts, p.WorkReady)
	}
	h.Quarantined = slices.Clone(n.quarantined)
	slices.SortFunc(h.Workers, func(a, b protocol.WorkerState) int {
		return cmp.Or(strings.Compare(a.RunID, b.RunID), strings.Compare(a.WorkerID, b.WorkerID))
	})
	slices.SortFunc(h.Parts, func(a, b protocol.WorkReady) int { return strings.Compare(a.WorkID, b.WorkID) })
	return h
}

// holds reports whether there are run workers, ends of them or parts here that a server is to know of.
func (n *Node) holds() bool {
	n.salvage.Do(n.salvageSpool)
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.held)+len(n.ended)+len(n.parts) > 0
}

// heartbeat samples telemetry and reports the node's own state each second.
func (n *Node) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(protocol.HeartbeatInterval)
	defer ticker.Stop()
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { n.watch(ctx, n.HasWorker) })
	for {
		r := n.opts.Sample()
		n.resources.Store(&r)
		n.disk.apply(diskbudget.Tick{})
		n.checkRoom()
		n.report()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (n *Node) receive(ctx context.Context, s *session, q QuerySession, link protocol.NodeEnd) error {
	for {
		m, err := link.Receive(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case protocol.AssignRun:
			n.assign(s, m)
			n.report() // the worker begins when this is acknowledged
		case protocol.RunEvent:
			n.dispatchRunMessage(s, m.Event.RunID, m.Epoch, m)
		case protocol.RunState:
			n.dispatchRunMessage(s, m.RunID, m.Epoch, m)
		case protocol.StatusAck:
			if sent, known := n.statuses.at(m.Sequence); known {
				if s.clocks.addSample(sent.line, n.clock.Now(), m) {
					n.reportTo(s) // what nobody knew before
					n.resendEnds(s.clocks)
				}
			}
			n.acknowledgedStatus(s, m)
		case protocol.AssignWork:
			n.assignWork(s, q, m)
		case protocol.CancelWork:
			q.Receive(m)
		case protocol.ArtifactAck:
			if q.Receive(m) {
				continue
			}
			if !n.out.ownedRemotely(s, m.RunID) {
				n.acknowledged(m)
			}
		case protocol.WorkerAck:
			n.mu.Lock()
			if key := (workerKey{m.RunID, m.WorkerID}); !n.out.ownedRemotely(s, m.RunID) {
				if n.ended[key].ResultID == m.ResultID {
					delete(n.ended, key)
				}
				if w := n.held[key]; w != nil && w.a.ResultID == m.ResultID && w.status().Ended() {
					w.acknowledged = true // before it has left
				}
			}
			n.mu.Unlock()
		case protocol.Drain:
			n.mu.Lock()
			n.drainRequested = !m.Over
			n.mu.Unlock()
		case protocol.Ping:
			s.out.Put(protocol.Pong(m))
		}
	}
}

// dispatchRunMessage passes on what a server says about a run, if it is its owner. A server that has
// just become it hears how the run stands here.
func (n *Node) dispatchRunMessage(s *session, runID string, epoch int64, m protocol.ToNode) {
	counts, fresh := n.out.acceptsEpoch(s, runID, epoch, time.Now())
	if !counts {
		return
	}
	for _, w := range n.workersOf(runID) {
		w.inbox.Put(m)
	}
	if fresh {
		s.out.Put(n.hello())
	}
}

func (n *Node) workersOf(runID string) []*runWorker {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []*runWorker
	for k, w := range n.held {
		if k.runID == runID {
			found = append(found, w)
		}
	}
	return found
}

func (n *Node) assign(s *session, a protocol.AssignRun) {
	if counts, _ := n.out.acceptsEpoch(s, a.RunID, a.Epoch, time.Now()); !counts {
		return // whoever owns the run now knows of it, or not
	}
	reject := func(message, hint string) {
		n.out.Put(protocol.RunRejected{RunID: a.RunID, WorkerID: a.WorkerID, NodeID: n.opts.NodeID,
			Err: &engine.Error{Code: engine.CodeUnavailable, Message: message, Hint: hint}})
	}
	key := workerKey{a.RunID, a.WorkerID}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, here := n.held[key]; here {
		n.out.Put(protocol.RunAccepted{RunID: a.RunID, WorkerID: a.WorkerID, NodeID: n.opts.NodeID})
		return
	}
	if n.draining || n.drainRequested || n.lifetime.Err() != nil {
		reject(fmt.Sprintf("The node %s is draining.", n.opts.NodeID), "start the run again on another node")
		return
	}
	if n.refusal != "" {
		reject(fmt.Sprintf("The node %s takes no run workers: %s.", n.opts.NodeID, n.refusal),
			"Delete old runs, or put the node's data directory on a larger disk; other nodes go on.")
		return
	}
	if limit := n.opts.Capacity; limit > 0 {
		used := a.Connections
		for _, w := range n.held {
			used += w.a.Connections
		}
		if used > limit {
			reject(fmt.Sprintf("The node %s has room for %d connections, and %d are asked for.", n.opts.NodeID, limit, used),
				"lower workload.concurrent_connections, or wait for other runs to end")
			return
		}
	}
	w := newRunWorker(n, s.clocks, a)
	n.held[key] = w
	n.out.Put(protocol.RunAccepted{RunID: a.RunID, WorkerID: a.WorkerID, NodeID: n.opts.NodeID})
	n.workers.Go(func() {
		began := time.Now()
		w.run(n.lifetime)
		n.measure(w, began)
		n.mu.Lock()
		delete(n.held, key)
		if !w.acknowledged {
			n.ended[key] = end{w.report(), w.line.Load()}
		}
		n.mu.Unlock()
		if len(n.workersOf(a.RunID)) == 0 {
			n.disk.ended(a.RunID)
		}
	})
}
