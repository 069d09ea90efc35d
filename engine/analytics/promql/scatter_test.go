package promql_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/loadstone-db/loadstone/engine"
	analyticspromql "github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestNodesAnswerAsOneEngineWould: leaves are evaluated on nodes and nowhere else (the first of the seed's invariants),
// and the rest over what they came to by the unchanged engine, matched at the same instants (the second, the fifth and
// the sixth): expressions from a generator come to what one engine with all series says.
func TestNodesAnswerAsOneEngineWould(t *testing.T) {
	c := newCluster(t, 6, protocol.OwnNode, "node-a", "node-b")
	busy := map[string]int{}
	points := 0
	for seed := range 40 {
		text := promqltest.NewGenerator(uint64(seed)).Expression()
		step := []time.Duration{time.Second, 5 * time.Second, 13 * time.Second}[seed%3]
		a, err := c.ours.Range(t.Context(), text, start, end, step)
		b, err2 := c.theirs.NewRangeQuery(t.Context(), c.sets, nil, text, start, end, step)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("seed %d, %s: %v and %v", seed, text, err, err2)
		}
		if err != nil {
			continue
		}
		x, y := a.Exec(t.Context()), b.Exec(t.Context())
		if what := promqltest.Diff(x, y); what != "" {
			t.Errorf("seed %d: %s\n%s", seed, text, what)
		}
		if x.Err == nil && len(a.Leaves()) > 0 && len(a.Stats()) == 0 && points > 0 {
			if m, ok := y.Value.(promql.Matrix); ok && m.TotalSamples() > 1000 {
				t.Errorf("seed %d: %s has %d leaves, and nothing of it was done by a node", seed, text, len(a.Leaves()))
			}
		}
		for _, p := range a.Stats() {
			busy[p.NodeID]++
			if p.Attempt != 1 || !p.Preferred || p.Bytes == 0 || p.Segments != p.Hits+p.DiskHits+p.Fetched {
				t.Errorf("the piece %+v", p)
			}
		}
		if m, ok := y.Value.(promql.Matrix); ok {
			points += m.TotalSamples()
		}
		a.Close()
		b.Close()
	}
	if len(busy) < 2 || points < 1000 {
		t.Errorf("the pieces were done by %v, and came to %d points", busy, points)
	}
	c.quiet(time.Second)
}

// TestWindowsAreNeverDivided: each work is of a leaf's whole grid, and each segment of a leaf is in one work (the third
// invariant); there is a work for each leaf that has segments, and nothing else (the first).
func TestWindowsAreNeverDivided(t *testing.T) {
	c := newCluster(t, 8, "node-a")
	q, r := c.ask(t.Context(),
		`sum(rate(loadstone_operations_total[30s])) / sum(max_over_time(loadstone_rows_total[20s]))`)
	if r.Err != nil || len(q.Leaves()) != 2 {
		t.Fatalf("%v, %d leaves", r.Err, len(q.Leaves()))
	}
	defer q.Close()
	seen := []map[string]bool{{}, {}}
	for _, w := range c.spy.works {
		var task analyticspromql.Task
		var segments []analyticspromql.Segment
		if err := errors.Join(json.Unmarshal(w.Task, &task), json.Unmarshal(w.Segments, &segments)); err != nil {
			t.Fatal(err)
		}
		i := int(w.LeafID[0] - '0')
		if l := q.Leaves()[i]; task.Grid != l.Grid || task.Expr != l.Expr {
			t.Errorf("a work evaluates %+v of the leaf %+v", task, l)
		}
		for _, s := range segments {
			if seen[i][s.RunID] {
				t.Errorf("the segment of %s is in two works of one leaf", s.RunID)
			}
			seen[i][s.RunID] = true
		}
	}
	if len(seen[0]) != 8 || len(seen[1]) != 8 {
		t.Errorf("the works have %d and %d of 8 segments", len(seen[0]), len(seen[1]))
	}
}

