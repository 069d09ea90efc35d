package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// cluster is a Runner to nodes of this process, which can be cut off.
type cluster struct {
	mu    sync.Mutex
	hosts map[string]*fragment.Host
	feeds map[string]*pipes
	links map[string][]fragment.Link
	away  map[string]bool
	// left are nodes whose stream has ended, held those of which nothing arrives that is on its way.
	left, held map[string]bool
	// drains are nodes that drain, bears those with load.
	drains, bears map[string]bool
	// removed are nodes that an operator has taken out.
	removed map[string]bool
	done    sync.WaitGroup
}

func newCluster(t *testing.T, hosts ...string) *cluster {
	c := &cluster{
		hosts:  map[string]*fragment.Host{},
		feeds:  map[string]*pipes{},
		links:  map[string][]fragment.Link{},
		away:   map[string]bool{},
		left:   map[string]bool{},
		held:   map[string]bool{},
		drains: map[string]bool{},
		bears:  map[string]bool{},

		removed: map[string]bool{},
	}
	for _, h := range hosts {
		c.feeds[h] = &pipes{}
		c.hosts[h] = fragment.NewHost(c.feeds[h], memory.Limits{}, zerolog.Nop())
	}
	t.Cleanup(func() {
		for _, h := range c.hosts {
			h.Close("the test is over")
		}
		c.done.Wait()
	})
	return c
}

var errAway = errors.New("the node is cut off")

func (c *cluster) host(name string) (*fragment.Host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away[name] || c.hosts[name] == nil {
		return nil, errAway
	}
	return c.hosts[name], nil
}

// cut has a node not be reached any more; what it runs goes on, as long as nobody tells it.
func (c *cluster) cut(name string, away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away[name] = away
}

func (c *cluster) Start(_ context.Context, host string, s fragment.Spec) (fragment.Link, error) {
	h, err := c.host(host)
	if err != nil {
		return nil, err
	}
	text, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	owner, worker := fragment.Pipe()
	c.done.Go(func() { h.Run(context.Background(), s.Key, text, worker); _ = worker.Close() })
	return &cutLink{owner, c, host}, nil
}

// cutLink is lost while its node is cut off, and its node does not know.
type cutLink struct {
	fragment.Link
	of   *cluster
	host string
}

func (l *cutLink) lost() bool { _, err := l.of.host(l.host); return err != nil }

func (l *cutLink) Send(ctx context.Context, w fragment.Message) error {
	if l.lost() {
		return fragment.ErrLost
	}
	return l.Link.Send(ctx, w)
}

func (l *cutLink) Receive(ctx context.Context) (fragment.Message, error) {
	for {
		waiting, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		w, err := l.Link.Receive(waiting)
		cancel()
		for l.of.holds(l.host) && !l.lost() && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		switch {
		case l.lost():
			return fragment.Message{}, fragment.ErrLost
		case err == nil || ctx.Err() != nil || errors.Is(err, fragment.ErrLost):
			return w, err
		}
	}
}

func (l *cutLink) Close() error {
	if l.lost() {
		return nil
	}
	return l.Link.Close()
}

func (c *cluster) Stop(ctx context.Context, host string, k fragment.Key) error {
	h, err := c.host(host)
	if err != nil {
		return err
	}
	return h.Stop(ctx, k)
}

func (c *cluster) Status(_ context.Context, host string) ([]fragment.Key, error) {
	h, err := c.host(host)
	if err != nil {
		return nil, err
	}
	return h.List("", 0).Running, nil
}

// Workers are the nodes, as the cluster sees them.
func (c *cluster) Workers() (list []catalog.Worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h := range c.hosts {
		w := catalog.Worker{Host: h, Slots: 4, State: catalog.Active}
		if c.drains[h] {
			w.State = catalog.Draining
		}
		if c.away[h] || c.left[h] {
			w.State = catalog.Unreachable
		}
		list = append(list, w)
	}
	return list
}

