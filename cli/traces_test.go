package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/trace"
	"github.com/loadstone-db/loadstone/engine/trace/otlptest"
)

// traced looks at the trace of a finished run of two run workers on a node of another process: it hangs together over
// both processes, and log and metrics lead to it.
func (c caller) traced(runID string, to *otlptest.Collector) {
	c.t.Helper()
	id := trace.ID(runID)
	count := func(name string) (found []otlptest.Span) {
		for _, s := range to.Of(id) {
			if s.Name == name {
				found = append(found, s)
			}
		}
		return found
	}
	until(c.t, time.Minute, func() bool { return len(count("run")) == 1 && len(count("run worker")) == 2 },
		func() string { return strings.Join(names(to.Of(id)), ", ") })
	run := count("run")[0]
	by := map[string]otlptest.Span{}
	for _, s := range to.Of(id) {
		if by[s.SpanID] = s; s.Fields["run_id"] != runID || s.Failed != "" {
			c.t.Errorf("%s says %v, %q", s.Name, s.Fields, s.Failed)
		}
	}
	for _, s := range to.Of(id) {
		if _, there := by[s.ParentID]; !there && s.SpanID != run.SpanID {
			c.t.Errorf("%s is part of %q, which has not come", s.Name, s.ParentID)
		}
	}
	for name, want := range map[string]int{"assign": 2, "send START": 1, "send STOP": 1, "fetch artifact": 2, "load": 2,
		"set-up": 2, "phase MEASUREMENT": 1, "placement": 1} {
		if got := len(count(name)); got < want {
			c.t.Errorf("%d spans %q, want %d: %v", got, name, want, names(to.Of(id)))
		}
	}
	for _, w := range count("run worker") {
		if w.Process["service.name"] != "loadstone-worker" || by[w.ParentID].Name != "assign" ||
			by[w.ParentID].Process["service.name"] != "loadstone-server" || w.Fields["worker_id"] == "" {
			c.t.Errorf("%+v is part of %+v", w, by[w.ParentID])
		}
	}
	for _, f := range count("fetch artifact") {
		if f.Fields["work_id"] == "" {
			c.t.Errorf("%v has no work_id", f.Fields)
		}
	}
	plain, _ := c.scraped("")
	text, kind := c.scraped("application/openmetrics-text; version=1.0.0")
	if !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(text, "# EOF\n") {
		c.t.Errorf("the metrics are %s", kind)
	}
	for _, name := range []string{"loadstone_work_assignment_seconds", "loadstone_artifact_fetch_seconds",
		"loadstone_artifact_ready_to_fetch_seconds", "loadstone_run_tick_seconds"} {
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.HasPrefix(line, name+"_bucket") && strings.Contains(line, `run_id="`+runID+`"`) &&
				strings.Contains(line, `trace_id="`+id+`"`) && strings.Contains(line, "} ")
		}) {
			c.t.Errorf("%s has no exemplar of the run", name)
		}
	}
	if strings.Contains(plain, runID) {
		c.t.Error("who asks for no OpenMetrics gets exemplars")
	}
}

// told looks whether the lines of a log about runs name their traces.
func told(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		_, after, about := strings.Cut(line, `"run_id":"`)
		id, _, _ := strings.Cut(after, `"`)
		if about && !strings.Contains(line, `"trace_id":"`+trace.ID(id)+`"`) {
			t.Errorf("a line about a run lacks its trace: %s", line)
		}
	}
}

func names(spans []otlptest.Span) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

// scraped are the metrics as who accepts that gets them.
func (c caller) scraped(accept string) (text, kind string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.base+"/metrics", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set(c.header[0], c.header[1])
	req.Header.Set("Accept", accept)
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(answer), res.Header.Get("Content-Type")
}

// TestARunThatChangesItsOwnerIsOneTrace: what both servers and the node tell of it has one id and hangs together, and
// the run itself is told once, by who ended it.
func TestARunThatChangesItsOwnerIsOneTrace(t *testing.T) {
	if os.Getenv("LOADSTONE_SOAK") == "" {
		t.Skip("three processes; make soak sets LOADSTONE_SOAK")
	}
	t.Parallel()
	shortLeases.Store(t.Name(), "1500ms")
	traces, collector := otlptest.HTTP(t)
	dir := t.TempDir()
	n := node(t, dir, "", "--otlp-endpoint", collector)
	c := newClusterOf(t, func(int) []string { return []string{"--nodes", n.address, "--otlp-endpoint", collector} })
	c.node, c.nodeDir = n, dir
	run := c.start(0, 15, 3*time.Second)
	epoch := c.epoch(run)
	c.kill(c.servers[0])
	c.taken(run, epoch, time.Now())
	if d := c.ways[1].settled(run.RunID, c.servers[1]); d.Status != engine.StatusCompleted {
		t.Fatalf("%s (%v)", d.Status, d.CancellationReason)
	}
	id := trace.ID(run.RunID)
	root := func() (found []otlptest.Span) {
		for _, s := range traces.Of(id) {
			if s.Name == "run" {
				found = append(found, s)
			}
		}
		return found
	}
	until(t, time.Minute, func() bool { return len(root()) > 0 },
		func() string { return fmt.Sprint(names(traces.Of(id))) })
	time.Sleep(3 * time.Second) // what else comes
	by, servers := map[string]bool{}, map[string]bool{}
	for _, s := range traces.Of(id) {
		by[s.SpanID] = true
		if s.Process["service.name"] == "loadstone-server" {
			servers[s.Process["service.instance.id"]] = true
		}
	}
	for _, s := range traces.Of(id) {
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
	t.Log(names(traces.Of(id)))
}
