package wiring

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/worker"
)

// TestANodeSaysWhetherItIsReady: it lives while it drains, and takes nothing new.
func TestANodeSaysWhetherItIsReady(t *testing.T) {
	m := NewNodeMetrics("1.2.3", nil)
	m.Read = func() worker.NodeState { return worker.NodeState{RunWorkers: 2, SpoolBytes: 7} }
	takes := true
	h := m.handler(func() bool { return takes })
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		takes bool
		path  string
		code  int
	}{{true, "/readyz", 200}, {true, "/livez", 200}, {false, "/readyz", 503}, {false, "/livez", 200}, {false, "/x", 404}} {
		takes = c.takes
		if code, _ := get(c.path); code != c.code {
			t.Errorf("%s while it takes work: %t: %d", c.path, c.takes, code)
		}
	}
	_, text := get("/metrics")
	for _, want := range []string{"loadstone_node_run_workers 2", "loadstone_node_spool_bytes 7",
		`loadstone_build_info{version="1.2.3"} 1`, "go_goroutines"} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}
