package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/objects/s3test"
)

// promAnswer is what of an answer of the HTTP API is looked at.
type promAnswer struct {
	Status, Error string
	Data          struct {
		Result json.RawMessage
		Stats  struct {
			QueryID string `json:"query_id"`
			Leaves  []struct {
				Pieces []struct {
					NodeID  string `json:"node_id"`
					WorkID  string `json:"work_id"`
					Fetched int
					Attempt int
				}
			}
		}
	}
}

// TestQueriesAreAnsweredByNodesOfOtherProcesses: a real server and two real nodes. Both logs name the query and its
// work; a node that is killed under queries changes no answer.
func TestQueriesAreAnsweredByNodesOfOtherProcesses(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("three processes and a run; make soak sets " + clitest.Soak)
	}
	load := pgtest.Start(t).NewDatabase(t)
	debug := []string{"--log-level", "debug", "--log-format", "json"}
	a, b := clitest.StartNode(t, t.TempDir(), "", debug...), clitest.StartNode(t, t.TempDir(), "", debug...)
	dir := reachable(t)
	served := clitest.Launch(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--calibrate", "off", "--data-dir",
		dir,
		"--refresh-workers", "2",
		"--nodes", a.Address + "," + b.Address}, debug...)...)
	session, _, _ := operatorOf(t, dir, served).SignIn()
	var run engine.Run
	for i := range 4 {
		session.Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: asked %d\ntarget:\n  "+
			"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, load_mode: QPS, target_qps: 100, concurrent_connections: 2, duration_seconds: 3, "+
			"warmup_seconds: 0}\n", i, load)}, &run)
		session.AwaitEnd(run.RunID, served)
	}
	now := time.Now()
	ask := func() (p promAnswer) {
		t.Helper()
		q := url.Values{"query": {`sum by (run) (last_over_time(loadstone_operations_total[10m]))`}, "stats": {"all"},
			"time": {fmt.Sprint(now.Unix())}}
		session.Do(http.MethodGet, "/prometheus/api/v1/query?"+q.Encode(), nil, &p)
		return p
	}
	var want promAnswer
	clitest.Until(t, time.Minute, func() bool {
		want = ask()
		nodes := map[string]bool{}
		live := false
		for _, l := range want.Data.Stats.Leaves {
			for _, p := range l.Pieces {
				nodes[p.NodeID] = true
				live = live || strings.Contains(p.WorkID, "live")
			}
		}
		return !live && len(nodes) >= 2 && strings.Count(string(want.Data.Result), `"run"`) == 4
	}, func() string { return fmt.Sprintf("%s %s %+v", want.Data.Result, want.Error, want.Data.Stats) })
	id := want.Data.Stats.QueryID
	for what, p := range map[string]*clitest.Process{"server": served, "one of the nodes": a.Process} {
		text := p.Out.String()
		if p == a.Process {
			text += b.Out.String()
		}
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool {
			return !strings.Contains(l, `"query_id":"`+id+`"`) || !strings.Contains(l, `"work_id":"`)
		})
		if len(lines) == 0 {
			t.Errorf("no line of the %s names the query %s and its work", what, id)
		}
	}
	longest := time.Duration(0)
	for i := range 60 {
		if i == 20 {
			_ = a.Cmd.Process.Kill()
		}
		begin := time.Now()
		p := ask()
		longest = max(longest, time.Since(begin))
		if string(p.Data.Result) != string(want.Data.Result) {
			t.Fatalf("query %d: %s %s, not %s", i, p.Data.Result, p.Error, want.Data.Result)
		}
	}
	t.Logf("the longest query beside a kill took %v", longest)
	if longest > 5*time.Second {
		t.Errorf("a killed node cost a query %v", longest)
	}
}

// TestQueriesWriteNothing: neither to the control store nor to the results database, however many there are, live runs
// and pieces that a node of another process evaluates included. What takes a number of a transaction writes; beside the
// queries are the heartbeats of server and node, which are counted before, for as long.
func TestQueriesWriteNothing(t *testing.T) {
	if os.Getenv(clitest.Soak) == "" {
		t.Skip("two processes, two runs and a minute; make soak sets " + clitest.Soak)
	}
	n := clitest.StartNode(t, t.TempDir(), "")
	in := startIngestCluster(t, s3test.Server{}, "--nodes", n.Address, "--local-capacity", "0", "--refresh-workers", "1")
	d, _ := in.run()
	// What is made of the run is made before.
	clitest.Until(t, 2*time.Minute, func() bool {
		if !in.ingestedRuns(d.RunID) || !in.settledQueue() {
			return false
		}
		time.Sleep(5 * time.Second)
		return in.settledQueue()
	}, in.served.Out.String)
	ask := func(path string, q url.Values) string {
		t.Helper()
		var p promAnswer
		in.netProxyTo.Do(http.MethodGet, "/prometheus/api/v1"+path+"?"+q.Encode(), nil, &p)
		if p.Status != "success" {
			t.Fatalf("%s %v: %s", path, q, p.Error)
		}
		for _, l := range p.Data.Stats.Leaves {
			for _, piece := range l.Pieces {
				if piece.NodeID != "" && piece.NodeID != protocol.OwnNode {
					return "pushed down"
				}
			}
		}
		return ""
	}
	written := func(wait func()) (of [2]int64) {
		t.Helper()
		for i, db := range []*pgxpool.Pool{in.controls, in.results} {
			of[i] -= count(t, db, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
		}
		wait()
		for i, db := range []*pgxpool.Pool{in.controls, in.results} {
			of[i] += count(t, db, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
		}
		return of
	}
	const queries = 400
	pushed := 0
	begin, end := fmt.Sprint(d.StartTime.Unix()), fmt.Sprint(d.EndTime.Unix())
	var took time.Duration
	busy := written(func() {
		from := time.Now()
		for i := range queries / 4 {
			for _, text := range []string{`sum by (worker) (rate(loadstone_operations_total[2s]))`,
				fmt.Sprintf(`histogram_quantile(0.9, sum(rate(loadstone_latency_seconds[3s])) + 0 * %d)`, i)} {
				if ask("/query_range", url.Values{"query": {text}, "start": {begin}, "end": {end}, "step": {"1"},
					"stats": {"all"}}) != "" {
					pushed++
				}
			}
			ask("/query", url.Values{"query": {"count(loadstone_connections)"}})
			in.netProxyTo.Do(http.MethodGet, "/prometheus/api/v1/series?"+url.Values{"match[]": {"loadstone_errors_total"},
				"start": {begin}, "end": {end}}.Encode(), nil, nil)
		}
		took = time.Since(from)
	})
	idle := written(func() { time.Sleep(took) })
	t.Logf("%d queries in %v, %d of them at a node of another process; transactions that wrote: %v, and %v without",
		queries, took, pushed, busy, idle)
	if pushed == 0 {
		t.Error("no query was pushed down to the node")
	}
	for i, name := range []string{"control store", "results database"} {
		if busy[i]-idle[i] > queries/8 {
			t.Errorf("%d transactions wrote to the %s beside queries, %d without", busy[i], name, idle[i])
		}
	}
}
