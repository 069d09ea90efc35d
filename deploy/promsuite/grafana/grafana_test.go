package grafana

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"
	"github.com/grafana/grafana-plugin-sdk-go/backend/log"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/grafana/grafana/pkg/promlib"
)

const template = `name: read by Grafana
target:
  connection: playground
  adapter: postgres
  table_name: orders
  prepare: {rows: 1000, if_exists: use}
workload:
  plugin: mix
  params: {weights: {POINT_LOOKUP: 80, UPDATE: 20}}
  load_mode: CONCURRENCY
  concurrent_connections: 2
  warmup_seconds: 2
  duration_seconds: 10
`

// serve starts the program named by LOADSTONE_PROGRAM, which makes a run, and has its address and a token that may
// only read.
func serve(t *testing.T) (base, token string) {
	t.Helper()
	program := os.Getenv("LOADSTONE_PROGRAM")
	if program == "" {
		t.Skip("LOADSTONE_PROGRAM names no program")
	}
	dir, err := os.MkdirTemp("", "loadstone-grafana-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // for the user that Postgres runs as
		t.Fatal(err)
	}
	file, data := filepath.Join(dir, "template.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	cmd := exec.CommandContext(context.Background(), program, "serve", "--data-dir", data, "--listen", "127.0.0.1:0",
		"--calibrate", "off", "--run", file)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if _ = cmd.Wait(); t.Failed() {
			t.Log(said())
		}
	})
	for begin := time.Now(); !strings.Contains(said(), "Serving on;"); time.Sleep(100 * time.Millisecond) {
		if time.Since(begin) > 3*time.Minute {
			t.Fatal("the run did not end")
		}
	}
	base = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(said()[strings.Index(said(), "Open:"):])
	text, err := exec.CommandContext(t.Context(), program, "token", "grafana", "--scope", "read", "--data-dir",
		data).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return base, regexp.MustCompile(`\S{30,}`).FindString(string(text))
}

// source is a data source as Grafana has it provisioned.
type source struct {
	*promlib.Service
	t       *testing.T
	context backend.PluginContext
}

func newSource(t *testing.T, address, method, token string) *source {
	t.Helper()
	settings, err := json.Marshal(map[string]any{"httpMethod": method, "timeInterval": "1s",
		"httpHeaderName1": "Authorization"})
	if err != nil {
		t.Fatal(err)
	}
	same := func(context.Context, backend.DataSourceInstanceSettings, *httpclient.Options, log.Logger) error {
		return nil
	}
	about := backend.DataSourceInstanceSettings{ID: 1, UID: "loadstone-" + method, Type: "prometheus", URL: address,
		JSONData: settings, DecryptedSecureJSONData: map[string]string{"httpHeaderValue1": "Bearer " + token},
		Updated: time.Now()}
	return &source{promlib.NewService(httpclient.NewProvider(), log.DefaultLogger, same), t,
		backend.PluginContext{OrgID: 1, PluginID: "prometheus", DataSourceInstanceSettings: &about}}
}

// query asks as a panel does.
func (s *source) query(model map[string]any, from, to time.Time) (data.Frames, error) {
	s.t.Helper()
	text, err := json.Marshal(model)
	if err != nil {
		s.t.Fatal(err)
	}
	panel := backend.DataQuery{RefID: "A", JSON: text, TimeRange: backend.TimeRange{From: from, To: to},
		Interval: time.Second, MaxDataPoints: 1000}
	answer, err := s.QueryData(s.t.Context(), &backend.QueryDataRequest{PluginContext: s.context,
		Queries: []backend.DataQuery{panel}})
	if err != nil {
		return nil, err
	}
	return answer.Responses["A"].Frames, answer.Responses["A"].Error
}

// resource calls what the editor of queries asks for.
func (s *source) resource(method, path string, q url.Values, into any) int {
	s.t.Helper()
	req := &backend.CallResourceRequest{PluginContext: s.context, Method: method, Path: path,
		URL: path + "?" + q.Encode()}
	if method == http.MethodPost {
		req.URL, req.Body = path, []byte(q.Encode())
	}
	var got *backend.CallResourceResponse
	if err := s.CallResource(s.t.Context(), req, backend.CallResourceResponseSenderFunc(
		func(r *backend.CallResourceResponse) error { got = r; return nil })); err != nil {
		s.t.Fatal(err)
	}
	var answer struct {
		Status string
		Data   json.RawMessage
	}
	if err := json.Unmarshal(got.Body, &answer); err != nil || answer.Status != "success" {
		s.t.Fatalf("%s %s: %d %s", method, path, got.Status, got.Body)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		s.t.Fatalf("%s %s: %v: %s", method, path, err, answer.Data)
	}
	return got.Status
}

