package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// partitionedCluster is two servers on one control store and two nodes in network namespaces of their own. Each
// server reaches each node by another address, so that each of the four ways can be cut by itself.
// The databases are on unix sockets, which no way leads to.
type partitionedCluster struct {
	*cluster
	spaces [2]string
	nodes  [2]*clitest.RemoteNode
	net    int
}

// networks numbers those of a process.
var networks = make(chan int, 16)

func init() {
	for i := range cap(networks) {
		networks <- i
	}
}

// address is that of a node for a server.
func (p *partitionedCluster) address(node, server int) string {
	return fmt.Sprintf("10.%d.%d.2", 100+p.net, 2*node+server)
}

// tool runs a command of the network.
func tool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func newPartitionedCluster(t *testing.T) *partitionedCluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	for _, name := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not there: apt-get install iproute2 nftables", name)
		}
	}
	p := &partitionedCluster{net: <-networks}
	var addresses [2][]string
	for k := range p.spaces {
		p.spaces[k] = fmt.Sprintf("loadstone-%d-%d-%d", os.Getpid(), p.net, k)
		here, there := fmt.Sprintf("ls%d-%d-%d", os.Getpid()%10000, p.net, k), fmt.Sprintf("ln%d-%d-%d",
			os.Getpid()%10000, p.net, k)
		tool(t, "", "ip", "netns", "add", p.spaces[k])
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", p.spaces[k]).Run() })
		tool(t, "", "ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", p.spaces[k])
		tool(t, "", "ip", "link", "set", here, "up")
		inside := []string{"ip", "-n", p.spaces[k]}
		for s := range 2 {
			to := p.address(k, s)
			tool(t, "", "ip", "addr", "add", strings.TrimSuffix(to, "2")+"1/24", "dev", here)
			tool(t, "", append(inside, "addr", "add", to+"/24", "dev", there)...)
			addresses[s] = append(addresses[s], to+":9090")
		}
		tool(t, "", append(inside, "link", "set", there, "up")...)
		tool(t, "", append(inside, "link", "set", "lo", "up")...)
		p.heal(t, k)
	}
	for k := range p.nodes {
		p.nodes[k] = p.node(t, k, t.TempDir())
	}
	p.cluster = newClusterOf(t, func(server int) []string {
		return []string{"--nodes", strings.Join(addresses[server], ","), "--nodes-insecure"}
	})
	for i := range p.servers {
		p.awaitNodes(i, 2)
	}
	return p
}

// node starts a node in its namespace.
func (p *partitionedCluster) node(t *testing.T, k int, dir string) *clitest.RemoteNode {
	t.Helper()
	n := &clitest.RemoteNode{Dir: dir, Address: "9090"}
	n.Process = clitest.LaunchProgram(t, "ip", "netns", "exec", p.spaces[k], clitest.ProgramFile(t), "worker",
		"--listen", "0.0.0.0:9090",
		"--insecure", "--data-dir", dir)
	clitest.WaitFor(t, clitest.StartTimeout, "the node", func() bool {
		return strings.Contains(n.Out.String(),
			" listens on ")
	})
	return n
}

// rules are the filters of a node's namespace.
const rules = "table inet loadstone {\n chain in { type filter hook input priority 0; }\n" +
	" chain out { type filter hook output priority 0; }\n}\n"

// heal lets everything through.
func (p *partitionedCluster) heal(t *testing.T, k int) {
	t.Helper()
	tool(t, "flush ruleset\n"+rules, "ip", "netns", "exec", p.spaces[k], "nft", "-f", "-")
}

// cut drops what goes to a node from a server, or back, or both: of 100 packets so many.
func (p *partitionedCluster) cut(t *testing.T, k, server, percent int, there, back bool) {
	t.Helper()
	text, by := "", "drop\n"
	if percent < 100 {
		by = fmt.Sprintf("numgen random mod 100 < %d drop\n", percent)
	}
	if there {
		text += fmt.Sprintf("add rule inet loadstone in ip daddr %s %s", p.address(k, server), by)
	}
	if back {
		text += fmt.Sprintf("add rule inet loadstone out ip saddr %s %s", p.address(k, server), by)
	}
	tool(t, text, "ip", "netns", "exec", p.spaces[k], "nft", "-f", "-")
}

