package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
)

// buildPreviousMinor builds the program as a minor version before, whose messages have neither at_most nor the epoch of
// an answer: it neither says them nor hears them. LOADSTONE_OLD names one that was really built from older sources.
func buildPreviousMinor(t *testing.T, dir, version string) string {
	t.Helper()
	if file := os.Getenv("LOADSTONE_OLD"); file != "" {
		return file
	}
	changed := map[string]string{}
	for name, words := range map[string][]string{
		"convert.go": {",\n\t\t\tAtMost: m.AtMost}", "}", ", AtMost: m.AtMost,", ",",
			", AtMost: w.RunEvent.GetAtMost()}", "}", ", AtMost: p.GetAtMost()}", "}"},
		"messages.go": {", Epoch: m.Epoch}", "}", ",\n\t\tEpoch: p.GetEpoch()}", "}"},
	} {
		path, err := filepath.Abs(filepath.Join("..", "engine", "control", "controlrpc", name))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed[path] = string(text)
		for pair := range slices.Chunk(words, 2) {
			if n := strings.Count(changed[path], pair[0]); n != 1 {
				t.Fatalf("%q is there %d times in %s", pair[0], n, name)
			}
			changed[path] = strings.Replace(changed[path], pair[0], pair[1], 1)
		}
	}
	return buildVersion(t, dir, version, overlay(t, dir, changed))
}

// TestATakeoverBetweenVersions: the server that owns a run on two nodes is killed, and the other one goes on with it,
// where a node, who was killed, or who goes on is a minor version older. The load is never above its target, and the
// account is balanced.
func TestATakeoverBetweenVersions(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("builds the program twice; make soak sets LOADSTONE_SOAK")
	}
	const rate, seconds = 200, 60
	dir := reachable(t)
	older, newer := buildPreviousMinor(t, dir, "v1.3.0"), buildVersion(t, dir, "v1.4.0")
	for name, programs := range map[string]struct{ dies, goesOn, one, other string }{
		"both nodes are older":        {newer, newer, older, older},
		"a node is older":             {newer, newer, older, newer},
		"the one that dies is older":  {older, newer, newer, older},
		"the one that goes on is old": {newer, older, newer, older},
	} {
		t.Run(name, func(t *testing.T) {
			clitest.LeasesOf.Store(t.Name(), "3s")
			one, other := clitest.StartNodeOf(
				t,
				programs.one,
				t.TempDir(),
				"",
			), clitest.StartNodeOf(
				t,
				programs.other,
				t.TempDir(),
				"",
			)
			c := newClusterOf(t, func(int) []string { return []string{"--nodes", one.Address + "," + other.Address} },
				programs.dies, programs.goesOn)
			c.node, c.nodeDir = one, one.Dir
			c.awaitNodes(0, 2)
			c.awaitNodes(1, 2)
			var run engine.Run
			c.proxies[0].Do("POST", "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf("name: apart\ntarget:\n  "+
				"connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
				"workload: {plugin: mix, load_mode: QPS, target_qps: %d, concurrent_connections: 8, duration_seconds: %d, "+
				"warmup_seconds: 0}\nscaling: {mode: BOUNDED, min_workers: 2, max_workers: 4, per_worker_capacity: 4}\n", c.load,
				rate, seconds)}, &run)
			c.proxies[0].AwaitLoad(run.RunID)
			time.Sleep(10 * time.Second)
			epoch := c.epoch(run)
			c.kill(c.servers[0])
			took := c.awaitTakeover(run, epoch, time.Now())
			d := c.proxies[1].AwaitEnd(run.RunID, c.servers[1])
			var due []int64
			for _, w := range recordedOperations(t, run.RunID, c.results, one, other) {
				due = append(due, w.due...)
			}
			limit, a := maxPerSecond(due), d.Summary.Accounting
			t.Logf("taken over after %v; %s, %s; at most %d due in a second; %+v; %v", took, d.Status, d.Summary.Validity, limit,
				a, d.Summary.ValidityDetail.Causes)
			if d.Status != engine.StatusCompleted || !a.Balanced || a.Recorded != a.Started || limit > rate+rate/50 ||
				a.Scheduled < rate*seconds*9/10 {
				t.Errorf("%s (%v), at most %d due in a second, %+v", d.Status, d.CancellationReason, limit, a)
			}
			if t.Failed() {
				t.Logf("server:\n%s\nnodes:\n%s\n%s", c.servers[1].Out.String(), one.Out.String(), other.Out.String())
			}
		})
	}
}