// values are those of the numbers of a frame that are none of NaN.
func values(f *data.Frame) (all []float64) {
	for _, field := range f.Fields {
		for i := range field.Len() {
			if v, err := field.FloatAt(i); err == nil && field.Type() != data.FieldTypeTime && !math.IsNaN(v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// TestGrafanasDataSource: what Grafana's backend of the data source asks (health, panels, alerts, exemplars, what the
// editor shows) is answered, by GET and by POST.
func TestGrafanasDataSource(t *testing.T) {
	base, token := serve(t)
	from, to := time.Now().Add(-5*time.Minute), time.Now()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			s := newSource(t, base+"/prometheus", method, token)
			h, err := s.CheckHealth(t.Context(), &backend.CheckHealthRequest{PluginContext: s.context})
			if err != nil || h.Status != backend.HealthStatusOk || !strings.Contains(string(h.JSONDetails), "Prometheus") {
				t.Errorf("health: %+v, %s, %v", h, h.JSONDetails, err)
			}
			s.panels(from, to)
			s.editor(method, from, to)
		})
	}
	h, err := newSource(t, base+"/prometheus", "post", "lst_nobody").CheckHealth(t.Context(),
		&backend.CheckHealthRequest{PluginContext: newSource(t, base+"/prometheus", "post", "lst_nobody").context})
	if err == nil && h.Status == backend.HealthStatusOk {
		t.Errorf("a token that is none is healthy: %+v", h)
	}
}

// panels asks what panels and alerts do.
func (s *source) panels(from, to time.Time) {
	t := s.t
	t.Helper()
	frames, err := s.query(map[string]any{"expr": `sum by (kind) (rate(loadstone_operations_total[$__rate_interval]))`,
		"range": true, "legendFormat": "{{kind}}", "intervalMs": 1000}, from, to)
	var names []string
	for _, f := range frames {
		if len(f.Fields) == 2 && len(values(f)) > 5 {
			names = append(names, f.Fields[1].Config.DisplayNameFromDS)
		}
	}
	if slices.Sort(names); err != nil || fmt.Sprint(names) != "[POINT_LOOKUP UPDATE]" {
		t.Errorf("a panel has %v, %v", names, err)
	}
	frames, err = s.query(map[string]any{"expr": `sum(max_over_time(loadstone_operations_total[10m]))`, "instant": true},
		from, to)
	if err != nil || len(frames) != 1 || len(values(frames[0])) != 1 || values(frames[0])[0] < 100 {
		t.Errorf("an instant has %v, %v", frames, err)
	}
	frames, err = s.query(map[string]any{"expr": `sum(rate(loadstone_latency_seconds[10s]))`, "range": true,
		"format": "heatmap", "intervalMs": 1000}, from, to)
	if err != nil || len(frames) == 0 || frames[0].Rows() < 10 {
		t.Errorf("a heat map of native histograms has %v, %v", frames, err)
	}
	frames, err = s.query(map[string]any{"expr": `histogram_quantile(0.99, sum(rate(loadstone_latency_seconds[10s])))`,
		"range": true, "intervalMs": 1000}, from, to)
	if err != nil || len(frames) != 1 || len(values(frames[0])) < 5 {
		t.Errorf("a quantile has %v, %v", frames, err)
	}
	if frames, err = s.query(map[string]any{"expr": `sum(rate(loadstone_operations_total[10s]))`, "range": true,
		"exemplar": true, "intervalMs": 1000}, from, to); err != nil || len(frames) == 0 {
		t.Errorf("with exemplars: %v, %v", frames, err)
	}
	if _, err = s.query(map[string]any{"expr": `sum(rate(`, "range": true}, from, to); err == nil ||
		!strings.Contains(err.Error(), "parse error") && !strings.Contains(err.Error(), "unclosed") {
		t.Errorf("a wrong expression: %v", err)
	}
}

// editor asks what the editor of queries and the variables of dashboards do.
func (s *source) editor(method string, from, to time.Time) {
	t := s.t
	t.Helper()
	span := url.Values{"start": {fmt.Sprint(from.Unix())}, "end": {fmt.Sprint(to.Unix())}}
	with := func(match string) url.Values {
		q := url.Values{"match[]": {match}}
		for k, v := range span {
			q[k] = v
		}
		return q
	}
	var texts []string
	for _, method := range slices.Compact([]string{http.MethodGet, method}) { // by GET alone where it is set to that
		if s.resource(
			method,
			"api/v1/labels",
			with(`{__name__="loadstone_operations_total"}`),
			&texts,
		); !slices.Contains(texts,
			"kind") ||
			slices.Contains(texts, "worker") {
			t.Errorf("labels by %s: %v", method, texts)
		}
		var series []map[string]string
		if s.resource(method, "api/v1/series", with("loadstone_operations_total"), &series); len(series) != 4 {
			t.Errorf("series by %s: %v", method, series)
		}
		exemplars := []any{"none"}
		q := url.Values{"query": {"loadstone_operations_total"}, "start": span["start"], "end": span["end"]}
		if s.resource(method, "api/v1/query_exemplars", q, &exemplars); len(exemplars) > 0 {
			t.Errorf("exemplars by %s: %v", method, exemplars)
		}
	}
	if s.resource(http.MethodGet, "api/v1/label/__name__/values", span, &texts); !slices.Contains(texts,
		"loadstone_latency_seconds") {
		t.Errorf("metrics: %v", texts)
	}
	if s.resource(http.MethodGet, "api/v1/label/kind/values", with("loadstone_operations_total"), &texts); fmt.Sprint(
		texts) != "[POINT_LOOKUP UPDATE]" {
		t.Errorf("kinds: %v", texts)
	}
	var metadata map[string][]struct{ Type, Help, Unit string }
	if s.resource(http.MethodGet, "api/v1/metadata", nil, &metadata); len(metadata["loadstone_operations_total"]) != 1 ||
		metadata["loadstone_operations_total"][0].Type != "counter" {
		t.Errorf("metadata: %v", metadata)
	}
	var rules struct{ Groups []any }
	s.resource(http.MethodGet, "api/v1/rules", nil, &rules)
}
