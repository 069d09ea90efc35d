package promql_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
	"github.com/loadstone-db/loadstone/engine/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nobody takes what nodes say of runs: there are none.
type nobody struct{}

func (nobody) Receive(string, nodes.Node, protocol.FromNode) bool { return false }
func (nobody) UnknownWorker(nodes.Node, protocol.WorkerState)     {}
func (nobody) OwnedRuns(bool) []protocol.OwnedRun                 { return nil }
func (nobody) PartQuarantined(protocol.QuarantinedPart)           {}

// cluster is a server with nodes behind gRPC and HTTP on loopback, and with one in its own process.
type cluster struct {
	*testing.T
	catalog promqltest.Catalog
	sets    series.Sets
	fleet   *nodes.Fleet
	nodes   []*member
	dialers []protocol.Dialer
	spy     *spy
	ours    *analyticspromql.Telemetry
	theirs  *promql.Engine
	end     func()
}

// member is a node of the cluster.
type member struct {
	id      string
	node    *worker.Node
	answers *analyticspromql.Executor
	dir     string
	stop    func()
	// hold is what reading a segment waits for, while it is not nil.
	mu    sync.Mutex
	hold  chan struct{}
	held  chan struct{}
	reads int
}

// read is a EvaluatorRead that can be held.
func (m *member) read(next analyticspromql.SegmentReader) analyticspromql.SegmentReader {
	return func(ctx context.Context, s analyticspromql.Segment) (*series.Set, int64, error) {
		m.mu.Lock()
		hold := m.hold
		m.reads++
		m.mu.Unlock()
		if hold != nil {
			select {
			case m.held <- struct{}{}:
			default:
			}
			<-hold
		}
		return next(ctx, s)
	}
}

// holding has the node's reads wait until let is called.
func (m *member) holding() (let func()) {
	hold := make(chan struct{})
	m.mu.Lock()
	m.hold = hold
	m.mu.Unlock()
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.hold = nil
		m.mu.Unlock()
		close(hold)
	})
}

// spy sees the work that is handed out.
type spy struct {
	*nodes.Fleet
	mu    sync.Mutex
	works []nodes.QueryWork
	// refused is why what was announced could not be fetched, each time.
	refused []string
	// announced is called when a node has announced what a work came to, before that is fetched; nil is not.
	announced func()
	// size changes how large the answers are said to be; nil does not.
	size func(int64) int64
}

// listening is an Asker whose announcements are seen.
type listening struct {
	nodes.QueryListener
	spy *spy
}

func (l listening) Ready(k protocol.WorkKey, p nodes.Part) {
	if l.spy.announced != nil {
		l.spy.announced()
	}
	if l.spy.size != nil {
		p.Artifact.SizeBytes = l.spy.size(p.Artifact.SizeBytes)
	}
	l.QueryListener.Ready(k, p)
}

func (s *spy) FetchFailed(k protocol.WorkKey, checksum, reason string, gone bool) {
	s.mu.Lock()
	s.refused = append(s.refused, reason)
	s.mu.Unlock()
	s.Fleet.FetchFailed(k, checksum, reason, gone)
}

func (s *spy) Query(id string, a nodes.QueryListener, works ...nodes.QueryWork) {
	s.mu.Lock()
	s.works = append(s.works, works...)
	s.mu.Unlock()
	s.Fleet.Query(id, listening{a, s}, works...)
}

// nodeContent is a catalog as nodes fetch from it.
type nodeContent struct{ promqltest.Catalog }

func (c nodeContent) Segment(ctx context.Context, runID, name string) (io.ReadCloser, int64, error) {
	return c.Content(ctx, runID, name)
}

func (nodeContent) ReadPlugin(context.Context, string) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