// TestAffinity: the same node reads a segment in each query, and from its memory from the second on.
func TestAffinity(t *testing.T) {
	c := newCluster(t, 12, "node-a", "node-b", "node-c")
	where := map[string]string{}
	for round := range 4 {
		q, r := c.ask(t.Context(), sumByRun)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, p := range q.Stats() {
			if p.Attempt > 1 {
				t.Logf("%s was late on a busy machine", p.WorkID)
				continue
			}
			before := where[p.WorkID]
			if before != "" && before != p.NodeID {
				t.Errorf("%s was done by %s, and then by %s", p.WorkID, before, p.NodeID)
			}
			where[p.WorkID] = p.NodeID
			if round == 0 && p.Fetched != p.Segments || before != "" && p.Hits != p.Segments {
				t.Errorf("round %d: %+v", round, p)
			}
		}
		q.Close()
	}
	for _, m := range c.nodes {
		if len(m.files("segment-")) == 0 {
			t.Errorf("%s has no segment", m.id)
		}
	}
}

// limit is how much longer a query may take on a machine that has much else to do; figures are in docs/performance.md.
const limit = 5 * time.Second

// during asks while a node is held in the middle of its work; then something happens, and the answer is to be the same.
func during(t *testing.T, limit time.Duration, happens func(c *cluster, m *member, let func())) *cluster {
	t.Helper()
	c := newCluster(t, 12, "node-a", "node-b")
	m := c.nodes[0]
	let := m.holding()
	defer let()
	type done struct {
		r  *promql.Result
		at time.Time
	}
	answered := make(chan done, 1)
	go func() {
		_, r := c.ask(context.Background(), sumByRun)
		answered <- done{r, time.Now()}
	}()
	<-m.held
	at := time.Now()
	happens(c, m, let)
	d := <-answered
	if d.r.Err != nil {
		t.Fatal(d.r.Err)
	}
	c.same(sumByRun, d.r)
	took := d.at.Sub(at)
	if took > limit {
		t.Errorf("it took %v more, and %v at most are expected", took, limit)
	}
	t.Logf("%v more", took)
	return c
}

// TestANodeThatIsKilled: what it had is done by another node at once.
func TestANodeThatIsKilled(t *testing.T) {
	during(t, limit, func(_ *cluster, m *member, let func()) {
		go func() { time.Sleep(100 * time.Millisecond); let() }() // its goroutines end with it
		m.stop()
	})
}

// TestANodeThatIsSlow: another one does its work, too, and what the first says later changes nothing.
func TestANodeThatIsSlow(t *testing.T) {
	c := during(t, analyticspromql.HedgeAfter+limit, func(*cluster, *member, func()) {})
	c.quiet(2 * time.Second)
}

// TestANodeThatDrains: it ends what it has accepted, and is given nothing more.
func TestANodeThatDrains(t *testing.T) {
	c := during(t, limit, func(c *cluster, m *member, let func()) { m.node.Drain(); let() })
	c.waitFor("the drained node is out of rotation", 5*time.Second, func() bool { return c.fleet.QueryNodes() == 1 })
	q, r := c.ask(t.Context(), sumByRun)
	c.same(sumByRun, r)
	for _, p := range q.Stats() {
		if p.NodeID != "node-b" {
			t.Errorf("%+v was done by the node that drains", p)
		}
	}
	q.Close()
}

// TestAnArtifactThatIsBrokenOrGone: it is made again, and the answer is the same.
func TestAnArtifactThatIsBrokenOrGone(t *testing.T) {
	for name, change := range map[string]func(string){
		"a flipped bit": func(path string) {
			b, err := os.ReadFile(path)
			if err == nil && len(b) > 0 { // another may be being written
				b[len(b)/2] ^= 4
				_ = os.WriteFile(path, b, 0o600)
			}
		},
		"a short one": func(path string) { _ = os.Truncate(path, 10) },
		"none":        func(path string) { _ = os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 6, "node-a")
			times := 0
			changed := map[string]bool{} // a bit that is flipped twice is as it was
			c.spy.announced = func() {
				if times++; times <= 2 {
					for _, path := range c.nodes[0].files("leaf-") {
						if !changed[path] {
							changed[path] = true
							change(path)
						}
					}
				}
			}
			q, r := c.ask(t.Context(), sumByRun)
			defer q.Close()
			c.same(sumByRun, r)
			again := 0
			for _, p := range q.Stats() {
				if p.Attempt > 1 {
					again++
				}
			}
			if again == 0 {
				t.Error("nothing was done again")
			}
		})
	}
}

