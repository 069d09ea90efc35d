package simtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	wired "github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/worker"
	"github.com/loadstone-db/loadstone/engine/worker/load"
)

// node is a machine with a disk, and the process that runs on it.
type node struct {
	w    *world
	sim  *simulation
	name string
	// folder names the folders of its disk, and own is the server in whose process it is; empty and nil elsewhere.
	folder string
	own    *server
	disk   string // the folder that stands for its disk now
	disks  int
	clock  *machineClock
	// capacity is how many connections it holds.
	capacity int
	process  *process // nil while it is down
	lives    int

	// slow is how long a write into the spool takes at most.
	slow   atomic.Int64
	frozen atomic.Bool
	mu     sync.Mutex
	thaw   chan struct{}
	// unanswered are dials that nothing answers.
	unanswered []func()
}

// process is one life of a node.
type process struct {
	node    *node
	n       int
	disk    string
	worker  *worker.Node
	accepts *accepts
	end     context.CancelFunc
	ended   chan struct{}
	dead    atomic.Bool

	mu sync.Mutex
	// sent is when each Status was; contact and epochs are what the process has heard of each run.
	sent    map[int64]time.Time
	contact map[string]time.Time
	epochs  map[string]int64
	// risen is when the epoch of a run rose, joined when the process took its last stream.
	risen  map[string]time.Time
	joined time.Time
	// streams work out what rules read here, until streaming ends; nil in a server's process.
	streams    *wired.StreamNode
	streaming  context.Context //nolint:containedctx // of the process
	endStreams context.CancelFunc
	// announced are the parts that it has told of, by work id, with their files.
	announced map[string]string
}

// awake waits while the node is stopped.
func (n *node) awake(ctx context.Context) error {
	for n.frozen.Load() {
		n.mu.Lock()
		thaw := n.thaw
		n.mu.Unlock()
		select {
		case <-thaw:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// start begins a life on the disk as it is.
func (n *node) start() {
	n.lives++
	p := &process{node: n, n: n.lives, disk: n.disk, accepts: &accepts{side: newSide()}, ended: make(chan struct{}),
		sent: map[int64]time.Time{}, contact: map[string]time.Time{}, epochs: map[string]int64{},
		risen:     map[string]time.Time{},
		announced: map[string]string{}}
	p.worker = worker.NewNode(worker.Options{NodeID: n.name, Plugins: host{}, SpoolDir: n.disk, Reserve: -1,
		Capacity: n.capacity, Clock: n.clock.read, Executions: p.streamsOf(n),
		Drivers: map[string]target.Driver{"postgres": driver{}}, Log: zerolog.Nop(), OpenLoad: p.open,
		Sample: func() engine.Resources { return engineResources }}) // those of the machine are different each time
	ctx, end := context.WithCancel(context.Background())
	p.end = end
	n.process = p
	n.sim.lives = append(n.sim.lives, p)
	go func() {
		defer close(p.ended)
		_ = p.worker.Listen(ctx, p.accepts)
	}()
}

// kill ends the process as SIGKILL does: what it had in memory is gone, and its disk is as it was.
func (n *node) kill() {
	p := n.process
	if p == nil {
		return
	}
	n.process = nil
	p.dead.Store(true)
	p.killsStreams()
	n.disks++
	disk := filepath.Join(n.sim.dir, fmt.Sprintf("%s-%d", cmp.Or(n.folder, n.name), n.disks))
	if err := os.CopyFS(disk, os.DirFS(n.disk)); err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	n.disk = disk
	if n.own != nil {
		n.sim.ownDisks[n.own.owner] = disk
	}
	n.sim.model.gone(p)
	for _, l := range n.wires() {
		if s := l.stream; s != nil {
			s.node.close()
			n.w.after(n.w.between(100*time.Microsecond, 50*time.Millisecond), func() { s.up.travel(s.server.close) })
		}
	}
	n.unfreeze()
	p.end()
}

// freeze stops the process as SIGSTOP does.
func (n *node) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.thaw = make(chan struct{})
	n.frozen.Store(true)
}

func (n *node) unfreeze() {
	n.mu.Lock()
	was := n.frozen.Swap(false)
	if was {
		close(n.thaw)
	}
	n.mu.Unlock()
	if was {
		n.answer()
	}
}

// wires are the ways that lead to the node.
func (n *node) wires() (found []*wire) {
	for _, srv := range n.sim.servers {
		for _, l := range srv.wires {
			if l.node == n {
				found = append(found, l)
			}
		}
	}
	return found
}

// answer lets through what waits for the node, as far as nothing else is in the way.
func (n *node) answer() {
	for _, l := range n.wires() {
		if s := l.stream; s != nil {
			s.down.healed()
			s.up.healed()
		}
	}
	waiting := n.unanswered
	n.unanswered = nil
	for _, again := range waiting {
		again()
	}
}

// heard is what the model knows of the process's contact: it sees what arrives.
func (p *process) heard(m any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	epoch := func(run string, e int64) bool {
		if e < p.epochs[run] {
			return false
		}
		if e > p.epochs[run] {
			p.risen[run] = time.Now()
		}
		p.epochs[run] = e
		return true
	}
	switch m := m.(type) {
	case protocol.AssignRun:
		epoch(m.RunID, m.Epoch)
	case protocol.RunEvent:
		epoch(m.Event.RunID, m.Epoch)
	case protocol.RunState:
		epoch(m.RunID, m.Epoch)
	case protocol.StatusAck:
		at, known := p.sent[m.Sequence]
		for _, run := range m.Runs {
			if epoch(run.RunID, run.Epoch) && known && at.After(p.contact[run.RunID]) {
				p.contact[run.RunID] = at
			}
		}
	case protocol.ArtifactAck:
		delete(p.announced, m.RunID+"/"+m.WorkerID+"/"+m.Name)
	}
}

// licensed is until when the process may issue load of a run, by the model.
func (p *process) licensed(run string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, known := p.contact[run]
	if !known {
		return time.Time{}
	}
	return at.Add(protocol.ContactTimeout)
}

// together is since when the process can have been told how a run stands, and the time of the last
// status that its owner has acknowledged.
func (p *process) together(run string) (since, touched time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since = p.risen[run]
	if p.joined.After(since) {
		since = p.joined
	}
	return since, p.contact[run]
}

// said is what the model knows of what the process says.
func (p *process) said(m any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m := m.(type) {
	case protocol.Status:
		p.sent[m.Sequence] = m.At
	case protocol.WorkReady:
		p.announce(m)
	case protocol.Hello:
		for _, part := range m.Parts {
			p.announce(part)
		}
	}
}

// announce needs mu.
func (p *process) announce(m protocol.WorkReady) {
	if p.announced[m.WorkID] != "" || p.dead.Load() {
		return
	}
	path := filepath.Join(p.disk, m.Artifact.RunID, m.Artifact.WorkerID, m.Artifact.Name)
	p.announced[m.WorkID] = path
	if sum, err := sumOf(path); err != nil || sum != m.Artifact.SHA256 {
		p.node.w.violated(6, "%s announces %s with another sum than its file has (%v)", p.node.name, m.WorkID, err)
	}
}

// unacknowledged are the parts that the process keeps for a server, nil when there is no process.
func (p *process) unacknowledged() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.announced))
}