// newNode is a node whose segments come from servers, or from the catalog where it is the server's own.
func (c *cluster) newNode(id string) *member {
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		c.Fatal(err)
	}
	// What is on its way to a node that is stopped may come while its folder is removed.
	c.Cleanup(func() {
		for range 100 {
			if os.RemoveAll(dir) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	m := &member{id: id, dir: dir, held: make(chan struct{}, 100)}
	var cache *analyticspromql.Cache
	m.node = worker.NewNode(worker.Options{NodeID: id, Version: "test", SpoolDir: filepath.Join(m.dir, "spool"),
		Log: zerolog.Nop(), Queries: func(d worker.Disk) worker.Queries {
			cache = analyticspromql.NewCache(d, zerolog.Nop())
			read := cache.Read
			if id == protocol.OwnNode {
				cache, read = nil, c.catalog.Read
			}
			m.answers = analyticspromql.NewExecutor(
				analyticspromql.ExecutorOptions{NodeID: id, Cache: cache, Disk: d, Log: zerolog.Nop(),
					Evaluate: analyticspromql.NewEvaluator(m.read(read), analyticspromql.DefaultOptions(), 256<<20)},
			)
			return m.answers
		}})
	var l protocol.Listener
	var closing func()
	if id == protocol.OwnNode {
		l, closing = protocol.NewMemory(), func() {}
	} else {
		remote, err := rpc.Listen(c.Context(), rpc.ListenOptions{Address: "127.0.0.1:0", Log: zerolog.Nop(),
			Version: "test", Segment: cache.Put})
		if err != nil {
			c.Fatal(err)
		}
		l, closing = remote, func() { _ = remote.Close() }
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = m.node.Listen(ctx, l) }()
	m.stop = sync.OnceFunc(func() { closing(); cancel(); <-served })
	c.nodes = append(c.nodes, m)
	c.Cleanup(m.stop)
	var d protocol.Dialer
	if mem, ok := l.(*protocol.Memory); ok {
		d = mem
	} else {
		dialer, err := rpc.NewDialer(rpc.DialOptions{Address: l.(*rpc.Listener).Addr().String(),
			Process: "server", Version: "test"})
		if err != nil {
			c.Fatal(err)
		}
		c.Cleanup(func() { _ = dialer.Close() })
		d = dialer
	}
	c.dialers = append(c.dialers, d)
	return m
}

func newCluster(t *testing.T, runs int, ids ...string) *cluster {
	t.Helper()
	made, err := promqltest.Runs(runs)
	if err != nil {
		t.Fatal(err)
	}
	return newClusterOf(t, made, ids...)
}

func newClusterOf(t *testing.T, made []promqltest.Run, ids ...string) *cluster {
	t.Helper()
	c := &cluster{T: t, catalog: made}
	for _, r := range made {
		f, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		set, err := series.Read(f, r.Segment.Labels)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		c.sets = append(c.sets, set)
	}
	for _, id := range ids {
		c.newNode(id)
	}
	c.fleet = nodes.New(nodes.Options{Log: zerolog.Nop(), Version: "test", Dialers: c.dialers,
		Content: nodeContent{c.catalog}})
	life, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	c.end = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(c.end)
	if err := c.fleet.Open(t.Context(), life, func(f func()) { all.Go(f) }, nobody{}); err != nil {
		t.Fatal(err)
	}
	o := analyticspromql.DefaultOptions()
	c.spy = &spy{Fleet: c.fleet}
	c.answersFrom(c.catalog)
	c.theirs = o.Engine(5 * time.Minute)
	return c
}

// answersFrom has queries answered over the segments of a catalog.
func (c *cluster) answersFrom(catalog promqltest.Catalog) {
	o := analyticspromql.DefaultOptions()
	own := analyticspromql.NewEvaluator(catalog.Read, o, 64<<20)
	c.ours = analyticspromql.NewTelemetry(
		catalog,
		analyticspromql.Dispatcher{Catalog: catalog, Nodes: c.spy, Own: own, Log: zerolog.Nop()},
		own,
		o,
	)
}

const sumByRun = `sum by (run, kind) (rate(loadstone_operations_total[10s]))`

var (
	start = promqltest.Noon.Add(-5 * time.Second)
	end   = promqltest.Noon.Add(90 * time.Second)
)

// ask evaluates an expression over a range on the nodes.
func (c *cluster) ask(ctx context.Context, text string) (*analyticspromql.Query, *promql.Result) {
	c.Helper()
	q, err := c.ours.Range(ctx, text, start, end, time.Second)
	if err != nil {
		c.Fatal(err)
	}
	return q, q.Exec(ctx)
}

// same holds that a result is what one engine with all series comes to.
func (c *cluster) same(text string, r *promql.Result) {
	c.Helper()
	q, err := c.theirs.NewRangeQuery(c.Context(), c.sets, nil, text, start, end, time.Second)
	if err != nil {
		c.Fatal(err)
	}
	defer q.Close()
	want := q.Exec(c.Context())
	if what := promqltest.Diff(r, want); what != "" {
		c.Errorf("%s: %s", text, what)
	}
	if m, ok := want.Value.(promql.Matrix); !ok || m.TotalSamples() < 50 {
		c.Errorf("%s says too little", text)
	}
}

// waitFor waits until something is so.
func (c *cluster) waitFor(what string, limit time.Duration, is func() bool) {
	c.Helper()
	for begin := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > limit {
			c.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// quiet holds that nodes do nothing any more, and keep nothing of queries.
func (c *cluster) quiet(limit time.Duration) {
	c.Helper()
	for _, m := range c.nodes {
		c.waitFor("the node "+m.id+" ends its work", limit, func() bool { return m.answers.Count() == 0 })
	}
}

// files are what lies on a node's disk, by the beginning of its names.
func (m *member) files(prefix string) (all []string) {
	entries, _ := os.ReadDir(filepath.Join(m.dir, "spool"))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			all = append(all, filepath.Join(m.dir, "spool", e.Name()))
		}
	}
	return all
}
