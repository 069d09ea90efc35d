// Package nodes is the nodes as the server sees them: which there are, what room they
// have, and the way to each.
//
// It opens streams to them with protocol.Dialer, anew whenever one ends, and knows no
// transport. engine/cluster/assignment decides which node can be relied upon and which carries a
// run worker; the fleet tells it what happens and does what it says. Who decides about
// runs sees two things: Place, which finds nodes for run workers, and a Node, to which
// messages are sent. Contact is the fleet's own matter: it acknowledges what each node
// reports every second, and names the runs that the server owns. Run workers of which it
// does not say so for a minute stop by themselves.
package nodes

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/assignment"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/version"
)

// helloTimeout is how long Open waits for the nodes to introduce themselves.
const helloTimeout = 3 * time.Second

// Node is one of the nodes, for who sends it messages.
type Node interface {
	// ID is the node's own name, empty before it has introduced itself.
	ID() string
	// Send puts a message into the node's mailbox and does not wait. What becomes of it while
	// the node is slow says protocol.PolicyToNode. The error is that there is no stream now: the
	// message waits for the next one. What was under way when a stream broke is gone, and
	// protocol.RunState repeats what matters.
	Send(m protocol.ToNode) error
}

// Listener takes what the nodes say. Its methods are called in the order of each node,
// and for several nodes at a time.
type Listener interface {
	// Receive takes what a node says about a run, and reports whether somebody here carries it.
	Receive(runID string, from Node, m protocol.FromNode) bool
	// UnknownWorker takes a run worker that a node holds, or whose end it has not been able to
	// tell anybody, of a run that nobody here carries.
	UnknownWorker(from Node, w protocol.WorkerState)
	// OwnedRuns are the runs that this server owns now, remote: for a node of another process.
	OwnedRuns(remote bool) []protocol.OwnedRun
	// PartQuarantined takes a part that a node keeps and cannot open.
	PartQuarantined(p protocol.QuarantinedPart)
}

// Options are what a fleet is made of.
type Options struct {
	Log zerolog.Logger
	// Version is the server's. Nodes of versions that do not work with it are sent away.
	Version string
	// Dialers lead to one node each.
	Dialers []protocol.Dialer
	// Source finds more while the fleet is open; nil finds none.
	Source Source
	// Content is what nodes of other processes fetch from this one; nil where all nodes read what the server reads.
	Content Content
	// SegmentTimeout is how long bringing one may take, beside what its size takes; 0 is 30 s.
	SegmentTimeout time.Duration
	// Network says which nodes reach a database; nil: every node does.
	Network Network
	// Watcher is told of each change of a node's state; nil where nobody watches.
	Watcher Watcher
	// Meter takes measurements; nil takes none.
	Meter Meter
	// Jitter is by how much a pause varies, at least 0 and less than what it is given; nil is by chance.
	Jitter func(time.Duration) time.Duration
	// Clock reads the machine's clock, with its monotonic reading; nil means time.Now.
	Clock func() time.Time
}

// Content is what nodes of other processes fetch from the server.
type Content interface {
	// ReadPlugin reads a plugin that a node wants.
	ReadPlugin(ctx context.Context, sha256 string) ([]byte, error)
	// Segment opens a segment that a node wants for the work of a query, and says how large it is.
	Segment(ctx context.Context, runID, name string) (io.ReadCloser, int64, error)
}

// Network says which nodes reach the database of a DSN.
type Network interface {
	Reachability(dsn secret.Secret) Reachability
}

// Watcher is told of nodes. It is called in order, while the fleet waits, and must not ask the fleet for anything.
type Watcher interface {
	RecordEvent(e NodeEvent)
}