// leaves ends the stream of a node, while what it has sent on its links is on its way as long as it is held.
func (c *cluster) leaves(name string, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left[name], c.held[name] = true, held
}

// hold has nothing arrive of what a node sends, though it is there.
func (c *cluster) hold(name string, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[name] = held
}

// holds reports whether what a node has sent does not arrive.
func (c *cluster) holds(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[name]
}

func (c *cluster) HasLoad(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bears[host]
}

func (c *cluster) Removed(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removed[host]
}

// remove has an operator take a node out.
func (c *cluster) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away[name], c.removed[name] = true, true
}

// drain has a node drain, or not any more, with load or without.
func (c *cluster) drain(name string, drains, bears bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drains[name], c.bears[name] = drains, bears
}

func beginOver(t *testing.T, k *catalogtest.Store, p *pipes, nodes *cluster) *coordinator.Coordinator {
	t.Helper()
	c, err := coordinator.Open(t.Context(), coordinator.Options{Store: k, Connectors: p, Owner: "one", Runner: nodes,
		Cluster: nodes, Sources: system.Sources, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// overNodes is a query whose source is read on two nodes, and written at the server.
const overNodes = "CREATE LOGICAL SOURCE e(timestamp TIMESTAMP, runId TEXT, event TEXT, status TEXT, phase TEXT, " +
	"reason TEXT);" +
	"CREATE PHYSICAL SOURCE FOR e TYPE SYSTEM ON a SET('run_events' AS SOURCE.STREAM);" +
	"CREATE PHYSICAL SOURCE FOR e TYPE SYSTEM ON b SET('run_events' AS SOURCE.STREAM);" +
	"CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId, event FROM e WHERE event <> 'no' INTO s"

func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 20 s: " + what)
		}
	}
}

// running is how many fragments run on nodes.
func (c *cluster) running() (n int) {
	for _, h := range c.hosts {
		n += h.Len()
	}
	return n
}

// TestFragmentsRunOnNodes: rows of both reach the sink, a slot is taken on each, and a drop leaves nothing.
func TestFragmentsRunOnNodes(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c := beginOver(t, k, p, nodes)
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes)
	eventually(t, k, "q", catalog.Running)
	all, err := c.Contents(t.Context())
	if used := catalog.FromContents(
		all,
	); err != nil || used.Used("a") != 1 || used.Used("b") != 1 ||
		used.Used("server") != 1 {
		t.Errorf("%+v %v", all.Queries, err)
	}
	tell(nodes.feeds["a"], "START")
	tell(nodes.feeds["a"], "no")
	tell(nodes.feeds["b"], "STOP")
	within(t, "both rows", func() bool {
		_, _, rows := p.counts()
		return len(rows) == 2 && strings.Contains(strings.Join(rows, " "), "r,STOP")
	})
	within(t, "what each fragment did", func() bool {
		l := c.Live()[1]
		a, s := l.Fragments["a"], l.Fragments["server"]
		return l.In == 3 && l.Out == 2 && a.Out == 1 && a.In == 2 && s.In == 2
	})
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", "")
	if n := nodes.running(); n != 0 {
		t.Errorf("%d fragments run on", n)
	}
}

// TestAllFragmentsOrNone: while one of the nodes cannot open its source nothing is read on the other one; dropped then,
// the query is cancelled.
func TestAllFragmentsOrNone(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{late: make(chan struct{})}, newCluster(t, "a", "b")
	c := beginOver(t, k, p, nodes)
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes)
	within(t, "the heads are ready", func() bool { return nodes.running() == 2 })
	tell(nodes.feeds["a"], "START")
	time.Sleep(100 * time.Millisecond)
	if q := eventually(t, k, "q", catalog.Deploying); q.State == catalog.Running {
		t.Error("it runs without its sink")
	}
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", "")
	if _, open, rows := p.counts(); nodes.running() != 0 || open != 0 || len(rows) > 0 {
		t.Errorf("%d fragments and %d sinks, rows %q", nodes.running(), open, rows)
	}
}

