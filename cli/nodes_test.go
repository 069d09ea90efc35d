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
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/otlptest"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// reachable is a folder that the user of an embedded Postgres can enter, which t.TempDir is not.
func reachable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadstone-nodes-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// rows are those of a run's recorded executions that the server has.
func rows(t *testing.T, dir, runID string) (n int64) {
	t.Helper()
	parts, _ := filepath.Glob(filepath.Join(dir, "results", runID, "executions-*.parquet"))
	for _, path := range parts {
		p, err := record.OpenPart(path)
		if err != nil {
			t.Fatal(err)
		}
		n += p.Artifact().RowCount
		_ = p.Close()
	}
	return n
}

// spooledParts are the parts that a node holds.
func spooledParts(dir string) int {
	parts, _ := filepath.Glob(filepath.Join(dir, "spool", "*", "*", "*.parquet"))
	return len(parts)
}

// TestARunIsCarriedByANodeOfAnotherProcess: its figures are right, live and at the end, and
// its record has come over the wire. Then the node is killed in a run, and comes back: the
// run says so, ends, and has the figures of what the node had recorded.
func TestARunIsCarriedByANodeOfAnotherProcess(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	dir, nodeDir := reachable(t), t.TempDir()
	load := pgtest.Start(t).NewDatabase(t)
	traces, collector := otlptest.HTTP(t)
	n := clitest.StartNode(t, nodeDir, "", "--otlp-endpoint", collector)
	served := clitest.Launch(t, "serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir", dir, "--nodes",
		n.Address,
		"--local-capacity", "0", "--otlp-endpoint", collector, "--log-format", "json")
	session, _, _ := operatorOf(t, dir, served).SignIn()
	template := func(seconds int) string {
		return fmt.Sprintf("name: remote\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
			"prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 300, concurrent_connections: 4, duration_seconds: %d, "+
			"warmup_seconds: 1}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", load, seconds)
	}
	var run engine.Run
	session.Do("POST", "/api/runs", map[string]any{"source": template(6), "start": true}, &run)
	socket := session.Watch(run.RunID)
	var live engine.LiveState
	clitest.Until(t, clitest.StartTimeout, func() bool {
		live = payloadOf(t, socket)
		// Of six seconds one at least is as it should be, however busy the machine is.
		rate := live.Ops.CurrentPerSec
		return live.Phase != nil && *live.Phase == engine.PhaseMeasurement && live.Ops.Total > 600 && rate > 250 && rate < 350
	}, served.Out.String)
	name, err := os.ReadFile(filepath.Join(nodeDir, "node-id"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range live.Workers {
		if w.NodeID != strings.TrimSpace(string(name)) || w.Health != engine.HealthHealthy {
			t.Errorf("%s is %s on %s, and the node is %s", w.WorkerID, w.Health, w.NodeID, name)
		}
	}
	if live.Latency.P95 == nil {
		t.Errorf("live: %+v, %+v", live.Ops, live.Latency)
	}
	d := session.AwaitEnd(run.RunID, served)
	a := d.Summary.Accounting
	if d.Status != engine.StatusCompleted || !a.Balanced || a.Started < 2000 || a.Recorded != rows(t, dir, run.RunID) {
		t.Fatalf("%s, %+v, and %d rows have come", d.Status, a, rows(t, dir, run.RunID))
	}
	// The schedule fixes how many operations are due. A busy machine ends some of them after the measurement.
	if sum := d.Summary; sum.Operations < 1790 || sum.Operations > 1810 ||
		*sum.QPS != float64(sum.Operations-sum.FinishedLate+sum.CarriedOver)/sum.DurationSeconds {
		t.Errorf(
			"%d operations, %d late, %d carried over, %.1f/s",
			sum.Operations,
			sum.FinishedLate,
			sum.CarriedOver,
			*sum.QPS,
		)
	}
	clitest.Until(t, time.Minute, func() bool { return spooledParts(nodeDir) == 0 }, n.Out.String)
	session.CheckTrace(run.RunID, traces)

	session.Do("POST", "/api/runs", map[string]any{"source": template(300), "start": true}, &run)
	session.AwaitLoad(run.RunID)
	// Parts with executions: what else is there is a few of them with their parameters.
	clitest.Until(t, time.Minute, func() bool {
		parts, _ := filepath.Glob(filepath.Join(nodeDir, "spool", "*", "*", "executions-*.parquet"))
		return len(parts) >= 2
	}, n.Out.String)
	if err := n.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-n.Done
	n = clitest.StartNode(t, nodeDir, n.Address)
	d = session.AwaitEnd(run.RunID, served)
	s := d.Summary
	if d.Status != engine.StatusFailed || d.CancellationReason == nil || !strings.Contains(*d.CancellationReason,
		"Worker failure") ||
		s.Validity != engine.VerdictDegraded {
		t.Fatalf("%s, %v, %+v", d.Status, d.CancellationReason, s.ValidityDetail)
	}
	if stored := rows(t, dir, run.RunID); stored == 0 || s.Accounting.Recorded != stored {
		t.Errorf("%d recorded, and %d rows have come", s.Accounting.Recorded, stored)
	}
	// The node that came back carries the next run, and leaves in order.
	session.Do("POST", "/api/runs", map[string]any{"source": template(2), "start": true}, &run)
	if d = session.AwaitEnd(run.RunID, served); d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("the next run: %s, %+v", d.Status, d.Summary.Accounting)
	}
	clitest.Until(t, time.Minute, func() bool { return spooledParts(nodeDir) == 0 }, n.Out.String)
	if err := n.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := n.Wait(t, time.Minute); err != nil {
		t.Errorf("the node ended with %v: %s", err, n.Out.String())
	}
	if err := served.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := served.Wait(t, time.Minute); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	checkLogTraces(t, served.Out.String())
}