// id is a node's name.
func (p *partitionedCluster) id(t *testing.T, k int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.nodes[k].Dir, "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// enteredState is when a server first saw a node in a state after a time.
func (p *partitionedCluster) enteredState(
	server int,
	id string,
	state nodes.NodeState,
	after time.Time,
) (at time.Time) {
	p.t.Helper()
	clitest.Until(p.t, 2*time.Minute, func() bool {
		for line := range bytes.Lines([]byte(p.servers[server].Out.String())) {
			var l struct {
				NodeID  string `json:"node_id"`
				State   nodes.NodeState
				Message string
				Time    time.Time
			}
			if json.Unmarshal(line, &l) == nil && l.Message == "a node's state has changed" && l.NodeID == id &&
				l.State == state && l.Time.After(after) {
				at = l.Time
				return true
			}
		}
		return false
	}, p.servers[server].Out.String)
	return at
}

const partitionRate = 200

// begin starts a run of two run workers on the first server, and waits until both nodes bear load.
func (p *partitionedCluster) begin(scaling string, seconds int) engine.Run {
	p.t.Helper()
	var run engine.Run
	p.proxies[0].Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: parted\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: %d, concurrent_connections: 8, duration_seconds: %d, "+
		"warmup_seconds: 0}\nscaling: {%s, per_worker_capacity: 4}\n", p.load, partitionRate, seconds, scaling)}, &run)
	p.proxies[0].AwaitLoad(run.RunID)
	time.Sleep(5 * time.Second)
	return run
}

// judge checks that in no second more was offered than the run asked for, over all nodes, that a run
// worker which was cut off issued nothing past its time, and that the account is balanced or says what is missing.
func (p *partitionedCluster) checkOffered(d engine.RunDetail, cutOff map[string]time.Time) {
	p.t.Helper()
	all := recordedOperations(p.t, d.RunID, p.results, p.nodes[:]...)
	var due []int64
	for id, w := range all {
		due = append(due, w.due...)
		first, last := time.Unix(0, slices.Min(w.began)), time.Unix(0, slices.Max(w.began))
		p.t.Logf("%s issued %d from %s to %s", id, len(w.began), first.Format(time.TimeOnly), last.Format(time.TimeOnly))
		// The clocks of both are one, and the node compares them to within a few ms.
		if at, ok := cutOff[id]; ok && last.After(at.Add(protocol.ContactTimeout+100*time.Millisecond)) {
			p.t.Errorf("%s issued for %v without contact", id, last.Sub(at))
		}
	}
	limit := maxPerSecond(due)
	p.t.Logf("at most %d operations were due within one second, of %d in all; %s, %s, %+v", limit, len(due), d.Status,
		d.Summary.Validity, d.Summary.Accounting)
	if limit > partitionRate+partitionRate/50 {
		p.t.Errorf("%d operations were due within one second, and %d were asked for", limit, partitionRate)
	}
	a := d.Summary.Accounting
	if a.Balanced && (a.Scheduled != a.Started+a.Dropped || a.Started != a.Succeeded+a.Failed || a.Recorded != a.Started) {
		p.t.Errorf("%+v", a)
	}
	if !a.Balanced && (d.Summary.Validity != engine.VerdictDegraded || len(a.Problems) == 0 ||
		len(d.Summary.ValidityDetail.Causes) == 0) {
		p.t.Errorf("nothing says what is missing: %s, %+v", d.Summary.Validity, a)
	}
}

// workersOn are the run workers on a node now.
func (p *partitionedCluster) workersOn(runID, id string) (workers []string) {
	p.t.Helper()
	var d engine.RunDetail
	p.proxies[0].Do("GET", "/api/runs/"+runID, nil, &d)
	if d.Live == nil {
		return nil
	}
	for _, w := range d.Live.Workers {
		if w.NodeID == id {
			workers = append(workers, w.WorkerID)
		}
	}
	return workers
}

