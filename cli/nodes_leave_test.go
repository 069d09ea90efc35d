package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestANodeThatIsStoppedHandsOver sends SIGTERM to a node whose work is longer than --drain. The node ends its run
// workers, hands over their records and exits with 0. An elastic run replaces them at once; the reason of a FIXED run
// names the run worker that left and the cause.
func TestANodeThatIsStoppedHandsOver(t *testing.T) {
	clitest.Long(t, "runs of half a minute on nodes that are stopped")
	for _, mode := range []string{"BOUNDED", "AUTO", "FIXED"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			checkStoppedNode(t, mode)
		})
	}
}

func checkStoppedNode(t *testing.T, mode string) {
	dir := reachable(t)
	var addresses []string
	var all []*clitest.RemoteNode
	for range 3 {
		all = append(all, clitest.StartNode(t, t.TempDir(), "", "--drain", "3s"))
		addresses = append(addresses, all[len(all)-1].Address)
	}
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir, "--nodes",
		strings.Join(addresses, ","), "--local-capacity", "0")
	session, _, _ := operatorOf(t, dir, served).SignIn()
	clitest.Until(t, clitest.StartTimeout, func() bool {
		var list struct {
			Nodes []struct {
				AcceptingWork bool `json:"accepting_work"`
			}
		}
		session.Do("GET", "/api/v1/nodes", nil, &list)
		n := 0
		for _, node := range list.Nodes {
			if node.AcceptingWork {
				n++
			}
		}
		return n == 3
	}, served.Out.String)
	scaling := "{mode: FIXED, worker_count: 3, per_worker_capacity: 2}"
	switch mode {
	case "BOUNDED":
		scaling = "{mode: BOUNDED, min_workers: 3, max_workers: 4, per_worker_capacity: 2}"
	case "AUTO":
		scaling = "{mode: AUTO, per_worker_capacity: 2}"
	}
	var run engine.Run
	session.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: leaves\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, params: {weights: {POINT_LOOKUP: 100}}, load_mode: CONCURRENCY, concurrent_connections: 6, "+
		"think_time_ms: 20, duration_seconds: 25, warmup_seconds: 0}\nscaling: %s\n",
		pgtest.Start(t).NewDatabase(t), scaling)}, &run)
	session.AwaitLoad(run.RunID)
	time.Sleep(4 * time.Second)
	var before engine.RunDetail
	session.Do("GET", "/api/runs/"+run.RunID, nil, &before)
	stopped := time.Now()
	if err := all[1].Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := all[1].Wait(t, time.Minute); err != nil {
		t.Errorf("the node: %v\n%s", err, all[1].Out.String())
	}
	left := time.Since(stopped)
	if parts := spooledParts(all[1].Dir); parts > 0 || left > 20*time.Second {
		t.Errorf("it left after %v, with %d parts on its disk\n%s", left, parts, all[1].Out.String())
	}
	d := session.AwaitEnd(run.RunID, served)
	took := time.Since(stopped)
	why := ""
	if d.CancellationReason != nil {
		why = *d.CancellationReason
	}
	t.Logf("the node left after %v; %s, %s after %v: %q; %+v, %.0f/s", left, d.Status, d.Summary.Validity, took, why,
		d.Summary.Accounting, *d.Summary.QPS)
	if a := d.Summary.Accounting; !a.Balanced || a.Recorded != rows(t, dir, run.RunID) {
		t.Errorf("%+v, of %d rows", a, rows(t, dir, run.RunID))
	}
	if mode == "FIXED" {
		if d.Status != engine.StatusFailed || took > 30*time.Second || !strings.Contains(why, "has left with its node") {
			t.Errorf("%s after %v: %q", d.Status, took, why)
		}
		return
	}
	if d.Status != engine.StatusCompleted || d.Summary.Validity != engine.VerdictDegraded {
		t.Errorf("%s, %s", d.Status, d.Summary.Validity)
	}
	// The load is a third less until the replacement works, for a few of 25 s. The seconds before the stop show how many
	// operations six connections complete on this machine.
	live := before.Live
	if live == nil || live.Timing.PhaseElapsedSeconds == nil || live.Ops.Total == 0 {
		t.Fatalf("before the node was stopped: %+v", live)
	}
	rate := float64(live.Ops.Total) / *live.Timing.PhaseElapsedSeconds
	if most := rate * 25; float64(d.Summary.Operations) < 0.80*most*0.85 {
		t.Errorf("%d operations, after %.0f/s before the node was stopped", d.Summary.Operations, rate)
	}
}