// TestANodeThatHandsNothingOut: it says what its works came to, and stands still when that is fetched. Another one does
// the works again, whose answers do not wait for the first.
func TestANodeThatHandsNothingOut(t *testing.T) {
	var mu sync.Mutex
	// Opening a pipe to which nobody writes does not return. One with a writer would be opened, and refused at once: it
	// has no size. Each has a name outside of the node, which removes what it is not asked for any more, and beside it:
	// the folder of a test may be on another disk.
	pipes, writers := map[string]string{}, []*os.File{}
	apart, err := os.MkdirTemp("", "pipes")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the node has ended, which may open one until then
		for _, f := range writers {
			_ = f.Close()
		}
		_ = os.RemoveAll(apart)
	})
	c := newCluster(t, 40, "node-a", "node-b")
	c.spy.announced = func() {
		mu.Lock()
		defer mu.Unlock()
		for _, path := range c.nodes[0].files("leaf-") {
			if pipes[path] != "" {
				continue
			}
			pipe := filepath.Join(apart, filepath.Base(path))
			if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Link(pipe, path+".pipe"),
				os.Rename(path+".pipe", path)); err != nil {
				t.Error(err)
			}
			pipes[path] = pipe
		}
	}
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for _, pipe := range pipes {
			f, err := os.OpenFile(pipe, os.O_RDWR, 0)
			if err != nil {
				t.Error(err)
			}
			writers = append(writers, f) // its readers end
		}
	}()
	begin := time.Now()
	q, r := c.ask(t.Context(), sumByRun)
	defer q.Close()
	took := time.Since(begin)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	c.same(sumByRun, r)
	if len(pipes) <= analyticspromql.MaxConcurrent {
		t.Fatalf("%d answers were held, and more than %d are to be", len(pipes), analyticspromql.MaxConcurrent)
	}
	if len(c.spy.refused) > 0 {
		t.Errorf("it was not held but refused: %s", c.spy.refused)
	}
	if took > analyticspromql.HedgeAfter+limit {
		t.Errorf("it took %v", took)
	}
	t.Logf("%d answers were held; it took %v", len(pipes), took)
}

// TestACancelledQueryEndsOnItsNodes: at once, and 100 of them leave nothing: no goroutine (the test's main holds that
// at its end), no file, nothing on the fleet. 1 000 with LOADSTONE_SOAK.
func TestACancelledQueryEndsOnItsNodes(t *testing.T) {
	c := newCluster(t, 6, protocol.OwnNode, "node-a", "node-b")
	q, r := c.ask(t.Context(), sumByRun)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	q.Close()
	c.quiet(time.Second)
	count := 100
	if os.Getenv("LOADSTONE_SOAK") != "" {
		count = 1000
	}
	before := runtime.NumGoroutine()
	for i := range count {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i%40)*100*time.Microsecond, cancel)
		q, r := c.ask(ctx, sumByRun)
		if r.Err != nil && ctx.Err() == nil {
			t.Fatal(r.Err)
		}
		q.Close()
		cancel()
	}
	c.quiet(limit)
	c.waitFor("goroutines end", limit, func() bool { return runtime.NumGoroutine() <= before+5 })
	q, r = c.ask(t.Context(), sumByRun)
	defer q.Close()
	c.same(sumByRun, r)
	c.waitFor("what nodes made goes", limit, func() bool {
		left := 0
		for _, m := range c.nodes {
			left += len(m.files("leaf-"))
		}
		return left == 0
	})
}

// TestAServerThatIsGone: its nodes end what they do for it at once.
func TestAServerThatIsGone(t *testing.T) {
	c := newCluster(t, 6, "node-a", "node-b")
	let := c.nodes[0].holding()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() { _, r := c.ask(ctx, sumByRun); answered <- r.Err }()
	<-c.nodes[0].held
	go func() { time.Sleep(50 * time.Millisecond); let() }() // a segment that is being read is read to its end
	c.end()
	c.quiet(time.Second)
	cancel()
	if err := <-answered; err == nil {
		t.Error("a query was answered without a server")
	}
	for _, m := range c.nodes {
		if left := m.files("leaf-"); len(left) > 0 {
			t.Errorf("%s keeps %v", m.id, left)
		}
	}
}

