package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// blackholeProxy is a way to a node that can swallow all that is sent, while its connections stand.
type blackholeProxy struct {
	ln         net.Listener
	conns      sync.WaitGroup
	mu         sync.Mutex
	blackholed chan struct{} // closed when it lets through again; nil while it does
}

func newBlackholeProxy(t *testing.T, to string) *blackholeProxy {
	t.Helper()
	w := &blackholeProxy{}
	var err error
	if w.ln, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	w.conns.Go(func() {
		for {
			client, err := w.ln.Accept()
			if err != nil {
				return
			}
			node, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			w.conns.Go(func() { <-ended; _ = client.Close(); _ = node.Close() })
			w.conns.Go(func() { w.pass(client, node) })
			w.conns.Go(func() { w.pass(node, client) })
		}
	})
	t.Cleanup(func() { w.swallow(false); _ = w.ln.Close(); close(ended); w.conns.Wait() })
	return w
}

func (w *blackholeProxy) pass(from, to net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		w.mu.Lock()
		hole := w.blackholed
		w.mu.Unlock()
		if hole != nil {
			<-hole // what the kernel took meanwhile arrives late, as after a cut
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
}

// swallow has nothing arrive any more, or all of it.
func (w *blackholeProxy) swallow(is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if is == (w.blackholed != nil) {
		return
	}
	if is {
		w.blackholed = make(chan struct{})
		return
	}
	close(w.blackholed)
	w.blackholed = nil
}

// promCluster is a server with nodes, by TLS with certificates of the server's own authority, over runs that have
// ended.
type promCluster struct {
	*testing.T
	served   *clitest.Process
	caller   clitest.Caller
	nodes    []*clitest.RemoteNode
	wires    []*blackholeProxy
	expected string
	// load are those that answered last.
	load map[string]bool
}

func newPromCluster(t *testing.T) *promCluster {
	t.Helper()
	a := &promCluster{T: t}
	load := pgtest.Start(t).NewDatabase(t)
	debug := []string{"--log-level", "debug", "--log-format", "json"}
	dir := reachable(t)
	a.served = clitest.Launch(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir",
		dir,
		"--refresh-workers", "2"}, debug...)...)
	a.caller, _, _ = operatorOf(t, dir, a.served).SignIn()
	p := &clitest.Program{T: t, Dir: dir}
	for range 3 {
		_, text := p.Command("node", "token", "--data-dir", dir)
		token, _, _ := strings.Cut(text, "\n")
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n := clitest.StartNode(t, t.TempDir(), "", append([]string{"--join-file", file}, debug...)...)
		w := newBlackholeProxy(t, n.Address)
		if code, text := p.Command("node", "add", w.ln.Addr().String(), "--data-dir", dir); code != 0 {
			t.Fatal(text)
		}
		clitest.WaitFor(t, clitest.StartTimeout, "that the node joins", func() bool {
			return strings.Contains(n.Out.String(), "the node has joined")
		})
		a.nodes, a.wires = append(a.nodes, n), append(a.wires, w)
	}
	var run engine.Run
	for i := range 8 {
		a.caller.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: asked %d\ntarget:\n  "+
			"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 100, concurrent_connections: 2, duration_seconds: 3, "+
			"warmup_seconds: 0}\n", i, load)}, &run)
		a.caller.AwaitEnd(run.RunID, a.served)
	}
	a.awaitNodes(3)
	// Things go wrong with nodes that have something to do; one of the four may have no run of its own.
	for i, n := range a.nodes {
		id, err := os.ReadFile(filepath.Join(n.Dir, "node-id"))
		if err != nil {
			t.Fatal(err)
		}
		if last := len(a.nodes) - 1; !a.load[strings.TrimSpace(string(id))] {
			a.nodes[i], a.nodes[last] = a.nodes[last], a.nodes[i]
			a.wires[i], a.wires[last] = a.wires[last], a.wires[i]
			break
		}
	}
	return a
}

// query asks at one instant.
func (a *promCluster) query(text string, at time.Time) (p promAnswer, err error) {
	q := url.Values{"query": {text}, "stats": {"all"}, "time": {fmt.Sprint(at.Unix())}}
	_, err = a.caller.Try(http.MethodGet, "/prometheus/api/v1/query?"+q.Encode(), nil, &p)
	return p, err
}

const perRunQuery = `sum by (run) (last_over_time(loadstone_operations_total[20m]))`

// queryInstant is the instant of all queries.
var queryInstant = time.Now().Add(5 * time.Minute)

// awaitNodes waits until so many nodes answer together, over runs that have all been taken in.
func (a *promCluster) awaitNodes(n int) {
	a.Helper()
	var p promAnswer
	clitest.Until(a.T, 2*time.Minute, func() bool {
		var err error
		if p, err = a.query(perRunQuery, queryInstant); err != nil {
			return false
		}
		nodes := map[string]bool{}
		for _, l := range p.Data.Stats.Leaves {
			for _, w := range l.Pieces {
				nodes[w.NodeID] = true
				if strings.Contains(w.WorkID, "live") {
					return false
				}
			}
		}
		a.load = nodes
		if len(nodes) < n || strings.Count(string(p.Data.Result), `"run"`) != 8 {
			return false
		}
		if a.expected == "" {
			a.expected = string(p.Data.Result)
		}
		return string(p.Data.Result) == a.expected
	}, func() string { return fmt.Sprintf("%s %s %+v", p.Data.Result, p.Error, p.Data.Stats) })
}

