package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
)

const storeFaultRate = 200

// storeFault is a fault of the control store under a run that another process carries.
type storeFault struct {
	name string
	// duration is for how long the store is away, load for how long the run lasts.
	duration, load time.Duration
	// breakStore and back are done by whom reaches the store how.
	breakStore, restoreStore func(a *faultyStoreCluster)
	// takenOver says that the other server has the run in the end, kept that it has not.
	takenOver, kept bool
}

// faultyStoreCluster is a cluster whose control store goes away: both servers reach it on a road each.
type faultyStoreCluster struct {
	*cluster
	store        *outageStore
	storeProxies [2]*netProxy
}

func newFaultyStoreCluster(t *testing.T) *faultyStoreCluster {
	t.Helper()
	a := &faultyStoreCluster{store: newOutageStore(t)}
	url := a.store.url()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	var paths [2]string
	for i := range a.storeProxies {
		a.storeProxies[i] = newNetProxy(t, "unix", fmt.Sprintf("%s/.s.PGSQL.%d", c.Host, c.Port))
		paths[i] = fmt.Sprintf(
			"postgres://%s:%s@%s/%s?sslmode=disable",
			c.User,
			c.Password,
			a.storeProxies[i].address(),
			c.Database,
		)
	}
	dir := t.TempDir()
	n := clitest.StartNode(t, dir, "")
	a.cluster = newClusterOn(t, url, paths, func(int) []string { return []string{"--nodes", n.Address} })
	a.node, a.nodeDir = n, dir
	return a
}

// rate is what a server says that a run does now, or how it refuses to say.
func (a *faultyStoreCluster) rate(i int, runID string) string {
	var d engine.RunDetail
	begin := time.Now()
	code, err := a.proxies[i].Try("GET", "/api/runs/"+runID, nil, &d)
	ready, _ := a.proxies[i].Try("GET", "/readyz", nil, nil)
	message := fmt.Sprintf("%d after %v, readyz %d", code, time.Since(begin).Round(time.Millisecond), ready)
	if err != nil {
		return message + ": " + err.Error()
	}
	message += fmt.Sprintf(", %s/%s", d.Status, d.Phase)
	if d.Live != nil {
		message += fmt.Sprintf(", %.1f/s", d.Live.Ops.CurrentPerSec)
	}
	return message
}

// longestGap is the longest time, in seconds, between two points of a run's curve.
func (a *faultyStoreCluster) longestGap(runID string) (gap float64) {
	a.t.Helper()
	if err := a.control.QueryRow(a.t.Context(), "SELECT coalesce(max(s - before), 0) FROM (SELECT elapsed_seconds AS s, "+
		"lag(elapsed_seconds) OVER (ORDER BY elapsed_seconds) AS before FROM metrics_snapshots WHERE run_id = $1) AS p",
		runID).Scan(&gap); err != nil {
		a.t.Fatal(err)
	}
	return gap
}

// TestTheControlStoreGoesAway from a server whose run a node in another process carries: it is restarted, it
// hangs, or the way to it is cut. The load goes on, and nobody offers more than was asked for.
func TestTheControlStoreGoesAway(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("takes minutes; make soak sets LOADSTONE_SOAK")
	}
	stop, start := func(a *faultyStoreCluster) { a.store.stop() }, func(a *faultyStoreCluster) { a.store.start() }
	freeze := func(a *faultyStoreCluster) { a.store.signal(syscall.SIGSTOP) }
	thaw := func(a *faultyStoreCluster) { a.store.signal(syscall.SIGCONT) }
	for _, c := range []storeFault{
		{"stopped for 5 s", 5 * time.Second, 40 * time.Second, stop, start, false, true},
		{"stopped for 40 s", 40 * time.Second, 90 * time.Second, stop, start, false, true},
		{"hangs for 40 s", 40 * time.Second, 90 * time.Second, freeze, thaw, false, true},
		{"the owner's way is cut for 40 s", 40 * time.Second, 90 * time.Second, func(a *faultyStoreCluster) { a.storeProxies[0].block() },
			func(a *faultyStoreCluster) { a.storeProxies[0].carry() }, true, false},
		{"the owner's way is cut for 100 s", 100 * time.Second, 150 * time.Second,
			func(a *faultyStoreCluster) { a.storeProxies[0].block() }, func(a *faultyStoreCluster) { a.storeProxies[0].carry() }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.run(t) })
	}
}