// TestTheOnlyNodeDrains: what it has accepted it ends, however long that takes.
func TestTheOnlyNodeDrains(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 6, "node-a")
	m := c.nodes[0]
	let := m.holding()
	defer let()
	answered := make(chan *promql.Result, 1)
	go func() { _, r := c.ask(context.Background(), sumByRun); answered <- r }()
	<-m.held
	c.waitFor("the node has all works", 5*time.Second, func() bool {
		c.spy.mu.Lock()
		defer c.spy.mu.Unlock()
		return len(c.spy.works) > 0 && m.answers.Count() == len(c.spy.works)
	})
	m.node.Drain()
	c.waitFor("the node is out of rotation", 5*time.Second, func() bool { return c.fleet.QueryNodes() == 0 })
	time.Sleep(analyticspromql.NoNodeTimeout + 5*analyticspromql.PollInterval)
	let()
	c.same(sumByRun, <-answered)
}

// TestRunsThatGoOn: a server without a node of its own answers over them, too, beside its nodes.
func TestRunsThatGoOn(t *testing.T) {
	c := newCluster(t, 6, "node-a")
	for i := range 3 {
		c.catalog[2*i].Segment.Live = true
	}
	c.answersFrom(c.catalog)
	q, r := c.ask(t.Context(), sumByRun)
	defer q.Close()
	c.same(sumByRun, r)
	segments := map[string]int{}
	for _, p := range q.Stats() {
		segments[p.NodeID] += p.Segments
		if p.Attempt != 1 || !p.Preferred || p.Bytes == 0 || p.NodeID == protocol.OwnNode && p.TransferMs != 0 {
			t.Errorf("the piece %+v", p)
		}
	}
	if segments[protocol.OwnNode] != 3 || segments["node-a"] != 3 {
		t.Errorf("segments by node: %v", segments)
	}
	// What cannot be read is said at once.
	c.catalog[0].Content = nil
	c.answersFrom(c.catalog)
	if _, r = c.ask(t.Context(), sumByRun); !engine.HasCode(r.Err, engine.CodeUnavailable) {
		t.Errorf("a run whose seconds cannot be read: %v", r.Err)
	}
}

// TestAQueryThatComesToTooMuch: it is refused by what its parts are said to come to, before they are fetched.
func TestAQueryThatComesToTooMuch(t *testing.T) {
	c := newCluster(t, 12, "node-a")
	for _, size := range []int64{analyticspromql.MaxResultBytes + 1, analyticspromql.MaxResultBytes} { // one of them, and all together
		c.spy.size = func(int64) int64 { return size }
		if _, r := c.ask(t.Context(), sumByRun); !engine.HasCode(r.Err, engine.CodeTooLarge) {
			t.Errorf("parts of %d bytes: %v", size, r.Err)
		}
	}
	c.spy.size = nil
	_, r := c.ask(t.Context(), sumByRun)
	c.same(sumByRun, r)
}

// TestWithoutNodes: a query that nobody takes says so, after a moment.
func TestWithoutNodes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "node-a")
	c.nodes[0].stop()
	_, r := c.ask(t.Context(), sumByRun)
	if !engine.HasCode(r.Err, engine.CodeUnavailable) || !strings.Contains(r.Err.Error(), "No node") {
		t.Errorf("%v", r.Err)
	}
}

// TestWhatFailsOnANode: an error of the expression is the query's at once; one of reading is tried elsewhere.
func TestWhatFailsOnANode(t *testing.T) {
	c := newCluster(t, 4, "node-a", "node-b")
	_, r := c.ask(t.Context(), `label_replace(loadstone_operations_total{run="r-3"}, "x", "$1", "kind", "(") `)
	if r.Err == nil {
		t.Error("no error")
	}
	damaged := c.catalog[0]
	damaged.Segment.SHA256 = strings.Repeat("0", 64)
	c.answersFrom(promqltest.Catalog{damaged, c.catalog[1]})
	begin := time.Now()
	if _, r = c.ask(t.Context(), sumByRun); !engine.HasCode(r.Err, engine.CodeUnavailable) {
		t.Errorf("a segment that is not what it should be: %v", r.Err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