// TestANodeThatIsCutOff: the others end, the query waits, and is one again when the node is back; the fragment that it
// ran meanwhile, without anybody knowing, does not give a row.
func TestANodeThatIsCutOff(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c := beginOver(t, k, p, nodes)
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes)
	eventually(t, k, "q", catalog.Running)
	nodes.cut("b", true)
	q := eventually(t, k, "q", catalog.Deploying)
	within(t, "the others have ended", func() bool {
		_, open, _ := p.counts()
		return open == 0 && nodes.hosts["a"].Len() == 0
	})
	if nodes.hosts["b"].Len() != 1 {
		t.Error("the node that is cut off knows that it is")
	}
	within(t, "it says why", func() bool {
		q = eventually(t, k, "q", catalog.Deploying)
		return strings.Contains(q.Failure, " b ")
	})
	nodes.cut("b", false)
	eventually(t, k, "q", catalog.Running)
	tell(nodes.feeds["b"], "BACK")
	within(t, "its row, once", func() bool { _, _, rows := p.counts(); return len(rows) == 1 })
	// Dropped while the node is away, its name is taken until that says that nothing runs.
	nodes.cut("b", true)
	eventually(t, k, "q", catalog.Deploying)
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", catalog.StoppingStuck)
	nodes.cut("b", false)
	eventually(t, k, "q", "")
	if n := nodes.running(); n != 0 {
		t.Errorf("%d fragments run on", n)
	}
}

// TestARemovedNodeReleasesItsQueries: one that was dropped is gone, one that was wanted has FAILED and says why; then
// sources, sinks, names and the worker itself can be dropped, and the worker does not come back by itself.
func TestARemovedNodeReleasesItsQueries(t *testing.T) {
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	var ahead atomic.Int64
	c, err := coordinator.Open(t.Context(), coordinator.Options{Store: k, Connectors: p, Owner: "one", Runner: nodes,
		Cluster: nodes, Sources: system.Sources, Lease: 2 * time.Second, ReleaseAfter: 1000 * time.Hour,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes)
	execute(t, c, strings.NewReplacer("SINK s ", "SINK s2 ", "QUERY q ", "QUERY q2 ", "INTO s", "INTO s2").
		Replace(overNodes[strings.Index(overNodes, "CREATE SINK"):]))
	eventually(t, k, "q", catalog.Running)
	eventually(t, k, "q2", catalog.Running)
	nodes.cut("b", true)
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", catalog.StoppingStuck)
	eventually(t, k, "q2", catalog.Deploying)
	later := func(name string, want catalog.State) (q catalog.Query) { // as seconds pass
		t.Helper()
		within(t, name+" is "+string(want), func() bool {
			ahead.Add(int64(time.Second))
			all, err := c.Contents(t.Context())
			i := slices.IndexFunc(all.Queries, func(q catalog.Query) bool { return q.Name == name })
			if q = (catalog.Query{}); i >= 0 {
				q = all.Queries[i]
			}
			return err == nil && q.State == want
		})
		return q
	}
	for range 2 { // it is lost, and may come back
		time.Sleep(600 * time.Millisecond)
		ahead.Add(int64(time.Hour))
		eventually(t, k, "q", catalog.StoppingStuck)
		eventually(t, k, "q2", catalog.Deploying)
	}
	nodes.remove("b")
	later("q", "")
	if q := later("q2", catalog.Failed); !strings.Contains(q.Failure, "the worker b, ") ||
		!strings.Contains(q.Failure, "was removed") {
		t.Errorf("it says %q", q.Failure)
	}
	all, err := c.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	drops := "DROP QUERY q2; DROP SINK s; DROP SINK s2;"
	for _, p := range all.Physical {
		if p.Placement == "b" {
			drops += fmt.Sprintf("DROP PHYSICAL SOURCE %d;", p.ID)
		}
	}
	execute(t, c, drops+"DROP WORKER b")
	time.Sleep(200 * time.Millisecond)
	if all, err = c.Contents(t.Context()); err != nil || len(all.Workers) != 2 {
		t.Errorf("%d workers are there, %v", len(all.Workers), err)
	}
}

// TestZombies: a fragment that the catalog does not know, or knows in a later epoch, is stopped; one of this epoch is
// not.
func TestZombies(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c := beginOver(t, k, p, nodes)
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes)
	q := eventually(t, k, "q", catalog.Running)
	all, err := c.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q.ID, q.Epoch = 0, 7 // of a query that has gone
	s, err := fragment.Plan(all, q, 1)
	if err != nil {
		t.Fatal(err)
	}
	link, err := nodes.Start(t.Context(), "a", s.On("a").Spec)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := link.Receive(t.Context()); err != nil || w.Kind != fragment.Ready {
		t.Fatalf("%v %v", w.Kind, err)
	}
	w, err := link.Receive(t.Context())
	if err != nil || w.Kind != fragment.End {
		t.Fatalf("%v %v", w.Kind, err)
	}
	within(t, "two fragments are left", func() bool { return nodes.running() == 2 })
	if q := eventually(t, k, "q", catalog.Running); q.Fragments[0].Attempts != 1 {
		t.Errorf("%+v", q)
	}
}

