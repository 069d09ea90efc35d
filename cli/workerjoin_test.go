package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestANodeJoinsAServerAndCarriesItsRuns: from nothing to a node that is trusted, by the commands
// of the documents; then its token is of no more use, a restart needs none, and who was revoked
// is cut off. What servers and nodes have logged holds no secret.
func TestANodeJoinsAServerAndCarriesItsRuns(t *testing.T) {
	t.Parallel()
	dir := reachable(t)
	load := pgtest.Start(t).NewDatabase(t)
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir,
		"--local-capacity", "0")
	session, _, _ := operatorOf(t, dir, served).SignIn()
	p := &clitest.Program{T: t, Dir: dir}
	node4 := func(args ...string) string {
		t.Helper()
		code, text := p.Command(append(append([]string{"node"}, args...), "--data-dir", dir)...)
		if code != terminal.ExitPassed {
			t.Fatalf("node %v: exit %d: %s", args, code, text)
		}
		return text
	}
	token, _, _ := strings.Cut(node4("token"), "\n")
	nodeDir, file := t.TempDir(), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := clitest.StartNode(t, nodeDir, "", "--join-file", file)
	message := n.Out.String
	if text := node4("add", n.Address); !strings.Contains(text, n.Address) {
		t.Errorf("add: %s", text)
	}
	if text := node4("list", "--catalog"); !strings.Contains(text, n.Address) {
		t.Errorf("the catalog: %s", text)
	}
	clitest.WaitFor(t, clitest.StartTimeout, "that the node joins", func() bool {
		return strings.Contains(message(),
			"the node has joined")
	})
	var run engine.Run
	source := fmt.Sprintf("name: joined\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
		"prepare: {rows: 100, if_exists: use}\nworkload: {plugin: mix, load_mode: QPS, target_qps: 100, "+
		"concurrent_connections: 2, duration_seconds: 1, warmup_seconds: 0}\n", load)
	clitest.Until(t, clitest.StartTimeout, func() bool {
		return strings.Contains(served.Out.String(),
			"it has introduced itself")
	},
		served.Out.String)
	session.Do("POST", "/api/runs", map[string]any{"source": source, "start": true}, &run)
	if d := session.AwaitEnd(run.RunID, served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced ||
		rows(t, dir, run.RunID) == 0 {
		t.Fatalf("%s, %+v: %s", d.Status, d.Summary, served.Out.String())
	}
	// An operator takes it out by its address, and back by its name.
	name, err := os.ReadFile(filepath.Join(nodeDir, "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	called := strings.TrimSpace(string(name))
	if text := node4("list"); !strings.Contains(text, called) || !strings.Contains(text, "ACTIVE") {
		t.Errorf("the nodes: %s", text)
	}
	if text := node4("drain", n.Address, "--wait", "1m"); !strings.Contains(text, called+" takes no new work") ||
		!strings.Contains(text, called+" carries nothing any more") || !strings.Contains(text, "No other node takes work") {
		t.Errorf("drain: %s", text)
	}
	if text := node4("list"); !strings.Contains(text, called+" takes no new work: an operator has asked it to drain") {
		t.Errorf("the nodes: %s", text)
	}
	if text := node4("resume", called); !strings.Contains(text, called+" takes work again") {
		t.Errorf("resume: %s", text)
	}
	// Another node with the same token is told what to do.
	other := clitest.StartNode(t, t.TempDir(), "", "--join-file", file)
	node4("add", other.Address)
	clitest.WaitFor(t, clitest.StartTimeout, "that the second is refused", func() bool {
		return strings.Contains(other.Out.String(), "used before") &&
			strings.Contains(other.Out.String(), "loadstone node token")
	})
	node4("remove", other.Address)
	// After a restart it is the same, without its token.
	if err := n.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = n.Wait(t, time.Minute)
	n = clitest.StartNode(t, nodeDir, n.Address)
	clitest.Until(t, clitest.StartTimeout, func() bool {
		return strings.Count(served.Out.String(),
			"it has introduced itself") > 1
	},
		served.Out.String)
	node4("revoke", called)
	clitest.WaitFor(t, clitest.StartTimeout, "that the node learns of it", func() bool {
		return strings.Contains(n.Out.String(), "does not believe this node's certificate")
	})
	logs := served.Out.String() + n.Out.String() + other.Out.String() + message()
	for _, secret := range []string{token[4:40], token[40:80], token[len(token)-20:], load} {
		if strings.Contains(logs, secret) {
			t.Errorf("a log holds %s", secret)
		}
	}
}

func TestAWorkerIsToldWhatIsWrongWithItsToken(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a part of it":       {[]string{"--join", "lsn_AbCd"}, "it is no token of loadstone node token"},
		"an API token":       {[]string{"--join", "lst_0123456789"}, "begins with lsn_"},
		"two of them":        {[]string{"--join", "lsn_AbCd", "--join-file", "x"}, "give one of them"},
		"an empty one":       {[]string{"--join", ""}, "is empty"},
		"a file that is not": {[]string{"--join-file", p.Path("nothing")}, "nothing"},
	} {
		code, text := p.Command(append([]string{"worker", "--data-dir", p.Path("node"), "--listen", "127.0.0.1:0"},
			c.args...)...)
		if code != terminal.ExitUsage || !strings.Contains(text, c.want) || strings.Contains(text, "AbCd") {
			t.Errorf("%s: exit %d: %s", name, code, text)
		}
	}
	// Set and not filled in is not the same as not set.
	for _, name := range []string{"LOADSTONE_JOIN", "LOADSTONE_JOIN_FILE", "LOADSTONE_WORKER_TOKEN_FILE"} {
		code, text := p.CommandIn([]string{name + "="}, "worker", "--data-dir", p.Path("node"), "--listen", "127.0.0.1:0")
		if code != terminal.ExitUsage || !strings.Contains(text, name) || !strings.Contains(text, "empty") {
			t.Errorf("%s: exit %d: %s", name, code, text)
		}
	}
}
