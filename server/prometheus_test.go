package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestRefusalsOfPrometheusAPI: what is refused before its handlers are asked has Prometheus' form too, which is all
// that Grafana and promtool read, and names the limit.
func TestRefusalsOfPrometheusAPI(t *testing.T) {
	t.Parallel()
	b := start(t)
	const form = "application/x-www-form-urlencoded"
	for name, c := range map[string]struct {
		method, path, body, token string
		status                    int
		kind, says                string
	}{
		"1 MB":       {"POST", "/query", "query=" + strings.Repeat("a%2B", 1<<19) + "a", b.token, 413, "bad_data", "1 MB"},
		"a stranger": {"GET", "/query?query=1", "", "", 401, "bad_data", "sign"},
		"nothing":    {"GET", "/nothing", "", b.token, 404, "not_found", "no"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, b.base+"/prometheus/api/v1"+c.path,
			strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", form)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var a struct{ Status, ErrorType, Error string }
		if err := json.NewDecoder(res.Body).Decode(&a); err != nil || res.StatusCode != c.status || a.Status != "error" ||
			a.ErrorType != c.kind || !strings.Contains(strings.ToLower(a.Error), strings.ToLower(c.says)) ||
			res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s %+v, %v", name, res.StatusCode, res.Header.Get("Content-Type"), a, err)
		}
		_ = res.Body.Close()
	}
	b.do("GET", "/healthz", nil).want(t, 200)
}
