package promsuite_test

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"

	"github.com/loadstone-db/loadstone/engine/explore/leaf"
	"github.com/loadstone-db/loadstone/engine/outflow/annotate"
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
	program := os.Getenv("LOADSTONE_PROGRAM")
	if program == "" {
		t.Skip("LOADSTONE_PROGRAM names no program")
	}
	r := receive(t, remoteapi.WriteV2MessageType)
	ending := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ending }))
	defer hangs.Close()
	defer close(ending)
	var mu sync.Mutex
	var marks []annotate.Annotation
	grafana := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var a annotate.Annotation
		if json.NewDecoder(q.Body).Decode(&a) != nil || q.Header.Get("Authorization") != "Bearer token-of-grafana" {
			w.WriteHeader(http.StatusBadRequest)
		}
		mu.Lock()
		defer mu.Unlock()
		marks = append(marks, a)
	}))
	defer grafana.Close()
	dir, err := os.MkdirTemp("", "loadstone-out-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // for the user that Postgres runs as
		t.Fatal(err)
	}
	file := filepath.Join(dir, "template.yaml")
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--calibrate", "off",
		"--run", file, "--remote-write", r.url, "--remote-write", hangs.URL+"/?key=secret-of-the-url", "--grafana-url",
		grafana.URL)
	cmd.Env = append(os.Environ(), "LOADSTONE_GRAFANA_TOKEN=token-of-grafana")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := func() string {
		text, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for !strings.Contains(said(), "Serving on;") && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(6 * time.Second) // the last seconds settle
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(said()[strings.Index(said(), "Open:"):])
	out, err := exec.CommandContext(ctx, program, "token", "promsuite", "--data-dir", data).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said())
	}
	token := regexp.MustCompile(`\S{30,}`).FindString(string(out))
	// Seconds of a live run have the phase of their end, and its record that of each operation: phases are not compared.
	for _, text := range []string{`sum(max_over_time(loadstone_operations_total[10m]))`,
		`sum by (kind) (max_over_time(loadstone_operations_total[10m]))`,
		`sum(max_over_time(loadstone_worker_operations_total[10m]))`,
		`histogram_quantile(0.99, sum(last_over_time(loadstone_latency_seconds{phase="measurement"}[10m])))`} {
		at := time.Now()
		here := ask(t, base, token, text, at)
		q, err := leaf.DefaultOptions().Engine(5*time.Minute).NewInstantQuery(ctx, r.db, nil, text, at)
		if err != nil {
			t.Fatal(err)
		}
		v, err := q.Exec(ctx).Vector()
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
	stopped := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if took := time.Since(stopped); took > 40*time.Second {
		t.Errorf("the end took %s", took)
	} else {
		t.Logf("the end took %s beside a receiver that hangs", took)
	}
	if strings.Contains(said(), "secret-of-the-url") || strings.Contains(said(), "token-of-grafana") {
		t.Error("the log has a secret")
	}
	if t.Failed() {
		t.Log(said())
	}
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
func ask(t *testing.T, base, token, text string, at time.Time) map[string]float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/prometheus/api/v1/query?"+
		url.Values{"query": {text}, "time": {at.Format(time.RFC3339Nano)}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	all := map[string]float64{}
	for _, r := range answer.Data.Result {
		var v float64
		if err := json.Unmarshal([]byte(r.Value[1].(string)), &v); err != nil {
			t.Fatal(err)
		}
		all[r.Metric["kind"]+r.Metric["phase"]] = v
	}
	return all
}
