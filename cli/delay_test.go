package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

const delayRate = 200

// delayedCluster is two servers and two nodes, one of which the first server reaches by a long way.
type delayedCluster struct {
	*cluster
	fast, slow *clitest.RemoteNode
	proxy      *netProxy
}

// newDelayedCluster has the way as long as it is from the beginning; nil is no delay.
func newDelayedCluster(t *testing.T, there_, back_ func() time.Duration) *delayedCluster {
	t.Helper()
	d := &delayedCluster{fast: clitest.StartNode(t, t.TempDir(), ""), slow: clitest.StartNode(t, t.TempDir(), "")}
	d.proxy = newNetProxy(t, "tcp", d.slow.Address)
	d.proxy.delay(outbound, there_)
	d.proxy.delay(inbound, back_)
	d.cluster = newClusterOf(t, func(server int) []string {
		return []string{"--nodes", d.fast.Address + "," + []string{d.proxy.address(), d.slow.Address}[server]}
	})
	d.node, d.nodeDir = d.slow, d.slow.Dir
	return d
}

// nameOf is a node's own name.
func nameOf(t *testing.T, n *clitest.RemoteNode) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Dir, "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// nodeStates are those that a server's log has of a node from a time on, in order, with their reasons.
func (c *cluster) nodeStates(server int, id string, after time.Time) (states []string) {
	for line := range bytes.Lines([]byte(c.servers[server].Out.String())) {
		var l struct {
			NodeID  string          `json:"node_id"`
			State   nodes.NodeState `json:"state"`
			Message string          `json:"message"`
			Reason  string          `json:"reason"`
			Time    time.Time       `json:"time"`
		}
		if json.Unmarshal(line, &l) == nil && l.Message == "a node's state has changed" && l.NodeID == id &&
			l.Time.After(after) {
			states = append(states, fmt.Sprintf("%s %s (%s)", l.Time.Format(time.TimeOnly), l.State, l.Reason))
		}
	}
	return states
}

// nodeShown is a node as a server shows it.
func (c *cluster) nodeShown(server int, id string) (n nodes.NodeInfo) {
	c.t.Helper()
	var list struct{ Nodes []nodes.NodeInfo }
	c.proxies[server].Do("GET", "/api/v1/nodes", nil, &list)
	for _, n := range list.Nodes {
		if n.NodeID == id {
			return n
		}
	}
	return n
}

// TestNodesBehindALongWay: the load begins at one instant, clocks are known to within what is stated, and a long
// way alone makes no node unreachable.
func TestNodesBehindALongWay(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	for _, c := range []struct {
		name        string
		there, back func() time.Duration
		// least and most are what the round trip may be shown as; spread is how far apart the run workers may begin.
		least, most, spread time.Duration
	}{
		{"200 ms", jittered(200*time.Millisecond, 0), jittered(200*time.Millisecond, 0), 400 * time.Millisecond,
			time.Second, 250 * time.Millisecond},
		{"200 ms and up to 100 ms more", jittered(200*time.Millisecond, 100*time.Millisecond),
			jittered(200*time.Millisecond, 100*time.Millisecond), 400 * time.Millisecond, 1500 * time.Millisecond,
			350 * time.Millisecond},
		{"400 ms there, nothing back", jittered(400*time.Millisecond, 0), nil, 400 * time.Millisecond, time.Second,
			450 * time.Millisecond},
		{"2 s and up to 500 ms more", jittered(2*time.Second, 500*time.Millisecond),
			jittered(2*time.Second, 500*time.Millisecond), 4 * time.Second, 7 * time.Second, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDelayedCluster(t, c.there, c.back)
			d.awaitNodes(0, 2)
			begin, id := time.Now(), nameOf(t, d.slow)
			var run engine.Run
			d.proxies[0].Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: far\ntarget:\n  "+
				"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
				"workload: {plugin: mix, load_mode: QPS, target_qps: %d, concurrent_connections: 8, duration_seconds: 30, "+
				"warmup_seconds: 0}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 4}\n", d.load, delayRate)}, &run)
			d.proxies[0].AwaitLoad(run.RunID)
			time.Sleep(10 * time.Second)
			n := d.nodeShown(0, id)
			if n.RTTMs == nil || n.ClockOffsetMs == nil || n.ClockErrorMs == nil {
				t.Fatalf("%+v", n)
			}
			t.Logf("RTT %.0f ms, clock %+.1f ±%.1f ms, %s", *n.RTTMs, *n.ClockOffsetMs, *n.ClockErrorMs, n.State)
			if rtt := time.Duration(*n.RTTMs * 1e6); rtt < c.least || rtt > c.most {
				t.Errorf("the round trip is %v", rtt)
			}
			// One machine has one clock.
			if off := *n.ClockOffsetMs; off > *n.ClockErrorMs || -off > *n.ClockErrorMs {
				t.Errorf("the clocks are the same, and the node's is said to be ahead by %.1f ms, to within %.1f", off,
					*n.ClockErrorMs)
			}
			done := d.proxies[0].AwaitEnd(run.RunID, d.servers[0])
			if states := d.nodeStates(0, id, begin); len(states) > 0 {
				t.Errorf("the node was %v", states)
			}
			var due []int64
			var firsts []time.Time
			for id, w := range recordedOperations(t, run.RunID, d.results) {
				due = append(due, w.due...)
				firsts = append(firsts, time.Unix(0, slices.Min(w.began)))
				t.Logf("%s: %d from %s to %s", id, len(w.began), time.Unix(0, slices.Min(w.began)).Format("05.000"),
					time.Unix(0, slices.Max(w.began)).Format("05.000"))
			}
			a, limit := done.Summary.Accounting, maxPerSecond(due)
			t.Logf("%s, %.1f/s, %+v; at most %d due in a second; %s, %v; notes: %s", done.Status, *done.Summary.QPS, a, limit,
				done.Summary.Validity, done.Summary.ValidityDetail.Causes, strings.Join(done.Summary.ValidityDetail.Notes, " | "))
			if done.Status != engine.StatusCompleted || !a.Balanced || a.Recorded != a.Started {
				t.Errorf("%s, %+v", done.Status, a)
			}
			if len(firsts) != 2 {
				t.Fatalf("%d run workers have a record", len(firsts))
			}
			if apart := firsts[0].Sub(firsts[1]).Abs(); apart > c.spread {
				t.Errorf("the run workers began %v apart", apart)
			}
			if limit > delayRate+delayRate/50 {
				t.Errorf("%d operations were due within one second", limit)
			}
			if t.Failed() {
				t.Logf("server:\n%s\nnode:\n%s", d.servers[0].Out.String(), d.slow.Out.String())
			}
		})
	}
}