// queryDuring asks while something goes wrong, for a while: each answer is the same, and none takes longer than limit.
// It prints how long the longest took.
func (a *promCluster) queryDuring(what string, limit, while time.Duration, wrong func()) {
	a.Helper()
	longest, requested := time.Duration(0), 0
	go func() { time.Sleep(300 * time.Millisecond); wrong() }()
	for begin := time.Now(); time.Since(begin) < while; requested++ {
		one := time.Now()
		p, err := a.query(perRunQuery, queryInstant)
		longest = max(longest, time.Since(one))
		if err != nil || string(p.Data.Result) != a.expected {
			a.Fatalf("%s: query %d: %s %v %s, not %s", what, requested, p.Data.Result, err, p.Error, a.expected)
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s: the longest of %d queries took %v (goal: 1 s more); load %s", what, requested, longest, load)
	if longest > limit {
		a.Errorf("%s: a query took %v", what, longest)
	}
}

// TestQueriesWhileNodesAndServersFail: a real server asks three real nodes by TLS. One is cut off, stands still, loses
// or damages what it has made, drains; each answer is the same. When the server is killed in a query, its nodes end
// what they do for it.
func TestQueriesWhileNodesAndServersFail(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("five processes and eight runs; make soak sets " + clitest.Soak)
	}
	a := newPromCluster(t)
	const limit = 10 * time.Second // of a busy machine; what it took is printed
	a.queryDuring("a node is cut off", limit, 8*time.Second, func() { a.wires[0].swallow(true) })
	a.wires[0].swallow(false)
	a.awaitNodes(3)
	stopped := a.nodes[1].Cmd.Process
	a.queryDuring("a node stands still", limit, 8*time.Second, func() { _ = stopped.Signal(syscall.SIGSTOP) })
	_ = stopped.Signal(syscall.SIGCONT)
	a.awaitNodes(3)
	a.damage()
	a.awaitNodes(3)
	a.queryDuring("a node drains", limit, 5*time.Second, func() { _ = a.nodes[2].Cmd.Process.Signal(syscall.SIGTERM) })
	if err := a.nodes[2].Wait(t, time.Minute); err != nil {
		t.Errorf("the node that drained: %v", err)
	}
	a.killServer()
}

// damage has the first node lose what it has made, or damage it, as soon as it lies there.
func (a *promCluster) damage() {
	a.Helper()
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			found, _ := filepath.Glob(filepath.Join(a.nodes[0].Dir, "spool", "leaf-*.parquet"))
			for _, path := range found {
				if n++; n%2 == 0 {
					_ = os.Remove(path)
				} else if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
					_, _ = f.WriteAt([]byte{0xff, 0, 0xff}, 20)
					_ = f.Close()
				}
			}
		}
	}()
	a.queryDuring("a node loses and damages what it makes", 30*time.Second, 10*time.Second, func() {})
	close(stop)
	n := <-done
	second := strings.Count(a.served.Out.String(), "what a work of a query came to could not be fetched")
	fmt.Printf("%d artifacts were lost or damaged, %d were made again\n", n, second)
	if second == 0 {
		a.Errorf("none of %d damaged artifacts was noticed", n)
	}
}

// killServer kills the server while its nodes evaluate a long query.
func (a *promCluster) killServer() {
	a.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = a.query(
			`count(count_over_time(quantile_over_time(0.9, loadstone_operations_total[20m])[25m:16ms]))`,
			queryInstant,
		)
	}()
	held := func(n *clitest.RemoteNode) (begun, ended int, last time.Time) {
		for line := range strings.Lines(n.Out.String()) {
			var l struct {
				Message string
				Time    time.Time
			}
			if json.Unmarshal([]byte(line), &l) != nil || !strings.HasPrefix(l.Message, "a work of a query ") {
				continue
			}
			if ended, last = ended+1, l.Time; strings.Contains(l.Message, "cancelled") {
				begun++
			}
		}
		return begun, ended, last
	}
	time.Sleep(700 * time.Millisecond)
	killed := time.Now()
	_ = a.served.Cmd.Process.Kill()
	<-a.served.Done
	<-end
	time.Sleep(6 * time.Second)
	cancelled, latest := 0, time.Duration(0)
	for _, n := range a.nodes[:2] {
		c, _, last := held(n)
		cancelled, latest = cancelled+c, max(latest, last.Sub(killed))
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("the server was killed: %d works were cancelled, the last ended %v later (goal: 1 s); load %s", cancelled,
		latest, load)
	if cancelled == 0 || latest > 5*time.Second {
		a.Errorf("%d works were cancelled; the last ended %v after the server was killed", cancelled, latest)
	}
}
