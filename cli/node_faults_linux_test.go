package cli

import (
	"fmt"
	"os"
	"path/filepath"
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

// nodePair is a server and two nodes that share its runs.
type nodePair struct {
	t       *testing.T
	dir     string
	served  *clitest.Process
	session clitest.Caller
	nodes   []*clitest.RemoteNode
}

// newNodePair dials the others beside the nodes, which nobody may listen on yet.
func newNodePair(t *testing.T, dirs []string, others ...string) *nodePair {
	t.Helper()
	p := &nodePair{t: t, dir: reachable(t)}
	for _, dir := range dirs {
		p.nodes = append(p.nodes, clitest.StartNode(t, dir, ""))
		others = append(others, p.nodes[len(p.nodes)-1].Address)
	}
	p.served = clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", p.dir, "--nodes",
		strings.Join(others, ","), "--local-capacity", "0")
	p.session, _, _ = operatorOf(t, p.dir, p.served).SignIn()
	clitest.Until(t, clitest.StartTimeout, func() bool { return p.accepting() == len(dirs) }, p.served.Out.String)
	return p
}

func (p *nodePair) list() []nodes.NodeInfo {
	p.t.Helper()
	var list struct{ Nodes []nodes.NodeInfo }
	p.session.Do("GET", "/api/v1/nodes", nil, &list)
	return list.Nodes
}

func (p *nodePair) accepting() (n int) {
	for _, node := range p.list() {
		if node.AcceptingWork {
			n++
		}
	}
	return n
}

// begin starts a run of two run workers, one on each node, and waits until parts of the record are whole.
func (p *nodePair) begin(dsn string, seconds int) engine.Run {
	p.t.Helper()
	var run engine.Run
	p.session.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: wrong\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: 200, concurrent_connections: 4, duration_seconds: %d, "+
		"warmup_seconds: 0}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", dsn, seconds)}, &run)
	p.session.AwaitLoad(run.RunID)
	time.Sleep(3 * time.Second)
	return run
}

// TestNodesThatGoWrong are processes: one that is killed and does not come back, one that was copied with its
// identity, one whose disk is full, and two whose target is restarted. Each run ends, says what has
// happened, and has an account that balances or says what is missing.
func TestNodesThatGoWrong(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	t.Run("killed for good", checkKilledForGood)
	t.Run("copied with its identity", checkCopiedNode)
	t.Run("a full disk", checkFullNodeDisk)
	t.Run("a target that is restarted", checkRestartedTarget)
}

func checkKilledForGood(t *testing.T) {
	t.Parallel()
	p := newNodePair(t, []string{t.TempDir(), t.TempDir()})
	run := p.begin(pgtest.Start(t).NewDatabase(t), 600)
	killed := time.Now()
	if err := p.nodes[1].Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.nodes[1].Done
	d := p.session.AwaitEnd(run.RunID, p.served)
	t.Logf("%s after %v: %v; %+v; %d operations", d.Status, time.Since(killed).Round(time.Second),
		*d.CancellationReason, d.Summary.Accounting, d.Summary.Operations)
	found := false
	for _, c := range d.Summary.ValidityDetail.Causes {
		t.Logf("%s from %v to %v", c.Cause, c.From, c.To)
		found = found || c.Cause == engine.CauseLostWorker && !c.From.IsZero() && c.To.After(c.From.Time)
	}
	if d.Status != engine.StatusFailed || d.Summary.Validity != engine.VerdictDegraded || !found {
		t.Errorf("%s, %s", d.Status, d.Summary.Validity)
	}
	if a := d.Summary.Accounting; a.Balanced || len(a.Problems) == 0 || a.Recorded == 0 ||
		a.Recorded != rows(t, p.dir, run.RunID) {
		t.Errorf("%+v, and %d rows have come", a, rows(t, p.dir, run.RunID))
	}
}

