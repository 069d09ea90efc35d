package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine/lease"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest/precompiled"
	"github.com/loadstone-db/loadstone/plugins/quarantine"
	"github.com/loadstone-db/loadstone/plugins/quarantine/quarantinetest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// programEnv makes the test binary the program.
const programEnv = "LOADSTONE_TEST_PROGRAM"

// leaseEnv shortens the leases of the program, so that tests need not wait for them.
const leaseEnv = "LOADSTONE_TEST_LEASE"

const refreshEnv = "LOADSTONE_REFRESH_WORKERS"

func TestMain(m *testing.M) {
	wiring.CompiledIn = func(string) string { return precompiled.CacheDir() }
	if limit, err := time.ParseDuration(os.Getenv(leaseEnv)); err == nil {
		store.Lease, lease.Every = limit, limit/5
	}
	// Tests that want derived tables say so: for each new server they are a database more to make.
	if os.Getenv(refreshEnv) == "" {
		_ = os.Setenv(refreshEnv, "0")
	}
	// What the program starts as its own child has a bare environment.
	if os.Getenv(programEnv) != "" || len(os.Args) > 1 && os.Args[1] == quarantine.Command {
		os.Exit(Main(os.Args[1:]))
	}
	if err := precompiled.Bundled(precompiled.CacheDir()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := pgtest.Main(m)
	quarantinetest.Clean()
	removePlain()
	os.Exit(code)
}

// plain is the test binary without the race detector.
var plain struct {
	once sync.Once
	dir  string
	err  error
}

// programFile is the file that becomes the program. Under the race detector each start takes four seconds
// of a processor, and the detector sees the same code in the processes of tests: what they start
// is built without it. The soak has the detector in them too.
func programFile(t *testing.T) string {
	t.Helper()
	if !precompiled.Race || os.Getenv("LOADSTONE_SOAK") != "" {
		return os.Args[0]
	}
	plain.once.Do(func() {
		if plain.dir, plain.err = os.MkdirTemp("", "loadstone-cli-"); plain.err != nil {
			return
		}
		if plain.err = os.Chmod(plain.dir, 0o755); plain.err != nil { // for the user that Postgres runs as
			return
		}
		cmd := exec.Command("go", "test", "-c", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o",
			filepath.Join(plain.dir, "program"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			plain.err = fmt.Errorf("building the program: %w\n%s", err, out)
		}
	})
	if plain.err != nil {
		t.Fatal(plain.err)
	}
	return filepath.Join(plain.dir, "program")
}

func removePlain() {
	if plain.dir != "" {
		_ = os.RemoveAll(plain.dir)
	}
}

// startLimit is what a process gets to begin a run, or to notice one: with the race
// detector, on a machine that has other work, it compiles plugins for a while.
const startLimit = 3 * time.Minute

// process is the program in a process of its own.
type process struct {
	cmd  *exec.Cmd
	out  output
	done chan struct{}
	err  error
}

// output is what a process has written so far; a test reads it while the process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// shortLeases are those of the programs that a test launches, by its name.
var shortLeases sync.Map

func launch(t *testing.T, args ...string) *process {
	t.Helper()
	return launchProgram(t, programFile(t), args...)
}

// launchProgram launches a file that is the program, or the test binary, which then is it.
func launchProgram(t *testing.T, file string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.Background(), file, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), programEnv+"=1")
	if limit, ok := shortLeases.Load(t.Name()); ok {
		p.cmd.Env = append(p.cmd.Env, leaseEnv+"="+limit.(string))
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	return p
}

func (p *process) wait(t *testing.T, limit time.Duration) error {
	t.Helper()
	select {
	case <-p.done:
		return p.err
	case <-time.After(limit):
		t.Fatalf("the process has not ended: %s", p.out.String())
		return nil
	}
}

// TestTwoServersShareAControlStore runs load in one process while others come and
// go on the same store: its run is nobody's but its own until its lease expires.
func TestTwoServersShareAControlStore(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	control, load := server.NewDatabase(t), server.NewDatabase(t)
	if err := schema.Apply(t.Context(), control); err != nil {
		t.Fatal(err)
	}
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
	// Servers on one store share the key that seals connections.
	key, err := keyring.Open(filepath.Join(dir, "loadstone.key"))
	if err != nil || key == nil {
		t.Fatal(err)
	}
	sealed, err := os.ReadFile(filepath.Join(dir, "loadstone.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"b", "e"} {
		if err := os.MkdirAll(filepath.Join(dir, where), 0o755); err != nil { //nolint:gosec // as a data directory is made
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, where, "loadstone.key"), sealed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sameStore := []string{"--database-url", control}
	state := func(name string) (status, reason string) {
		t.Helper()
		_ = conn.QueryRow(t.Context(),
			"SELECT status, coalesce(cancellation_reason, '') FROM run_status WHERE test_name = $1", name).Scan(&status, &reason)
		return status, reason
	}
	await := func(name, want string, limit time.Duration, p *process) string {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			status, reason := state(name)
			if status == want {
				return reason
			}
			if time.Since(begin) > limit {
				t.Fatalf("%s is %s (%s), not %s:\n%s", name, status, reason, want, p.out.String())
			}
		}
	}
	run := func(where string, seconds int) *process {
		return launch(t, append([]string{"run", template(seconds), "--data-dir", filepath.Join(dir, where)}, sameStore...)...)
	}
	first := run("a", 20)
	await("run-20", "RUNNING", startLimit, first)
	// On its data directory there is no place for another process.
	taken := launch(t, append([]string{"run", template(2), "--data-dir", filepath.Join(dir, "a")}, sameStore...)...)
	if err := taken.wait(t, 30*time.Second); err == nil ||
		!strings.Contains(taken.out.String(), "is using the data directory") {
		t.Errorf("a second process on the data directory: %v\n%s", err, taken.out.String())
	}
	// Others on the store leave the run alone.
	second := launch(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "b")},
		sameStore...)...)
	third := run("c", 1)
	if err := third.wait(t, time.Minute); err != nil {
		t.Errorf("a run beside the first: %v\n%s", err, third.out.String())
	}
	if err := first.wait(t, time.Minute); err != nil {
		t.Errorf("the first run: %v\n%s", err, first.out.String())
	}
	if status, reason := state("run-20"); status != "COMPLETED" {
		t.Errorf("the first run is %s: %s", status, reason)
	}
	// A restart on the data directory of a process that was killed finds its run at
	// once; a process that does not come back is succeeded when its lease has expired.
	back := run("d", 61)
	await("run-61", "RUNNING", startLimit, back)
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
	lost := launch(t, append([]string{"run", both, "--data-dir", filepath.Join(dir, "e")}, sameStore...)...)
	await("run-62 · a", "RUNNING", startLimit, lost)
	owner := func() (name string) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT owner FROM matrices").Scan(&name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	carrier := owner()
	_ = back.cmd.Process.Signal(syscall.SIGKILL)
	_ = lost.cmd.Process.Signal(syscall.SIGKILL)
	killed := time.Now()
	<-back.done // its data directory is free only then
	<-lost.done
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
	again := run("d", 3)
	if reason := await("run-61", "FAILED", startLimit, again); !strings.Contains(reason, "restarted") {
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
	if reason := await("run-62 · a", "FAILED", startLimit, second); !strings.Contains(reason, "stopped responding") {
		t.Errorf("the run of the lost process: %s", reason)
	}
	if time.Since(renewed) < rest {
		t.Error("a lease was taken over before it had expired")
	}
	// The server goes on with the matrix: what had not run runs there.
	await("run-62 · b", "RUNNING", startLimit, second)
	if got := owner(); got == carrier {
		t.Errorf("the matrix is still held by %q", got)
	}
	select {
	case <-second.done:
		t.Errorf("the server has ended: %s", second.out.String())
	default:
	}
}
