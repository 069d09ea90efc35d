package cli

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestAServerThatStandsStillForAMinute reads nothing of its nodes: another server has its run, nothing waits for it,
// the node holds no more for that, and it is a server again when it goes on.
func TestAServerThatStandsStillForAMinute(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	c := newCluster(t)
	c.awaitNodes(1, 1)
	const seconds = 90
	run := c.start(0, seconds, 5*time.Second)
	epoch, before := c.epoch(run), residentBytes(t, c.node.Process)
	stopped := c.servers[0].Cmd.Process
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stopped.Signal(syscall.SIGCONT) }()
	at := time.Now()
	took := c.awaitTakeover(run, epoch, at)
	limit := before
	for time.Since(at) < time.Minute {
		limit = max(limit, residentBytes(t, c.node.Process))
		time.Sleep(time.Second)
	}
	if err := stopped.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d := c.proxies[1].AwaitEnd(run.RunID, c.servers[1])
	other := c.proxies[0].AwaitEnd(run.RunID, c.servers[0])
	var due []int64
	for _, w := range recordedOperations(t, run.RunID, c.results) {
		due = append(due, w.due...)
	}
	perSecond := maxPerSecond(due)
	t.Logf("taken over after %v; the node had %d MB, and %d at most; at most %d due in a second; %s, %+v", took,
		before>>20, limit>>20, perSecond, d.Status, d.Summary.Accounting)
	a := d.Summary.Accounting
	if d.Status != engine.StatusCompleted || other.Status != d.Status || !a.Balanced || a.Recorded != a.Started ||
		a.Scheduled < 200*seconds*95/100 || perSecond > 204 {
		t.Errorf("%s and %s, %+v", d.Status, other.Status, a)
	}
	if limit > before+64<<20 {
		t.Errorf("the node grew from %d to %d MB", before>>20, limit>>20)
	}
	c.awaitNodes(0, 1)
	if t.Failed() {
		t.Logf("server 0:\n%s\nserver 1:\n%s\nnode:\n%s", c.servers[0].Out.String(), c.servers[1].Out.String(),
			c.node.Out.String())
	}
}

// TestTwoInstallationsWithOneNode: the second is told why it has no node, on its page and in both logs; the run of the
// first comes to its end with its record. When the first has gone the node is the second's.
func TestTwoInstallationsWithOneNode(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("starts two servers; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	n, load := clitest.StartNode(t, t.TempDir(), ""), pgtest.Start(t).NewDatabase(t)
	var servers [2]*clitest.Process
	var paths [2]clitest.Caller
	var dirs [2]string
	for i := range servers {
		dirs[i] = reachable(t)
		servers[i] = clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dirs[i],
			"--nodes", n.Address, "--local-capacity", "0")
		paths[i], _, _ = operatorOf(t, dirs[i], servers[i]).SignIn()
		if i == 0 {
			clitest.Until(t, clitest.StartTimeout, func() bool { return acceptsWork(paths[0]) }, servers[0].Out.String)
		}
	}
	run := func(i int) (run engine.Run) {
		paths[i].Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: own\ntarget:\n  "+
			"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 100, concurrent_connections: 4, duration_seconds: 15, "+
			"warmup_seconds: 0}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", load)}, &run)
		return run
	}
	first := run(0)
	paths[0].AwaitLoad(first.RunID)
	var seen []nodes.NodeInfo
	clitest.Until(t, clitest.StartTimeout, func() bool {
		seen = nodesShown(paths[1])
		return slices.ContainsFunc(seen, func(n nodes.NodeInfo) bool {
			return strings.Contains(n.OutReason, "works for servers of another control store") &&
				strings.Contains(n.OutReason, "data directory of its own")
		})
	}, func() string { return fmt.Sprintf("%+v", seen) })
	if !strings.Contains(n.Out.String(), "a server of another control store is not let in") ||
		!strings.Contains(servers[1].Out.String(), "works for servers of another control store") {
		t.Errorf("the logs do not say why:\n%s\n%s", n.Out.String(), servers[1].Out.String())
	}
	d := paths[0].AwaitEnd(first.RunID, servers[0])
	if a := d.Summary.Accounting; d.Status != engine.StatusCompleted || !a.Balanced || a.Recorded != a.Started ||
		a.Recorded != rows(t, dirs[0], first.RunID) || a.Recorded < 1400 {
		t.Errorf("%s, %+v", d.Status, a)
	}
	if lines := bytes.Count([]byte(n.Out.String()), []byte("is not let in")); lines > 3 {
		t.Errorf("the node says it %d times", lines)
	}
	if err := servers[0].Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := servers[0].Wait(t, time.Minute); err != nil {
		t.Errorf("the first server ended with %v", err)
	}
	clitest.Until(t, clitest.StartTimeout, func() bool { return acceptsWork(paths[1]) }, servers[1].Out.String)
	if d := paths[1].AwaitEnd(run(1).RunID, servers[1]); d.Status != engine.StatusCompleted ||
		!d.Summary.Accounting.Balanced {
		t.Errorf("the second's run: %s, %+v", d.Status, d.Summary.Accounting)
	}
}

// nodesShown are the nodes as a server shows them.
func nodesShown(c clitest.Caller) []nodes.NodeInfo {
	var list struct{ Nodes []nodes.NodeInfo }
	c.Do("GET", "/api/v1/nodes", nil, &list)
	return list.Nodes
}

func acceptsWork(c clitest.Caller) bool {
	return slices.ContainsFunc(nodesShown(c), func(n nodes.NodeInfo) bool { return n.AcceptingWork })
}