// TestPartitions cuts a node that bears load off the server that owns the run, in one direction or
// in both, for less than its load may outlive that and for longer, with the limits as they are.
func TestPartitions(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	const fixed, bounded, auto = "mode: FIXED, worker_count: 2", "mode: BOUNDED, min_workers: 2, max_workers: 4",
		"mode: AUTO"
	for _, tt := range []struct {
		name, scaling string
		there, back   bool
		percent       int
		lasts         time.Duration
		seconds       int
		status        engine.Status
	}{
		{"both ways for a while, FIXED", fixed, true, true, 100, 20 * time.Second, 60, engine.StatusCompleted},
		{"both ways for long, BOUNDED", bounded, true, true, 100, 100 * time.Second, 160, engine.StatusCompleted},
		{"to the node for long, AUTO", auto, true, false, 100, 100 * time.Second, 160, engine.StatusCompleted},
		{"from the node for long, BOUNDED", bounded, false, true, 100, 100 * time.Second, 160, engine.StatusCompleted},
		{"both ways for long, FIXED", fixed, true, true, 100, 100 * time.Second, 160, engine.StatusFailed},
		{"a fifth is lost, AUTO", auto, true, true, 20, 40 * time.Second, 60, engine.StatusCompleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPartitionedCluster(t)
			run := p.begin(tt.scaling, tt.seconds)
			id := p.id(t, 1)
			var workers []string
			clitest.Until(t, time.Minute, func() bool {
				workers = p.workersOn(run.RunID, id)
				return len(workers) > 0
			}, p.servers[0].Out.String)
			at := time.Now()
			p.cut(t, 1, 0, tt.percent, tt.there, tt.back)
			cutOff := map[string]time.Time{}
			if tt.percent == 100 {
				seen := p.enteredState(0, id, nodes.NodeUnreachable, at)
				t.Logf("noticed after %v", seen.Sub(at).Round(time.Millisecond))
				if seen.Sub(at) > 4*time.Second {
					t.Errorf("noticed after %v", seen.Sub(at))
				}
				if tt.lasts > protocol.ContactTimeout {
					for _, w := range workers {
						cutOff[w] = at
					}
				}
			}
			time.Sleep(time.Until(at.Add(tt.lasts)))
			healed := time.Now()
			p.heal(t, 1)
			if tt.percent == 100 {
				back := p.enteredState(0, id, nodes.NodeActive, healed.Add(-time.Millisecond))
				t.Logf("there again after %v", back.Sub(healed).Round(time.Millisecond))
			}
			d := p.proxies[0].AwaitEnd(run.RunID, p.servers[0])
			if d.Status != tt.status {
				t.Errorf("%s (%v)", d.Status, d.CancellationReason)
			}
			p.checkOffered(d, cutOff)
			time.Sleep(time.Until(healed.Add(time.Minute)))
			if n := p.orphanConnections(); n > 0 {
				t.Errorf("%d connections of run workers are left", n)
			}
			if t.Failed() {
				t.Logf("server:\n%s\nnode:\n%s", p.servers[0].Out.String(), p.nodes[1].Out.String())
			}
		})
	}
}

// TestAKilledNodeIsNoticedAtOnce: its machine resets the connection, which both servers see.
func TestAKilledNodeIsNoticedAtOnce(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes a minute; make soak sets LOADSTONE_SOAK")
	}
	p := newPartitionedCluster(t)
	for range 5 {
		id := p.id(t, 1)
		at := time.Now()
		if err := p.nodes[1].Cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-p.nodes[1].Done
		for s := range p.servers {
			took := p.enteredState(s, id, nodes.NodeUnreachable, at).Sub(at)
			t.Logf("server %d noticed after %v", s, took.Round(time.Millisecond))
			if took > 100*time.Millisecond {
				t.Errorf("server %d noticed after %v", s, took)
			}
		}
		p.nodes[1] = p.node(t, 1, p.nodes[1].Dir)
		for s := range p.servers {
			p.awaitNodes(s, 2)
		}
	}
}
