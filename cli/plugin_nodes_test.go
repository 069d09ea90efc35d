package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/plugins/host/hostiletest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestANodeLacksAPlugin: it gets it by its hash, refuses one that was changed on the way, asks again, and says in the
// run when none came.
func TestANodeLacksAPlugin(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("a node waits a minute for its plugin; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	dir, wasm := reachable(t), hostiletest.Runnable()
	n := clitest.StartNode(t, t.TempDir(), "")
	r := newNetProxy(t, "tcp", n.Address)
	// A bit of each transfer is flipped, as long as there are some to be.
	var flips, flipped atomic.Int64
	marker := wasm[len(wasm)/2 : len(wasm)/2+24]
	flips.Store(1000)
	r.alterBytes(outbound, func(b []byte) {
		if i := bytes.Index(b, marker); i >= 0 && flips.Load() > 0 {
			b[i+5] ^= 1
			flips.Add(-1)
			flipped.Add(1)
		}
	})
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir, "--nodes",
		r.address(), "--local-capacity", "0")
	session, _, _ := operatorOf(t, dir, served).SignIn()
	clitest.Until(t, clitest.StartTimeout, func() bool { return acceptsWork(session) }, served.Out.String)
	sha := session.UploadPlugin(wasm)
	target := pgtest.Start(t).NewDatabase(t)
	run := func() engine.RunDetail {
		t.Helper()
		var run engine.Run
		session.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: brought\ntarget: "+
			"{connection: {driver: postgres, dsn: %q}, adapter: postgres}\nworkload: {plugin: honest, "+
			"concurrent_connections: 2, duration_seconds: 1, warmup_seconds: 0}\n", target)}, &run)
		return session.AwaitEnd(run.RunID, served)
	}
	count := func(words ...string) (n int) {
		for line := range strings.Lines(served.Out.String()) {
			found := strings.Contains(line, sha)
			for _, w := range words {
				found = found && strings.Contains(line, w)
			}
			if found {
				n++
			}
		}
		return n
	}
	d := run()
	reason := ""
	if d.CancellationReason != nil {
		reason = *d.CancellationReason
	}
	refused := count("could not be brought", "not what was announced")
	t.Logf("%d were changed, %d refused; %s: %s", flipped.Load(), refused, d.Status, reason)
	if d.Status != engine.StatusFailed || !strings.Contains(reason, "did not reach the node") || refused < 3 ||
		count("was brought to a node") != 0 {
		t.Errorf("%s: %s\n%s", d.Status, reason, served.Out.String())
	}
	// One is changed, the next is not.
	flips.Store(1)
	before := time.Now()
	if d = run(); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced || d.Summary.Operations == 0 ||
		flips.Load() != 0 || count("could not be brought") != refused+1 || count("was brought to a node") != 1 {
		t.Errorf("%s after %v, %+v\n%s", d.Status, time.Since(before), d.Summary, served.Out.String())
	}
	// It holds none in its data directory: as another process it asks again, and takes no other either.
	flips.Store(1)
	if err := n.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-n.Done
	clitest.StartNode(t, n.Dir, n.Address)
	clitest.Until(t, clitest.StartTimeout, func() bool { return acceptsWork(session) }, served.Out.String)
	if d = run(); d.Status != engine.StatusCompleted || flips.Load() != 0 || count("was brought to a node") != 2 ||
		count("could not be brought") != refused+2 {
		t.Errorf("%s: %v\n%s", d.Status, d.CancellationReason, served.Out.String())
	}
}