// Fleet holds the streams to the nodes. Its methods are safe for concurrent use.
type Fleet struct {
	opts     Options
	nodes    []*node
	listener Listener
	// changed wakes who waits for the next decision by time.
	changed chan struct{}
	// lost wakes the source when a stream has broken.
	lost chan struct{}
	// dialing has a token of each node that is being dialled.
	dialing chan struct{}
	// clock is what nodes set theirs by. It does not follow one that is set.
	clock *clock.Clock

	mu     sync.Mutex
	found  map[string]*node // those of the source, by its keys
	coord  *assignment.Coordinator
	byID   map[string]*node
	placed map[assignment.Key]protocol.AssignRun
	// handles are the nodes as others hold them, by name.
	handles map[string]*handle
	stream  int64 // numbers the streams
	// activeQueries is when a node was given a run worker that it has not answered for.
	activeQueries map[assignment.Key]time.Time
	// queries are those whose work nodes have; cancelled is when they were told to end a work.
	queries   map[string]*activeQuery
	cancelled map[Work]time.Time
	// shown is the state in which each node was last shown to Watch, refused the last reason by name.
	shown   map[string]shownState
	refused map[string]string
	// takenOut are nodes, by name, whose way a source has ended, until there is another.
	takenOut map[string]bool
	tidied   time.Time
}

// New makes a fleet; nothing is dialled before Open.
func New(opts Options) *Fleet {
	if opts.Jitter == nil {
		opts.Jitter = rand.N[time.Duration]
	}
	f := &Fleet{
		opts:          opts,
		changed:       make(chan struct{}, 1),
		clock:         clock.New(opts.Clock),
		lost:          make(chan struct{}, 1),
		dialing:       make(chan struct{}, maxDialing),
		found:         map[string]*node{},
		takenOut:      map[string]bool{},
		coord:         assignment.New(assignment.DefaultPolicy()),
		byID:          map[string]*node{},
		placed:        map[assignment.Key]protocol.AssignRun{},
		activeQueries: map[assignment.Key]time.Time{},
		queries:       map[string]*activeQuery{},
		cancelled:     map[Work]time.Time{},
		handles:       map[string]*handle{},
		shown:         map[string]shownState{},
		refused:       map[string]string{},
	}
	if f.opts.Watcher == nil {
		f.opts.Watcher = noop{}
	}
	if f.opts.Meter == nil {
		f.opts.Meter = noop{}
	}
	for _, d := range opts.Dialers {
		f.nodes = append(f.nodes, newNode(f, d))
	}
	return f
}

// Open begins to speak with the nodes, in goroutines started by run that end with
// lifetime. It returns when all nodes have introduced themselves, or have had the time for it.
func (f *Fleet) Open(ctx, lifetime context.Context, run func(func()), l Listener) error {
	f.listener = l
	run(func() { f.runTimer(lifetime) })
	for _, n := range f.nodes {
		run(func() { n.maintain(lifetime) })
	}
	limited, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if f.opts.Source != nil {
		w := dialerSet{f, lifetime, run}
		f.opts.Source.Discover(limited, w)
		run(func() { f.opts.Source.Watch(lifetime, w) })
	}
	f.mu.Lock()
	expected := slices.Clone(f.nodes)
	f.mu.Unlock()
	for _, n := range expected {
		select {
		case <-n.ready:
		case <-limited.Done():
			if ctx.Err() == nil {
				f.opts.Log.Warn().Msg("a node has not introduced itself yet")
			}
			return ctx.Err()
		}
	}
	return nil
}

// Reachability says from where a database can be reached.
type Reachability int

// The reaches.
const (
	FromAnyNode     Reachability = iota
	FromSameMachine              // from the server's machine
	FromServerOnly               // from the server's process
)

// build is who the server is to nodes.
func (f *Fleet) build() version.Build {
	return version.Build{Version: f.opts.Version, Protocol: version.Protocol}
}

// Capacity is how many connections the nodes hold together.
type Capacity struct {
	// None: no node takes new run workers.
	None bool
	// Unlimited: one of the nodes takes any number of connections.
	Unlimited   bool
	Connections int
	// Own: the node in the server's process is one of them, with room for OwnConnections, 0 without a limit.
	Own            bool
	OwnConnections int
	// Nodes is how many are known; Out says why they take nothing, Drained that an operator wants it so of one.
	Nodes   int
	Out     []string
	Drained bool
	// Coming is how many of them have not introduced themselves yet.
	Coming int
}

