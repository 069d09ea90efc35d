package cli

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// cluster is two servers on one control store, and a node that both dial.
type cluster struct {
	t       *testing.T
	control *pgx.Conn
	target  *pgx.Conn // which carries the load
	load    string
	dirs    [2]string
	servers [2]*clitest.Process
	// programs are theirs, where that is another one.
	programs [2]string
	proxies  [2]clitest.Caller
	args     [2][]string
	results  string
	nodeDir  string
	node     *clitest.RemoteNode
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	nodeDir := t.TempDir()
	n := clitest.StartNode(t, nodeDir, "")
	c := newClusterOf(t, func(int) []string { return []string{"--nodes", n.Address} })
	c.node, c.nodeDir = n, nodeDir
	return c
}

// newClusterOf is two servers, each with flags of its own, which say where nodes are.
func newClusterOf(t *testing.T, flags func(server int) []string, programs ...string) *cluster {
	t.Helper()
	control := postgrestest.NewControl(t)
	return newClusterOn(t, control, [2]string{control, control}, flags, programs...)
}

// newClusterOn is two servers on a control store, each of which reaches it by an address of its own.
func newClusterOn(t *testing.T, control string, paths [2]string, flags func(server int) []string,
	programs ...string,
) *cluster {
	t.Helper()
	c := &cluster{t: t, load: pgtest.Start(t).NewTarget(t), results: t.TempDir()}
	copy(c.programs[:], programs)
	if err := schema.Apply(t.Context(), control); err != nil {
		t.Fatal(err)
	}
	for _, open := range []struct {
		into *(*pgx.Conn)
		dsn  string
	}{{&c.control, control}, {&c.target, c.load}} {
		conn, err := pgx.Connect(t.Context(), open.dsn)
		if err != nil {
			t.Fatal(err)
		}
		*open.into = conn
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	for i := range c.args {
		c.args[i] = append([]string{"--listen", "127.0.0.1:0", "--calibrate", "off", "--database-url", paths[i],
			"--local-capacity", "0", "--results", c.results}, flags(i)...)
	}
	// Servers on one store share the key that seals connections.
	var sealed []byte
	for i := range c.dirs {
		c.dirs[i] = t.TempDir()
		file := filepath.Join(c.dirs[i], "loadstone.key")
		if sealed != nil {
			if err := os.WriteFile(file, sealed, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if _, err := keyring.Open(file); err != nil {
			t.Fatal(err)
		}
		sealed, _ = os.ReadFile(file)
	}
	for i := range c.servers {
		c.serve(i)
	}
	for i := range c.servers {
		c.reach(i)
	}
	return c
}

// serve starts a server on its data directory, and reach waits for it.
func (c *cluster) serve(i int) {
	_ = os.Remove(filepath.Join(c.dirs[i], "operator.json"))
	c.servers[i] = clitest.LaunchProgram(c.t, cmp.Or(c.programs[i], clitest.ProgramFile(c.t)),
		append([]string{"serve", "--data-dir", c.dirs[i]}, c.args[i]...)...)
}

func (c *cluster) reach(i int) {
	c.proxies[i], _, _ = operatorOf(c.t, c.dirs[i], c.servers[i]).SignIn()
}

// awaitNodes waits until a server has so many nodes that take work: one that came back a moment ago is
// dialled again after a pause.
func (c *cluster) awaitNodes(i, n int) {
	c.t.Helper()
	clitest.Until(c.t, clitest.StartTimeout, func() bool {
		var list struct{ Nodes []nodes.NodeInfo }
		c.proxies[i].Do("GET", "/api/v1/nodes", nil, &list)
		accepting := 0
		for _, node := range list.Nodes {
			if node.AcceptingWork {
				accepting++
			}
		}
		return accepting == n
	}, c.servers[i].Out.String)
}

func (c *cluster) kill(p *clitest.Process) {
	c.t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	<-p.Done
}

// start starts a run on a server and waits until it has measured for a while.
func (c *cluster) start(i, seconds int, after time.Duration) (run engine.Run) {
	c.t.Helper()
	c.awaitNodes(i, 1)
	c.proxies[i].Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: shared\ntarget:\n  "+
		"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
		"workload: {plugin: mix, load_mode: QPS, target_qps: 200, concurrent_connections: 4, duration_seconds: %d, "+
		"warmup_seconds: 0}\nscaling: {mode: FIXED, worker_count: 2, per_worker_capacity: 2}\n", c.load, seconds)}, &run)
	phase := ""
	clitest.Until(c.t, clitest.StartTimeout, func() bool {
		if err := c.control.QueryRow(c.t.Context(), "SELECT coalesce(phase, '') FROM run_status WHERE run_id = $1",
			run.RunID).Scan(&phase); err != nil {
			c.t.Fatal(err)
		}
		return phase == string(engine.PhaseMeasurement)
	}, func() string { return phase + "\n" + c.servers[i].Out.String() })
	time.Sleep(after)
	return run
}