func (c storeFault) run(t *testing.T) {
	a := newFaultyStoreCluster(t)
	t.Cleanup(func() {
		if a.store.pg != nil {
			a.store.signal(syscall.SIGCONT)
		}
	})
	run := a.start(0, int(c.load.Seconds()), 3*time.Second)
	epoch := a.epoch(run)
	socket := a.proxies[0].Watch(run.RunID)
	at := time.Now()
	c.breakStore(a)
	for time.Since(at) < c.duration {
		p := payloadOf(t, socket)
		if time.Since(at) > 2*time.Second {
			t.Logf("%v: socket %s %.1f/s; owner %s; other %s", time.Since(at).Round(time.Second), p.Status,
				p.Ops.CurrentPerSec, a.rate(0, run.RunID), a.rate(1, run.RunID))
		}
		time.Sleep(time.Second)
	}
	c.restoreStore(a)
	clitest.Until(t, clitest.StartTimeout, func() bool {
		code, _ := a.proxies[0].Try("GET", "/readyz", nil, nil)
		return code == http.StatusOK
	}, a.servers[0].Out.String)
	t.Logf("ready %v after", time.Since(at))
	conn, err := pgx.Connect(t.Context(), a.store.url())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	a.control = conn
	d := a.proxies[0].AwaitEnd(run.RunID, a.servers[0])
	other := a.proxies[1].AwaitEnd(run.RunID, a.servers[1])
	taken := a.epoch(run) > epoch
	acc := d.Summary.Accounting
	var due []int64
	for id, w := range recordedOperations(t, run.RunID, a.results, a.node) {
		due = append(due, w.due...)
		t.Logf("%s: %d from %v to %v after the fault", id, len(w.began), time.Unix(0, slices.Min(w.began)).Sub(at),
			time.Unix(0, slices.Max(w.began)).Sub(at))
	}
	limit := maxPerSecond(due)
	t.Logf("%s, %.1f/s, %+v; epochs %d to %d; at most %d of %d due in a second", d.Status, *d.Summary.QPS, acc, epoch,
		a.epoch(run), limit, storeFaultRate)
	for _, cause := range d.Summary.ValidityDetail.Causes {
		t.Logf("%s: %s: %s from %v to %v", d.Summary.Validity, cause.Cause, cause.Detail, cause.From, cause.To)
	}
	t.Logf("notes: %s", strings.Join(d.Summary.ValidityDetail.Notes, " | "))
	if d.Status != engine.StatusCompleted || other.Status != d.Status || !acc.Balanced || acc.Recorded != acc.Started ||
		acc.Started < int64(storeFaultRate*c.load.Seconds()*95/100) {
		t.Errorf("%s and %s, %+v", d.Status, other.Status, acc)
	}
	if c.takenOver && !taken || c.kept && taken {
		t.Errorf("taken over: %v", taken)
	}
	if limit > storeFaultRate+storeFaultRate/50 {
		t.Errorf("%d operations were due within one second", limit)
	}
	clitest.Until(t, time.Minute, func() bool { return a.orphanConnections() == 0 }, a.node.Out.String)
	if gap := a.longestGap(run.RunID); gap > 5 && !strings.Contains(fmt.Sprint(d.Summary.ValidityDetail.Causes),
		engine.CauseSnapshotGap) {
		t.Errorf("for %.1f s the curve has no point, and nothing says so", gap)
	} else {
		t.Logf("the widest gap of the curve: %.1f s", gap)
	}
	if t.Failed() {
		t.Logf("server 0:\n%s\nserver 1:\n%s\nnode:\n%s", a.servers[0].Out.String(), a.servers[1].Out.String(),
			a.node.Out.String())
	}
}