// TestALaterFragmentEndsAnEarlierOne, and an earlier one is refused.
func TestALaterFragmentEndsAnEarlierOne(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c := beginOver(t, k, p, nodes)
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes)
	q := eventually(t, k, "q", catalog.Running)
	all, err := c.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q.Epoch--
	old, err := fragment.Plan(all, q, 1)
	if err != nil {
		t.Fatal(err)
	}
	link, err := nodes.Start(t.Context(), "a", old.On("a").Spec)
	if err != nil {
		t.Fatal(err)
	}
	w, err := link.Receive(t.Context())
	if err != nil || w.Kind != fragment.End {
		t.Fatalf("%v %v", w.Kind, err)
	}
	if e, err := fragment.ParseEnd(w); err != nil || !strings.Contains(e.Failure, "a later fragment") || e.Terminal {
		t.Errorf("%+v %v", e, err)
	}
	// Of another version: it plans otherwise.
	q.Epoch += 5
	bound, err := fragment.Plan(all, q, 1)
	if err != nil {
		t.Fatal(err)
	}
	other := bound.On("b").Spec
	other.QueryID, other.Query.ID, other.Shape = 99, 99, "another"
	if link, err = nodes.Start(t.Context(), "b", other); err != nil {
		t.Fatal(err)
	}
	if w, err = link.Receive(t.Context()); err != nil || w.Kind != fragment.End {
		t.Fatalf("%v %v", w.Kind, err)
	}
	e, err := fragment.ParseEnd(w)
	if err != nil || !strings.Contains(e.Failure, "plans this query otherwise") || !e.Terminal {
		t.Errorf("%+v %v", e, err)
	}
}

// TestAServerWithoutAWayToANode leaves its state to those that have one, and what runs there alone.
func TestAServerWithoutAWayToANode(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c := beginOver(t, k, p, nodes)
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes)
	eventually(t, k, "q", catalog.Running)
	other, err := coordinator.Open(t.Context(), coordinator.Options{Store: k, Connectors: &pipes{}, Owner: "two",
		Runner: newCluster(t), Cluster: newCluster(t), Sources: system.Sources,
		Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close(context.Background()) }()
	execute(t, other, "CREATE SINK more TYPE PRINT") // it looks
	time.Sleep(time.Second)
	all, err := c.Contents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range all.Workers {
		if w.State != catalog.Active {
			t.Errorf("%+v", w)
		}
	}
	if q := eventually(t, k, "q", catalog.Running); q.Fragments[0].Attempts != 1 || q.Owner != "one" {
		t.Errorf("%+v", q)
	}
}
