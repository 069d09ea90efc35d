package cli

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/admission"
)

// request is a run of so many connections, spread over run workers of four.
func (c *cluster) request(name string, connections, seconds int) map[string]any {
	return map[string]any{"start": true, "source": fmt.Sprintf("name: %s\ntarget:\n  connection: {driver: postgres, "+
		"dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\nworkload: {plugin: mix, "+
		"load_mode: QPS, target_qps: 50, concurrent_connections: %d, duration_seconds: %d, warmup_seconds: 0}\n"+
		"scaling: {mode: FIXED, worker_count: %d, per_worker_capacity: 4}\n", name, c.load, connections, seconds,
		connections/4)}
}

func (c *cluster) ask(i int, name string, connections, seconds int) (run engine.Run) {
	c.t.Helper()
	c.proxies[i].Do("POST", "/api/runs", c.request(name, connections, seconds), &run)
	return run
}

// checkPending checks what a server says of a run that waits.
func (c *cluster) checkPending(i int, runID string, position int, reason string) {
	c.t.Helper()
	var d engine.RunDetail
	c.proxies[i].Do("GET", "/api/runs/"+runID, nil, &d)
	if d.Status != engine.StatusPrepared || d.Waiting == nil || d.Waiting.Position != position ||
		!strings.Contains(d.Waiting.Reason, reason) {
		c.t.Errorf("server %d: %s, %+v, not %d: %q", i, d.Status, d.Waiting, position, reason)
	}
}

// nodeDemand are what runs need of nodes, once a server sees so many that take work.
func (c *cluster) nodeDemand(i int) (n admission.ScalingNeeds) {
	c.t.Helper()
	c.proxies[i].Do("GET", "/api/v1/scaling", nil, &n)
	return n
}

// TestRunsWaitForRoomOnNodesOfTwoServers: two servers share a node of eight connections. Runs that fit one
// after the other wait, are stopped, and are started by the server that is left.
func TestRunsWaitForRoomOnNodesOfTwoServers(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("three processes for what engine/run/admission tests in one: only in the soak")
	}
	t.Parallel()
	clitest.LeasesOf.Store(t.Name(), "8s")
	dir := t.TempDir()
	n := clitest.StartNode(t, dir, "", "--capacity", "8")
	c := newClusterOf(t, func(i int) []string {
		flags := []string{"--nodes", n.Address}
		if i == 1 {
			flags = append(flags, "--wait-for-nodes", "10m")
		}
		return flags
	})
	c.node, c.nodeDir = n, dir
	c.awaitNodes(0, 1)
	c.awaitNodes(1, 1)
	var refused engine.Run
	code, err := c.proxies[0].Try("POST", "/api/runs", c.request("larger than all", 16, 5), &refused)
	if code != http.StatusUnprocessableEntity || err == nil ||
		!strings.Contains(err.Error(), "16 connections are more than the 8 that the nodes hold") ||
		!strings.Contains(err.Error(), "workload.concurrent_connections") ||
		!strings.Contains(err.Error(), "add a node") {
		t.Errorf("%d, %v", code, err)
	}
	t.Logf("refused: %d, %v", code, err)

	first := c.ask(0, "first", 8, 600)
	c.proxies[0].AwaitLoad(first.RunID)
	second, third := c.ask(1, "second", 8, 5), c.ask(0, "third", 4, 600)
	for i := range c.proxies {
		c.checkPending(i, second.RunID, 1, "waits for 8 connections; 0 are free on 1 node")
		c.checkPending(i, third.RunID, 2, "and 1 run waits before it")
		if s := c.nodeDemand(
			i,
		); s.QueueDepth != 2 || s.ReservedConnections != 8 || s.WaitingConnections != 12 ||
			s.WantedNodes != 3 {
			t.Errorf("server %d: %+v", i, s)
		}
	}
	var stopped engine.Run
	c.proxies[1].Do("POST", "/api/runs/"+third.RunID+"/stop", struct{}{}, &stopped)
	if stopped.Status != engine.StatusCancelled || stopped.StopReason != engine.StopUserRequested {
		t.Errorf("stopped while it waits: %s, %s", stopped.Status, stopped.StopReason)
	}
	// Who was asked for the second is gone; the other one starts it.
	c.kill(c.servers[1])
	c.checkPending(0, second.RunID, 1, "waits for 8 connections")
	c.proxies[0].Do("POST", "/api/runs/"+first.RunID+"/stop", struct{}{}, &stopped)
	d := c.proxies[0].AwaitEnd(second.RunID, c.servers[0])
	if d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("%s, %+v", d.Status, d.Summary.Accounting)
	}

	// Both see that there is room, and one begins each run: it is owned once, begun once, and assigned once.
	c.serve(1)
	c.reach(1)
	c.awaitNodes(1, 1)
	for i := range 4 {
		holds := c.ask(i%2, "holds", 8, 600)
		c.proxies[i%2].AwaitLoad(holds.RunID)
		waits := c.ask(1-i%2, "waits", 8, 3)
		c.checkPending(i%2, waits.RunID, 1, "waits for 8 connections")
		c.proxies[i%2].Do("POST", "/api/runs/"+holds.RunID+"/stop", struct{}{}, &stopped)
		d := c.proxies[i%2].AwaitEnd(waits.RunID, c.servers[i%2])
		if d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
			t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, d.Summary.Accounting)
		}
		var starts, epoch, workers int
		if err := c.control.QueryRow(t.Context(), `SELECT
			(SELECT count(*) FROM run_control_events WHERE run_id = $1 AND event_type = 'START'), owner_epoch,
			(SELECT count(*) FROM worker_heartbeats WHERE run_id = $1) FROM run_status WHERE run_id = $1`,
			waits.RunID).Scan(&starts, &epoch, &workers); err != nil || starts != 1 || epoch != 1 || workers != 2 {
			t.Errorf("begun %d times, in epoch %d, on %d run workers: %v", starts, epoch, workers, err)
		}
	}

	// Larger than all nodes, where nodes come.
	large := c.ask(1, "large", 16, 5)
	c.checkPending(1, large.RunID, 1, "waits for 16 connections")
	later := clitest.StartNode(t, t.TempDir(), "", "--capacity", "8")
	c.proxies[1].Do("POST", "/api/v1/node-addresses", map[string]string{"address": later.Address}, nil)
	d = c.proxies[1].AwaitEnd(large.RunID, c.servers[1])
	if d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, d.Summary.Accounting)
	}
	var on int
	if err := c.control.QueryRow(t.Context(), "SELECT count(DISTINCT node_id) FROM worker_heartbeats WHERE run_id = $1",
		large.RunID).Scan(&on); err != nil || on != 2 {
		t.Errorf("its run workers were on %d nodes: %v", on, err)
	}
	clitest.Until(t, clitest.StartTimeout, func() bool {
		s := c.nodeDemand(0)
		return s.ReservedConnections == 0 && s.QueueDepth == 0 &&
			s.WantedNodes == 0
	},
		func() string { return fmt.Sprintf("%+v", c.nodeDemand(0)) })
}