// keeps checks that the parts that nobody has acknowledged are there.
func (p *process) keeps() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, path := range p.announced {
		if _, err := os.Stat(path); err != nil {
			p.node.w.violated(6, "%s has lost %s, which nobody has acknowledged: %v", p.node.name, id, err)
		}
	}
}

// part opens a part for the server, sometimes damaged.
func (l *wire) part(m protocol.WorkReady) (io.ReadCloser, error) {
	p := l.node.process
	if p == nil || l.cut() || l.node.frozen.Load() || l.srv.dead.Load() {
		return nil, errors.New("reading the part: the node does not answer")
	}
	f, err := p.worker.Part(m.WorkID)
	if err != nil {
		return nil, err
	}
	if l.node.sim.calm.Load() || l.node.own != nil || !l.w.oneIn(150) {
		return f, nil
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	at := l.w.chance.IntN(len(b))
	if l.w.oneIn(2) {
		b[at] ^= 1 << l.w.chance.IntN(8)
	} else {
		b = b[:at]
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// chanceOf is chance that belongs to a name, so that it does not depend on who asks first.
func (s *simulation) chanceOf(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

// open implements worker.OpenLoad: connecting takes a while, and fails now and then.
func (p *process) open(ctx context.Context, cfg load.Config, connections int, _ func(int, int)) (worker.Load, error) {
	l := newLoad(p, cfg, connections)
	wait := time.NewTimer(time.Duration(l.chance.Int64N(int64(900 * time.Millisecond))))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if !p.node.sim.calm.Load() && l.chance.IntN(60) == 0 {
		return nil, &engine.Error{Code: engine.CodeUnavailable, Message: "The target refuses connections."}
	}
	p.node.sim.model.opened(l)
	return l, nil
}

// What a run worker needs besides its load.
type (
	host     struct{ plugin.Host }
	workload struct{ plugin.Workload }
	adapter  struct{ plugin.Adapter }
	stub     struct{ plugin.Stream }
	driver   struct{ target.Driver }
	database struct {
		target.Database
		run, worker string
	}
)

func (host) Workload(context.Context, string) (plugin.Workload, error) { return workload{}, nil }

func (host) Adapter(context.Context, string) (plugin.Adapter, error) { return adapter{}, nil }

func (adapter) Info() plugin.Info  { return plugin.Info{} }
func (workload) Info() plugin.Info { return plugin.Info{} }

func (workload) Tables(context.Context, json.RawMessage) ([]plugin.LogicalTable, error) {
	return nil, nil
}

func (workload) Open(context.Context, plugin.OpenRequest, []engine.Statement) (plugin.Stream, error) {
	return stub{}, nil
}
func (stub) Close() error   { return nil }
func (driver) Name() string { return "postgres" }

func (driver) Open(cfg target.Config) (target.Database, error) {
	return database{run: cfg.RunID, worker: cfg.WorkerID}, nil
}
func (database) Close() error { return nil }