func checkCopiedNode(t *testing.T) {
	t.Parallel()
	original, twin := t.TempDir(), t.TempDir()
	// It listens where the server dials it from the beginning.
	first := clitest.StartNode(t, twin, "")
	address := first.Address
	if err := first.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(t, time.Minute); err != nil {
		t.Fatal(err)
	}
	p := newNodePair(t, []string{original, t.TempDir()}, address)
	run := p.begin(pgtest.Start(t).NewDatabase(t), 20)
	identity, err := os.ReadFile(filepath.Join(original, "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(twin, "node-id"), identity, 0o600); err != nil {
		t.Fatal(err)
	}
	n := clitest.StartNode(t, twin, address)
	clitest.Until(t, time.Minute, func() bool {
		return strings.Contains(n.Out.String(), "another node with the same identity is connected at "+p.nodes[0].Address) &&
			slices.ContainsFunc(p.list(), func(n nodes.NodeInfo) bool {
				return n.Address == address && !n.AcceptingWork && strings.Contains(n.Reason, "calls itself")
			})
	}, func() string { return fmt.Sprintf("%+v\n%s\n%s", p.list(), n.Out.String(), p.served.Out.String()) })
	d := p.session.AwaitEnd(run.RunID, p.served)
	if d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced || *d.Summary.QPS < 190 {
		t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, d.Summary.Accounting)
	}
	if left := spooledParts(twin); left > 0 {
		t.Errorf("the copy recorded %d parts", left)
	}
}

func checkFullNodeDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 600)
	p := newNodePair(t, []string{dir, t.TempDir()})
	run := p.begin(pgtest.Start(t).NewDatabase(t), 600)
	s := &diskFiller{t: t, path: filepath.Join(dir, "of somebody else")}
	s.fill()
	d := p.session.AwaitEnd(run.RunID, p.served)
	t.Logf("%s: %v; %+v", d.Status, *d.CancellationReason, d.Summary.Accounting)
	for _, c := range d.Summary.ValidityDetail.Causes {
		t.Logf("%s: %s", c.Cause, c.Detail)
	}
	if d.Status != engine.StatusFailed || !strings.Contains(*d.CancellationReason, "disk") {
		t.Errorf("%s: %s", d.Status, *d.CancellationReason)
	}
	if a := d.Summary.Accounting; a.Recorded == 0 || !a.Balanced && (d.Summary.Validity != engine.VerdictDegraded ||
		len(a.Problems) == 0) {
		t.Errorf("%s, %+v", d.Summary.Validity, a)
	}
	// With room again it carries the next run.
	s.remove()
	clitest.Until(t, time.Minute, func() bool { return p.accepting() == 2 }, p.served.Out.String)
	run = p.begin(pgtest.Start(t).NewDatabase(t), 5)
	if d := p.session.AwaitEnd(run.RunID, p.served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, d.Summary.Accounting)
	}
	// What keeps the file system busy ends before it is taken away.
	if err := p.nodes[0].Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.nodes[0].Wait(t, time.Minute); err != nil {
		t.Error(err)
	}
}

func checkRestartedTarget(t *testing.T) {
	t.Parallel()
	target := newOutageStore(t)
	p := newNodePair(t, []string{t.TempDir(), t.TempDir()})
	run := p.begin(target.url(), 600)
	target.stop()
	target.start()
	d := p.session.AwaitEnd(run.RunID, p.served)
	t.Logf("%s: %v; %+v", d.Status, *d.CancellationReason, d.Summary.Accounting)
	if a := d.Summary.Accounting; d.Status != engine.StatusFailed || !a.Balanced || a.Recorded != a.Started ||
		a.Started == 0 || !strings.Contains(*d.CancellationReason, "closed all connections") {
		t.Errorf("%s: %s, %+v", d.Status, *d.CancellationReason, a)
	}
	run = p.begin(target.url(), 5)
	if d := p.session.AwaitEnd(run.RunID, p.served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("the next run: %s (%v), %+v", d.Status, d.CancellationReason, d.Summary.Accounting)
	}
}
