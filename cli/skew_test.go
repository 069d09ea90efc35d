package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	clusternodes "github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// buildVersion builds the program as another version, with flags of the compiler's.
func buildVersion(t *testing.T, dir, version string, with ...string) string {
	t.Helper()
	file := filepath.Join(dir, "loadstone-"+version)
	args := append([]string{"test", "-c", "-buildvcs=false", "-trimpath", "-ldflags=-s -w -X " +
		"github.com/loadstone-db/loadstone/cli.version=" + version}, with...)
	cmd := exec.Command("go", append(args, "-o", file, ".")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// overlay writes what the compiler reads in place of files, by their names, and returns the flag that says so.
func overlay(t *testing.T, dir string, changed map[string]string) string {
	t.Helper()
	replaced := map[string]string{}
	for path, text := range changed {
		replaced[path] = filepath.Join(dir, "changed-"+filepath.Base(path))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + file
}

// TestVersionsApart: of two nodes of other versions than the server's, the one a minor version apart
// carries a run, and the one two apart is told why it does not: on the page, by a command and in both logs.
func TestVersionsApart(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("builds the program three times; make soak sets LOADSTONE_SOAK")
	}
	dir, data := reachable(t), reachable(t)
	server := buildVersion(t, dir, "v1.4.0")
	var nodes []*clitest.RemoteNode
	var addresses []string
	for _, version := range []string{"v1.2.0", "v1.3.0"} {
		n := &clitest.RemoteNode{Dir: t.TempDir()}
		n.Process = clitest.LaunchProgram(t, buildVersion(t, dir, version), "worker", "--listen", "127.0.0.1:0",
			"--data-dir", n.Dir)
		clitest.WaitFor(t, clitest.StartTimeout, "the node's address", func() bool {
			_, after, ok := strings.Cut(n.Out.String(), " listens on ")
			n.Address, _, _ = strings.Cut(after, "\n")
			return ok && strings.Contains(after, "\n")
		})
		nodes, addresses = append(nodes, n), append(addresses, n.Address)
	}
	served := clitest.LaunchProgram(t, server, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir",
		data,
		"--nodes", strings.Join(addresses, ","), "--local-capacity", "0")
	session, _, _ := operatorOf(t, data, served).SignIn()
	const why = "the node is Loadstone v1.2.0 and the server v1.4.0, which are more than one minor version apart: " +
		"upgrade the node to 1.4"
	var list struct{ Nodes []clusternodes.NodeInfo }
	states := func() (found map[string]clusternodes.NodeInfo) {
		session.Do("GET", "/api/v1/nodes", nil, &list)
		found = map[string]clusternodes.NodeInfo{}
		for _, n := range list.Nodes {
			found[n.Version] = n
		}
		return found
	}
	clitest.Until(t, clitest.StartTimeout, func() bool {
		return states()["v1.3.0"].AcceptingWork &&
			states()["v1.2.0"].Reason == why
	},
		func() string { text, _ := json.Marshal(list); return string(text) + served.Out.String() })
	if n := states()["v1.2.0"]; n.State != clusternodes.NodeUnreachable || n.AcceptingWork {
		t.Errorf("%+v", n)
	}
	run := engine.Run{}
	session.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: skew\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: 100, concurrent_connections: 4, duration_seconds: 3, "+
		"warmup_seconds: 0}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n",
		pgtest.Start(t).NewDatabase(t))}, &run)
	if d := session.AwaitEnd(run.RunID, served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced ||
		d.Summary.Accounting.Recorded == 0 {
		t.Errorf("%s (%v), %+v", d.Status, d.CancellationReason, d.Summary.Accounting)
	}
	if parts, _ := filepath.Glob(filepath.Join(nodes[0].Dir, "spool", "*", "*")); len(parts) > 0 {
		t.Errorf("the node two versions apart was given %v", parts)
	}
	if text := nodes[0].Out.String(); !strings.Contains(text, why) {
		t.Errorf("the node's log does not say why: %s", text)
	}
	if text := served.Out.String(); !strings.Contains(text, why) {
		t.Errorf("the server's log does not say why: %s", text)
	}
	cmd := exec.Command(server, "node", "list", "--data-dir", data)
	cmd.Env = append(os.Environ(), clitest.ProgramEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), why) {
		t.Errorf("the list of nodes: %v: %s", err, out)
	}
}
