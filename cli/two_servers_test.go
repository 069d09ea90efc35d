package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func TestMain(m *testing.M) { clitest.Main(m, Main) }

// TestTwoServersShareAControlStore runs load in one process while others come and
// go on the same store: its run is nobody's but its own until its lease expires.
func TestTwoServersShareAControlStore(t *testing.T) {
	clitest.Simulated(t)
	t.Parallel()
	server := pgtest.Start(t)
	control, load := postgrestest.NewControl(t), server.NewTarget(t)
	conn, err := pgx.Connect(t.Context(), control)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	dir := t.TempDir()
	template := func(seconds int) string {
		path := filepath.Join(dir, fmt.Sprintf("run-%d.yaml", seconds))
		text := fmt.Sprintf("name: run-%d\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
			"prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 20, concurrent_connections: 2, duration_seconds: %d, "+
			"warmup_seconds: 0}\n", seconds, load, seconds)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	in := func(where string) string { return filepath.Join(dir, where) }
	clitest.ShareKey(t, in("a"), in("b"), in("c"), in("d"), in("e"))
	sameStore := []string{"--database-url", control}
	state := func(name string) (status, reason string) {
		t.Helper()
		_ = conn.QueryRow(t.Context(),
			"SELECT status, coalesce(cancellation_reason, '') FROM run_status WHERE test_name = $1", name).Scan(&status, &reason)
		return status, reason
	}
	await := func(name, want string, limit time.Duration, p *clitest.Process) string {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			status, reason := state(name)
			if status == want {
				return reason
			}
			if time.Since(begin) > limit {
				t.Fatalf("%s is %s (%s), not %s:\n%s", name, status, reason, want, p.Out.String())
			}
		}
	}
	run := func(where string, seconds int) *clitest.Process {
		return clitest.Launch(t, append([]string{"run", template(seconds), "--data-dir", filepath.Join(dir, where)},
			sameStore...)...)
	}
	first := run("a", 20)
	await("run-20", "RUNNING", clitest.StartTimeout, first)
	// On its data directory there is no place for another process.
	taken := clitest.Launch(t, append([]string{"run", template(2), "--data-dir", filepath.Join(dir, "a")},
		sameStore...)...)
	if err := taken.Wait(t, 30*time.Second); err == nil ||
		!strings.Contains(taken.Out.String(), "is using the data directory") {
		t.Errorf("a second process on the data directory: %v\n%s", err, taken.Out.String())
	}
	// Others on the store leave the run alone.
	second := clitest.Launch(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "b")},
		sameStore...)...)
	third := run("c", 1)
	if err := third.Wait(t, time.Minute); err != nil {
		t.Errorf("a run beside the first: %v\n%s", err, third.Out.String())
	}
	if err := first.Wait(t, time.Minute); err != nil {
		t.Errorf("the first run: %v\n%s", err, first.Out.String())
	}
	if status, reason := state("run-20"); status != "COMPLETED" {
		t.Errorf("the first run is %s: %s", status, reason)
	}
	// A restart on the data directory of a process that was killed finds its run at
	// once; a process that does not come back is succeeded when its lease has expired.
	back := run("d", 61)
	await("run-61", "RUNNING", clitest.StartTimeout, back)
	// What is lost is a matrix in its first run.
	both := filepath.Join(dir, "both.yaml")
	one := fmt.Sprintf(
		"connection: {driver: postgres, dsn: %q}, table_name: orders, prepare: {rows: 1000, if_exists: use}", load)
	text := fmt.Sprintf("name: run-62\nmatrix:\n  targets:\n  - {label: a, %s}\n  - {label: b, %s}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: 20, concurrent_connections: 2, duration_seconds: 62, "+
		"warmup_seconds: 0}\n", one, one)
	if err := os.WriteFile(both, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := clitest.Launch(t, append([]string{"run", both, "--data-dir", filepath.Join(dir, "e")}, sameStore...)...)
	await("run-62 · a", "RUNNING", clitest.StartTimeout, lost)
	owner := func() (name string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT owner FROM matrices").Scan(&name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	carrier := owner()
	_ = back.Cmd.Process.Signal(syscall.SIGKILL)
	_ = lost.Cmd.Process.Signal(syscall.SIGKILL)
	killed := time.Now()
	<-back.Done // its data directory is free only then
	<-lost.Done
	// However long a start takes here, no lease expires meanwhile: the run of the same
	// data directory is taken back without waiting for that, the other one is left.
	renew := func(from time.Duration) {
		t.Helper()
		if _, err := conn.Exec(t.Context(),
			"UPDATE run_status SET lease_until = now() + $1 WHERE test_name IN ('run-61', 'run-62 · a')", from); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "UPDATE matrices SET lease_until = now() + $1", from); err != nil {
			t.Fatal(err)
		}
	}
	renew(time.Hour)
	repeated := run("d", 3)
	if reason := await("run-61", "FAILED", clitest.StartTimeout, repeated); !strings.Contains(reason, "restarted") {
		t.Errorf("the run of the restarted process: %s", reason)
	}
	if status, _ := state("run-62 · a"); status != "RUNNING" {
		t.Errorf("%v after the kill the run of another process is %s", time.Since(killed), status)
	}
	if got := owner(); got != carrier || carrier == "" {
		t.Errorf("%v after the kill the matrix of %q is held by %q", time.Since(killed), carrier, got)
	}
	const rest = 5 * time.Second
	renew(rest)
	renewed := time.Now()
	if reason := await("run-62 · a", "FAILED", clitest.StartTimeout, second); !strings.Contains(reason,
		"stopped responding") {
		t.Errorf("the run of the lost process: %s", reason)
	}
	if time.Since(renewed) < rest {
		t.Error("a lease was taken over before it had expired")
	}
	// The server goes on with the matrix: what had not run runs there.
	await("run-62 · b", "RUNNING", clitest.StartTimeout, second)
	if got := owner(); got == carrier {
		t.Errorf("the matrix is still held by %q", got)
	}
	select {
	case <-second.Done:
		t.Errorf("the server has ended: %s", second.Out.String())
	default:
	}
}

// TestAnyServerStopsTheRunOfAKilledOne: the process that carries a run is killed, and the other one is asked at once to
// stop the run, which a node in a third process bears. It does not wait for the lease; how soon is held in virtual time.
func TestAnyServerStopsTheRunOfAKilledOne(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	c := newCluster(t)
	run := c.start(0, 600, time.Second)
	c.kill(c.servers[0])
	begin := time.Now()
	var stopped engine.Run
	code, err := c.proxies[1].Try("POST", "/api/runs/"+run.RunID+"/stop", nil, &stopped)
	took := time.Since(begin)
	t.Logf("%d after %v: %s", code, took, stopped.Status)
	if err != nil || stopped.StopReason != engine.StopUserRequested || took > 4*time.Second {
		t.Fatalf("STOP: %d after %v, %s: %v\n%s", code, took, stopped.Status, err, c.servers[1].Out.String())
	}
	operations := func() (n int64) {
		const sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
		if err := c.target.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	time.Sleep(2 * time.Second)
	before := operations()
	time.Sleep(2 * time.Second)
	if n := operations() - before; n > 50 { // 200 a second were asked for
		t.Errorf("%d transactions in two seconds of a run that is stopped", n)
	}
	d := c.proxies[1].AwaitEnd(run.RunID, c.servers[1])
	if d.Status != engine.StatusCancelled || !d.Summary.Accounting.Balanced {
		t.Errorf("%s, %+v", d.Status, d.Summary.Accounting)
	}
}
