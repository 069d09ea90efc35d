package server_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/andybalholm/brotli"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server"
)

func TestPage(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.token = ""
	anonymous := []string{"Authorization", ""}
	for _, path := range []string{"/", "/runs/abc", "/signin?token=x", "/templates/new"} {
		a := b.do("GET", path, nil, anonymous...).want(t, 200)
		if !strings.Contains(string(a.body), "<title>page</title>") || a.Header.Get("Cache-Control") != "no-cache" ||
			a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %v %s", path, a.Header, a.body)
		}
		csp := a.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "script-src 'self';") || !strings.Contains(csp, "frame-ancestors 'none'") ||
			a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Referrer-Policy") == "" {
			t.Errorf("headers %v", a.Header)
		}
	}
	const script = "/assets/index-B1c2D3e4.js"
	plain := b.do("GET", script, nil, anonymous...).want(t, 200)
	if !strings.Contains(plain.Header.Get("Cache-Control"), "immutable") ||
		plain.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("script %v", plain.Header)
	}
	for encoding, reader := range map[string]func(io.Reader) (io.Reader, error){
		"br":   func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	} {
		a := b.do("GET", script, nil, "Authorization", "", "Accept-Encoding", encoding).want(t, 200)
		r, err := reader(bytes.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(data, plain.body) || len(a.body) >= len(plain.body) ||
			a.Header.Get("Content-Encoding") != encoding {
			t.Errorf("%s: %v, %d of %d bytes, %v", encoding, err, len(a.body), len(plain.body), a.Header)
		}
	}
	a := b.do("GET", script, nil, "Authorization", "", "If-None-Match", plain.Header.Get("ETag"))
	if a.StatusCode != http.StatusNotModified || len(a.body) != 0 {
		t.Errorf("status %d, %d bytes", a.StatusCode, len(a.body))
	}
	if a := b.do("HEAD", "/", nil, anonymous...).want(t, 200); len(a.body) != 0 {
		t.Error("HEAD has a body")
	}
	for _, path := range []string{"/assets/index-old.js", "/favicon.ico", "/.gitkeep", "/assets/../../go.mod"} {
		b.do("GET", path, nil, anonymous...).problem(t, 404, engine.CodeNotFound)
	}
}

func TestPageThatIsNotBuilt(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.UI = fstest.MapFS{".gitkeep": {}} })
	a := b.do("GET", "/", nil, "Accept", "text/html").want(t, 503)
	if !strings.Contains(string(a.body), "make build") {
		t.Errorf("page %s", a.body)
	}
	b.do("GET", "/", nil).problem(t, 503, engine.CodeUnavailable)
}

func TestProbesAndMetrics(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.createRun("measured")
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusRunning)
	b.runs.publish(&engine.LiveState{RunID: run.RunID, Ops: engine.OpsRate{CurrentPerSec: 123}})
	b.do("GET", "/api/runs/"+run.RunID, nil).want(t, 200)
	b.do("GET", "/api/some/thing/made/up", nil)
	b.do("GET", "/some/page", nil).want(t, 200)
	b.do("GET", "/readyz", nil, "Authorization", "").want(t, 200)
	text := string(b.do("GET", "/metrics", nil).want(t, 200).body)
	for _, want := range []string{
		`loadstone_live_runs{phase="MEASUREMENT"} 1`, `loadstone_operations_per_second 123`,
		`loadstone_websocket_clients 0`,
		`loadstone_http_requests_total{method="GET",route="/api/runs/:id",status="200"} 1`, `route="not_found",status="404"`,
		`route="page",status="200"`,
		"go_goroutines", "process_resident_memory_bytes", `loadstone_build_info{version="1.2.3"} 1`,
		"loadstone_control_store_up 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(text, "made/up") {
		t.Error("a made-up path became a label")
	}
}

// TestAServerWithoutANodeShowsThePage: a probe that leaves nodes out does not take it out of service, and with it the
// page on which nodes are added and resumed.
func TestAServerWithoutANodeShowsThePage(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) {
		o.Nodes, o.Readiness = func() int { return 0 }, &prospects{nodes: errors.New("none")}
	})
	b.do("GET", "/readyz", nil, "Authorization", "").problem(t, 503, engine.CodeUnavailable)
	text := string(b.do("GET", "/readyz?exclude=nodes,results", nil, "Authorization", "").want(t, 200).body)
	if !strings.Contains(text, `"nodes":0`) {
		t.Errorf("%s", text)
	}
	if text = string(b.do("GET", "/metrics", nil).want(t, 200).body); !strings.Contains(text, "\nloadstone_nodes 0\n") ||
		!strings.Contains(text, "\nloadstone_can_create_runs 0\n") {
		t.Error("the metrics count a node, or say that runs are taken in")
	}
}

// TestWhereRunsWaitForNodesNoneIsMissed: a server whose nodes come with its runs is as ready without one, and its metrics
// say so, by which an alert goes.
func TestWhereRunsWaitForNodesNoneIsMissed(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Nodes, o.Readiness = func() int { return 0 }, &prospects{} })
	b.do("GET", "/readyz", nil, "Authorization", "").want(t, 200)
	text := string(b.do("GET", "/metrics", nil).want(t, 200).body)
	if !strings.Contains(text, "\nloadstone_nodes 0\n") || !strings.Contains(text, "\nloadstone_can_create_runs 1\n") {
		t.Error("the metrics say that runs are refused")
	}
}