// awaitTakeover waits until another server owns the run, and returns how long that took from a time.
func (c *cluster) awaitTakeover(run engine.Run, epoch int64, from time.Time) time.Duration {
	c.t.Helper()
	var now int64
	clitest.Until(c.t, clitest.StartTimeout, func() bool {
		if err := c.control.QueryRow(c.t.Context(), "SELECT owner_epoch FROM run_status WHERE run_id = $1",
			run.RunID).Scan(&now); err != nil {
			c.t.Fatal(err)
		}
		return now > epoch
	}, func() string { return c.servers[0].Out.String() + c.servers[1].Out.String() })
	return time.Since(from)
}

func (c *cluster) epoch(run engine.Run) (epoch int64) {
	c.t.Helper()
	if err := c.control.QueryRow(c.t.Context(), "SELECT owner_epoch FROM run_status WHERE run_id = $1",
		run.RunID).Scan(&epoch); err != nil {
		c.t.Fatal(err)
	}
	return epoch
}

// orphanConnections are the connections of run workers to the target.
func (c *cluster) orphanConnections() (n int) {
	c.t.Helper()
	if err := c.target.QueryRow(c.t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "+
		"'loadstone worker%' AND datname = current_database()").Scan(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// checkRun checks what a run shows in whose course something was killed: its account is
// balanced, or says what is missing; nothing that was acknowledged is lost, and nothing is left.
func (c *cluster) checkRun(d engine.RunDetail, cause string) {
	c.t.Helper()
	s := d.Summary
	var causes []string
	for _, cause := range s.ValidityDetail.Causes {
		causes = append(causes, cause.Cause)
		if cause.From.IsZero() || cause.To.Before(cause.From.Time) {
			c.t.Errorf("%s from %v to %v", cause.Cause, cause.From, cause.To)
		}
	}
	if s.Validity != engine.VerdictDegraded || !slices.Contains(causes, cause) {
		c.t.Errorf("%s with %v, which do not say %s", s.Validity, causes, cause)
	}
	incomplete := slices.Contains(causes, engine.CauseIncompleteRecord)
	if a := s.Accounting; !incomplete && (!a.Balanced || a.Recorded != a.Started || a.Recorded == 0) {
		c.t.Errorf("%s: the account %+v with %v", d.Status, a, causes)
	}
	clitest.Until(c.t, time.Minute, func() bool { return spooledParts(c.nodeDir) == 0 }, c.node.Out.String)
	if n := c.orphanConnections(); n > 0 {
		c.t.Errorf("%d connections of run workers are left", n)
	}
}

// checkLoadContinued checks that the load of a run was there for as long as it was measured, whoever carried the run.
// How fast the machine executed it is another matter: what was due counts.
func (c *cluster) checkLoadContinued(d engine.RunDetail, seconds int) {
	c.t.Helper()
	s, whole := d.Summary, int64(200*seconds)
	if a := s.Accounting; d.Status != engine.StatusCompleted || !a.Balanced || a.Scheduled < whole*9/10 ||
		s.DurationSeconds != float64(seconds) {
		c.t.Errorf("%s (%v), %.1f/s over %v s from %v to %v, begun %v, stopped %v, %d of them late by %v s: %+v, %v",
			d.Status, d.CancellationReason, *s.QPS, s.DurationSeconds, s.MeasuredFrom, s.MeasuredTo, d.WarmupEndTime,
			d.MeasurementEndTime,
			s.FinishedLate, s.DrainSeconds, a, s.ValidityDetail)
	}
}

// checkTakeover kills the server that owns a run: the other one goes on with it.
func (c *cluster) checkTakeover(i, seconds int, after time.Duration) time.Duration {
	c.t.Helper()
	run := c.start(i, seconds, after)
	epoch := c.epoch(run)
	c.kill(c.servers[i])
	took := c.awaitTakeover(run, epoch, time.Now())
	c.serve(i)
	d := c.proxies[1-i].AwaitEnd(run.RunID, c.servers[1-i])
	c.checkLoadContinued(d, seconds)
	c.checkRun(d, engine.CauseSnapshotGap)
	c.reach(i)
	return took
}

// checkRestart kills the server that owns a run and starts it again at once: it goes on.
func (c *cluster) checkRestart(i, seconds int, after time.Duration) time.Duration {
	c.t.Helper()
	run := c.start(i, seconds, after)
	epoch, killed := c.epoch(run), time.Now()
	c.kill(c.servers[i])
	c.serve(i)
	took := c.awaitTakeover(run, epoch, killed)
	c.reach(i)
	d := c.proxies[i].AwaitEnd(run.RunID, c.servers[i])
	c.checkLoadContinued(d, seconds)
	c.checkRun(d, engine.CauseSnapshotGap)
	return took
}

// checkNodeKilled kills the node and starts it again: the run fails, and says what it has lost.
func (c *cluster) checkNodeKilled(i, seconds int, after time.Duration) time.Duration {
	c.t.Helper()
	run := c.start(i, seconds, after+1500*time.Millisecond) // parts begin with the first second
	killed := time.Now()
	c.kill(c.node.Process)
	c.node = clitest.StartNode(c.t, c.nodeDir, c.node.Address)
	d := c.proxies[i].AwaitEnd(run.RunID, c.servers[i])
	if d.Status != engine.StatusFailed {
		c.t.Errorf("%s (%v)", d.Status, d.CancellationReason)
	}
	c.checkRun(d, engine.CauseLostWorker)
	return time.Since(killed)
}

// TestRoundsOfKills: servers and nodes are killed in turn while they carry a run. In the
// soak LOADSTONE_KILLS says how many rounds there are, with real limits when LOADSTONE_LEASE is unset.
func TestRoundsOfKills(t *testing.T) {
	clitest.Simulated(t)
	t.Parallel()
	rounds, limit, seconds := 3, "1500ms", 5
	if n, err := strconv.Atoi(os.Getenv("LOADSTONE_KILLS")); err == nil {
		rounds, limit = n, os.Getenv("LOADSTONE_LEASE")
	}
	if limit != "" {
		clitest.LeasesOf.Store(t.Name(), limit)
	} else {
		seconds = 30
	}
	c := newCluster(t)
	kinds := []struct {
		name string
		kill func(i, seconds int, after time.Duration) time.Duration
	}{{"the owner, and the other succeeds it", c.checkTakeover}, {"the node", c.checkNodeKilled},
		{"the owner, which comes back", c.checkRestart}}
	longest := map[string]time.Duration{}
	for round := range rounds {
		k := kinds[round%len(kinds)]
		after := rand.N(time.Second)
		took := k.kill(round%2, seconds, after)
		longest[k.name] = max(longest[k.name], took)
		t.Logf("round %d, killed after %v: %s: %v", round, after.Round(time.Millisecond), k.name,
			took.Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("server 0:\n%s\nserver 1:\n%s\nnode:\n%s", c.servers[0].Out.String(), c.servers[1].Out.String(),
				c.node.Out.String())
		}
	}
	t.Logf("the longest: %v", longest)
	if os.Getenv("LOADSTONE_KILLS") != "" {
		time.Sleep(time.Minute)
		if n := c.orphanConnections(); n > 0 {
			t.Errorf("%d connections of run workers are there a minute later", n)
		}
	}
	if took := longest[kinds[0].name]; limit == "" && took > 20*time.Second {
		t.Errorf("a takeover took %v", took)
	}
}

// TestAnyServerProcessStopsARun: what one server is asked reaches the other, which carries the
// run; when that has been killed the asker says so, and does it when it has taken the run over.
func TestAnyServerProcessStopsARun(t *testing.T) {
	clitest.Simulated(t)
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("three processes for what engine/run tests in one: only in the soak")
	}
	t.Parallel()
	clitest.LeasesOf.Store(t.Name(), "8s")
	c := newCluster(t)
	run := c.start(0, 600, time.Second)
	var stopped engine.Run
	begin := time.Now()
	c.proxies[1].Do("POST", "/api/runs/"+run.RunID+"/stop", struct{}{}, &stopped)
	t.Logf("stopped through the other server after %v", time.Since(begin))
	if stopped.StopReason != engine.StopUserRequested {
		t.Errorf("%s, %s", stopped.Status, stopped.StopReason)
	}
	if d := c.proxies[0].AwaitEnd(run.RunID, c.servers[0]); d.Status != engine.StatusCancelled ||
		!d.Summary.Accounting.Balanced {
		t.Errorf("%s, %+v", d.Status, d.Summary.Accounting)
	}
	run = c.start(0, 600, time.Second)
	c.kill(c.servers[0])
	code, err := c.proxies[1].Try("POST", "/api/runs/"+run.RunID+"/stop", struct{}{}, &stopped)
	if code != http.StatusServiceUnavailable {
		t.Errorf("of a dead server's run: %d, %v", code, err)
	}
	t.Logf("of a dead server's run: %d, %v", code, err)
	if d := c.proxies[1].AwaitEnd(run.RunID, c.servers[1]); d.Status != engine.StatusCancelled ||
		d.StopReason != engine.StopUserRequested || !d.Summary.Accounting.Balanced {
		t.Errorf("%s, %s, %+v\n%s", d.Status, d.StopReason, d.Summary.Accounting, c.servers[1].Out.String())
	}
}