// Capacity adds up what the nodes that take new run workers hold.
func (f *Fleet) Capacity() Capacity {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Capacity{None: true, Nodes: len(f.nodes)}
	for _, n := range f.coord.Nodes() {
		if !n.InRotation {
			c.Out = append(c.Out, n.ID+": "+outReason(n))
			c.Drained = c.Drained || n.DrainRequested
			continue
		}
		c.None = false
		c.Connections += n.Capacity
		c.Unlimited = c.Unlimited || n.Capacity == 0
		if n.ID == protocol.OwnNode {
			c.Own, c.OwnConnections = true, n.Capacity
		}
	}
	for _, n := range f.nodes {
		select {
		case <-n.ready:
		default:
			c.Coming++
		}
		if v := n.unidentified(); n.ID() == "" && v.Address != "" {
			c.Out = append(c.Out, v.Address+": "+v.Reason)
		}
	}
	return c
}

// noNodeError is the error of a run that no node carries.
func (c Capacity) noNodeError() error {
	e := &engine.Error{Code: engine.CodeUnavailable, Message: "No node takes run workers now.",
		Hint: "`loadstone node list` and the page Nodes say why."}
	if len(c.Out) > 0 {
		e.Message = "No node takes run workers now (" + strings.Join(c.Out[:min(len(c.Out), 3)], "; ")
		if more := len(c.Out) - 3; more > 0 {
			e.Message += fmt.Sprintf("; and %d more", more)
		}
		e.Message += ")."
	}
	switch {
	case c.Drained:
		e.Hint = "Let one take work again: loadstone node resume NODE, or on the page Nodes."
	case c.Nodes == 0:
		e.Message = "The server has no node: its own is switched off, and it dials none."
		e.Hint = "Start it with a --local-capacity over 0, or tell it of nodes: loadstone node add HOST:PORT."
	}
	return e
}

// CheckReachable checks whether nodes that are there reach the database of a scenario, by its DSN.
func (f *Fleet) CheckReachable(sc engine.Scenario, dsn secret.Secret) error {
	if f.opts.Network == nil {
		return nil
	}
	c, reach, want := f.Capacity(), f.opts.Network.Reachability(dsn), sc.Workload.ConcurrentConnections
	switch {
	case c.None || reach == FromAnyNode || reach == FromSameMachine && !c.Own:
		return nil
	case !c.Own:
		return engine.InvalidField("target.connection",
			"leads to a database inside the server's own process, which no node of another process reaches, and the "+
				"server's own node takes no run workers",
			"start the server with a --local-capacity over 0, or resume its own node; or use a database that nodes reach, "+
				"such as one of loadstone snowsim")
	case c.OwnConnections > 0 && want > c.OwnConnections:
		return engine.InvalidField("workload.concurrent_connections",
			fmt.Sprintf("%d connections are more than the %d of the server's own node, which alone reaches this database",
				want, c.OwnConnections), "lower it, or start the server with a larger --local-capacity")
	}
	return nil
}

// Fits checks a scenario against the room that there is, whatever is taken of it.
func (c Capacity) Fits(sc engine.Scenario) error {
	want := sc.Workload.ConcurrentConnections
	switch {
	case c.None:
		return c.noNodeError()
	case !c.Unlimited && want > c.Connections:
		return engine.InvalidField("workload.concurrent_connections",
			fmt.Sprintf("%d connections are more than the %d that the nodes hold", want, c.Connections),
			"lower it, or add a node")
	case !c.Own && sc.Workload.Feed != nil && sc.Workload.Feed.Run != "":
		return &engine.Error{Code: engine.CodeUnsupported,
			Message: "A recorded run is replayed on the server's own node alone, which takes no run workers here.",
			Hint:    "Start the server with a --local-capacity over 0; a feed from a CSV runs anywhere."}
	}
	return nil
}
