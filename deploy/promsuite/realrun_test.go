package promsuite_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"

	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
)

const template = `name: sent elsewhere
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

// TestARealRunIsAnsweredAlike: the program named by LOADSTONE_PROGRAM makes a run, of which Prometheus' own receiver
// and a stand-in for Grafana are told; beside them hangs one that never answers. What was received answers as the
// program does, and the program ends in time.
func TestARealRunIsAnsweredAlike(t *testing.T) {
	r := receive(t, remoteapi.WriteV2MessageType)
	ending := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ending }))
	defer hangs.Close()
	defer close(ending)
	var mu sync.Mutex
	var marks []notify.Annotation
	grafana := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var a notify.Annotation
		if json.NewDecoder(q.Body).Decode(&a) != nil || q.Header.Get("Authorization") != "Bearer token-of-grafana" {
			w.WriteHeader(http.StatusBadRequest)
		}
		mu.Lock()
		defer mu.Unlock()
		marks = append(marks, a)
	}))
	defer grafana.Close()
	p := serve(t, folder(t), []string{"LOADSTONE_GRAFANA_TOKEN=token-of-grafana"}, "--run", written(t), "--remote-write",
		r.url, "--remote-write", hangs.URL+"/?key=secret-of-the-url", "--grafana-url", grafana.URL)
	time.Sleep(6 * time.Second) // the last seconds settle
	// Operations of a live run have the phase in which they ended, those of its record that in which they were due: phases
	// are not compared.
	for _, text := range []string{`sum(max_over_time(loadstone_operations_total[10m]))`,
		`sum by (kind) (max_over_time(loadstone_operations_total[10m]))`,
		`sum(max_over_time(loadstone_worker_operations_total[10m]))`,
		`histogram_quantile(0.99, sum(last_over_time(loadstone_latency_seconds{phase="measurement"}[10m])))`} {
		at := time.Now()
		here := p.ask(text, at)
		q, err := promql.DefaultOptions().Engine(5*time.Minute).NewInstantQuery(t.Context(), r.db, nil, text, at)
		if err != nil {
			t.Fatal(err)
		}
		v, err := q.Exec(t.Context()).Vector()
		if err != nil || len(v) == 0 || len(v) != len(here) {
			t.Errorf("%s: %v, %v there; %v here", text, v, err, here)
		}
		for _, s := range v {
			key := s.Metric.Get("kind") + s.Metric.Get("phase")
			t.Logf("%s %s: %g there, %g here", text, key, s.F, here[key])
			if math.Abs(s.F-here[key]) > allowed(text)*here[key] {
				t.Errorf("%s: %g there, %g here", text, s.F, here[key])
			}
		}
		q.Close()
	}
	mu.Lock()
	if len(marks) != 4 {
		t.Errorf("annotations: %+v", marks)
	}
	mu.Unlock()
	if took := p.end(); took > 40*time.Second {
		t.Errorf("the end took %s", took)
	} else {
		t.Logf("the end took %s beside a receiver that hangs", took)
	}
	if strings.Contains(p.said(), "secret-of-the-url") || strings.Contains(p.said(), "token-of-grafana") {
		t.Error("the log has a secret")
	}
}

// written is a file with a template.
func written(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(name, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// allowed is by what part values may differ: a quantile by two buckets, since the second in which the phase changes is
// divided otherwise.
func allowed(text string) float64 {
	if strings.HasPrefix(text, "histogram_quantile") {
		return 0.022
	}
	return 1e-9
}

// ask asks the program, and has values by kind and phase.
func (p *program) ask(text string, at time.Time) map[string]float64 {
	p.t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	p.get("/prometheus/api/v1/query?"+url.Values{"query": {text}, "time": {at.Format(time.RFC3339Nano)}}.Encode(), &answer)
	all := map[string]float64{}
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(r.Value[1].(string), 64)
		if err != nil {
			p.t.Fatal(err)
		}
		all[r.Metric["kind"]+r.Metric["phase"]] = v
	}
	return all
}
