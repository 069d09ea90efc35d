package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/otlptest"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// checkLogTraces looks whether the lines of a log about runs name their traces.
func checkLogTraces(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		_, after, about := strings.Cut(line, `"run_id":"`)
		id, _, _ := strings.Cut(after, `"`)
		if about && !strings.Contains(line, `"trace_id":"`+trace.ID(id)+`"`) {
			t.Errorf("a line about a run lacks its trace: %s", line)
		}
	}
}

// TestARunThatChangesItsOwnerIsOneTrace: what both servers and the node tell of it has one id and hangs together, and
// the run itself is told once, by who ended it.
func TestARunThatChangesItsOwnerIsOneTrace(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("three processes; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	clitest.LeasesOf.Store(t.Name(), "1500ms")
	traces, collector := otlptest.HTTP(t)
	dir := t.TempDir()
	n := clitest.StartNode(t, dir, "", "--otlp-endpoint", collector)
	c := newClusterOf(t, func(int) []string { return []string{"--nodes", n.Address, "--otlp-endpoint", collector} })
	c.node, c.nodeDir = n, dir
	run := c.start(0, 15, 3*time.Second)
	epoch := c.epoch(run)
	c.kill(c.servers[0])
	c.awaitTakeover(run, epoch, time.Now())
	if d := c.proxies[1].AwaitEnd(run.RunID, c.servers[1]); d.Status != engine.StatusCompleted {
		t.Fatalf("%s (%v)", d.Status, d.CancellationReason)
	}
	id := trace.ID(run.RunID)
	root := func() (found []otlptest.Span) {
		for _, s := range traces.Trace(id) {
			if s.Name == "run" {
				found = append(found, s)
			}
		}
		return found
	}
	clitest.Until(t, time.Minute, func() bool { return len(root()) > 0 },
		func() string { return fmt.Sprint(clitest.SpanNames(traces.Trace(id))) })
	time.Sleep(3 * time.Second) // what else comes
	by, servers := map[string]bool{}, map[string]bool{}
	for _, s := range traces.Trace(id) {
		by[s.SpanID] = true
		if s.Process["service.name"] == "loadstone-server" {
			servers[s.Process["service.instance.id"]] = true
		}
	}
	for _, s := range traces.Trace(id) {
		if s.Fields["run_id"] != run.RunID || s.Name != "run" && !by[s.ParentID] {
			t.Errorf("%s of %v is part of %q and says %v", s.Name, s.Process, s.ParentID, s.Fields)
		}
	}
	for _, s := range traces.Spans() {
		if s.TraceID != id && s.Fields["run_id"] == run.RunID {
			t.Errorf("%s of the run is in another trace", s.Name)
		}
	}
	if all := root(); len(all) != 1 || !strings.Contains(all[0].Fields["resumed"], "true") || len(servers) != 2 {
		t.Errorf("%d servers, and the run is %+v", len(servers), all)
	}
	t.Log(clitest.SpanNames(traces.Trace(id)))
}
