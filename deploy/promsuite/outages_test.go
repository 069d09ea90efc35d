package promsuite_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// sample is one of a counter, or of a histogram, of which it has the count.
type sample struct {
	at int64
	v  float64
}

// stored are the samples of a metric that a receiver has, by their series, without markers.
func (r *receiver) stored(t *testing.T, metric string) map[string][]sample {
	t.Helper()
	q, err := r.db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	all := map[string][]sample{}
	set := q.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, metric))
	for set.Next() {
		one := set.At()
		var samples []sample
		for it := one.Iterator(nil); ; {
			kind := it.Next()
			if kind == chunkenc.ValNone {
				break
			}
			if kind != chunkenc.ValFloat {
				at, h := it.AtFloatHistogram(nil)
				samples = append(samples, sample{at, h.Count})
			} else if at, v := it.At(); !value.IsStaleNaN(v) {
				samples = append(samples, sample{at, v})
			}
		}
		all[one.Labels().String()] = samples
	}
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// risen is by how much a counter has risen; where it has fallen, it began again with 0.
func risen(samples []sample) (by float64) {
	before := 0.0
	for _, s := range samples {
		if s.v < before {
			before = 0
		}
		by, before = by+s.v-before, s.v
	}
	return by
}

// TestATakeoverOfRealServers: of two servers on one control store the one that owns a run is killed, and the other goes
// on with it. The receiver is sent the same series by both, no sample twice, and nothing is refused; what it lacks of
// the record are the seconds around the takeover.
func TestATakeoverOfRealServers(t *testing.T) {
	file(t)
	r := receive(t, remoteapi.WriteV2MessageType)
	pg := pgtest.Start(t)
	control, load := pg.NewDatabase(t), pg.NewTarget(t)
	if err := schema.Apply(t.Context(), control); err != nil {
		t.Fatal(err)
	}
	n := launch(t, t.TempDir(), nil, "worker", "--listen", "127.0.0.1:0")
	listens := regexp.MustCompile(` listens on (\S+)\n`)
	n.await("the node", func() bool { return listens.MatchString(n.said()) })
	results, shared := t.TempDir(), ""
	var servers [2]*program
	for i := range servers {
		dir := t.TempDir()
		key := filepath.Join(dir, "loadstone.key") // servers on one store share it
		if shared != "" {
			if err := os.WriteFile(key, []byte(shared), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if _, err := keyring.Open(key); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		shared = string(text)
		servers[i] = server(t, dir, nil, "--database-url", control, "--local-capacity", "0", "--results", results,
			"--nodes", listens.FindStringSubmatch(n.said())[1], "--remote-write", r.url)
	}
	var nodes struct {
		Nodes []struct {
			AcceptingWork bool `json:"accepting_work"`
		}
	}
	servers[0].await("the node", func() bool {
		servers[0].get("/api/v1/nodes", &nodes)
		return len(nodes.Nodes) == 1 && nodes.Nodes[0].AcceptingWork
	})
	const rate, seconds = 200, 45
	var run engine.Run
	servers[0].write(servers[0].secret("write"), "/api/runs", map[string]any{"start": true, "source": fmt.Sprintf(
		"name: taken over\ntarget:\n  connection: {driver: postgres, dsn: %q}\n  table_name: orders\n  "+
			"prepare: {rows: 1000, if_exists: use}\nworkload: {plugin: mix, load_mode: QPS, target_qps: %d, "+
			"concurrent_connections: 4, duration_seconds: %d, warmup_seconds: 0}\n", load, rate, seconds)}, &run)
	var d engine.RunDetail
	const counter = "loadstone_operations_total"
	servers[0].await("some samples", func() bool {
		for _, samples := range r.stored(t, counter) {
			if len(samples) > 8 {
				return true
			}
		}
		return false
	})
	first := servers[0].out()["http://"+strings.Split(r.url, "/")[2]]
	killed := time.Now().UnixMilli()
	servers[0].kill()
	servers[1].await("the end of the run", func() bool {
		servers[1].get("/api/runs/"+run.RunID, &d)
		return d.Status.Terminal() && d.Summary != nil
	})
	time.Sleep(6 * time.Second) // the last seconds settle
	second := servers[1].out()["http://"+strings.Split(r.url, "/")[2]]
	if d.Status != engine.StatusCompleted || !d.Summary.Accounting.Balanced {
		t.Errorf("the run is %s: %+v", d.Status, d.Summary.Accounting)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind := range r.kinds {
		if kind != "2.0.0 204" {
			t.Errorf("requests: %v", r.kinds)
		}
	}
	twice := 0
	for about, times := range r.times {
		for at, n := range times {
			if n > 1 {
				twice++
				t.Errorf("%s was sent %d times for %d ms after the kill", about, n, at-killed)
			}
		}
	}
	for i, d := range []destination{first, second} {
		for why, n := range d.LostCounts {
			if n > 0 {
				t.Errorf("server %d has lost %d samples: %s", i, n, why)
			}
		}
		if d.SentCount == 0 {
			t.Errorf("server %d has sent nothing: %+v", i, d)
		}
	}
	for _, metric := range []string{counter, "loadstone_latency_seconds", "loadstone_scheduled_operations_total"} {
		got, gap := 0.0, int64(0)
		for about, samples := range r.stored(t, metric) {
			got += risen(samples)
			if samples[0].at > killed || samples[len(samples)-1].at < killed+20_000 {
				t.Errorf("%s is of one of the servers alone: %d to %d ms after the kill", about, samples[0].at-killed,
					samples[len(samples)-1].at-killed)
			}
			for i := range samples[1:] {
				gap = max(gap, samples[i+1].at-samples[i].at)
			}
		}
		want := float64(d.Summary.Accounting.Recorded)
		if metric == "loadstone_scheduled_operations_total" {
			want = float64(d.Summary.Accounting.Scheduled)
		}
		t.Logf("%s: %g received, %g in the record; the longest gap is %d ms", metric, got, want, gap)
		if got > want || got < want-5*rate {
			t.Errorf("%s: %g received, %g in the record", metric, got, want)
		}
	}
	t.Logf("%d and %d samples sent, %d of them twice", first.SentCount, second.SentCount, twice)
}

// TestReceiversThatFail: one hangs, one refuses, one wants to be left alone for a while, one is broken and recovers,
// one leads elsewhere, and one takes all. A run is as it would be without them, what became of its samples is counted,
// and those of the last one and the one that recovered are complete.
func TestReceiversThatFail(t *testing.T) {
	file(t)
	good, recovered := receive(t, remoteapi.WriteV2MessageType), receive(t, remoteapi.WriteV2MessageType)
	ending := make(chan struct{})
	var mu sync.Mutex
	var came []time.Time
	var well, followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	t.Cleanup(elsewhere.Close)
	of := map[string]string{"takes all": "http://" + strings.Split(good.url, "/")[2]}
	args := []string{"--run", written(t), "--remote-write", good.url}
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(http.ResponseWriter, *http.Request) { <-ending },
		"refuses": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "not like this", http.StatusBadRequest)
		},
		"busy": func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			came = append(came, time.Now())
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"broken": func(w http.ResponseWriter, q *http.Request) {
			if well.Load() {
				recovered.ServeHTTP(w, q)
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		},
		"leads elsewhere": func(w http.ResponseWriter, q *http.Request) {
			http.Redirect(w, q, elsewhere.URL, http.StatusTemporaryRedirect)
		},
	} {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		of[name] = s.URL
		args = append(args, "--remote-write", s.URL+"/api/v1/push")
	}
	t.Cleanup(func() { close(ending) })
	p := serve(t, folder(t), nil, args...)
	time.Sleep(6 * time.Second) // the last seconds settle
	out := p.out()
	for name, is := range map[string]func(d destination) bool{
		"takes all": func(d destination) bool {
			return d.SentCount > 300 && !d.Failing && d.WaitingCount == 0 && d.LastError == ""
		},
		"hangs": func(d destination) bool { return d.SentCount == 0 && d.WaitingCount > 300 && lost(d) == 0 },
		"refuses": func(d destination) bool {
			return d.SentCount == 0 && d.LostCounts["refused"] > 300 && d.LostCounts["refused"] == lost(d) && d.Failing &&
				strings.Contains(d.LastError, "400")
		},
		"busy": func(d destination) bool {
			return d.SentCount == 0 && d.WaitingCount > 300 && d.RetryCount > 1 && lost(d) == 0 &&
				strings.Contains(d.LastError, "429")
		},
		"broken": func(d destination) bool {
			return d.SentCount == 0 && d.WaitingCount > 300 && d.RetryCount > 1 && lost(d) == 0 &&
				strings.Contains(d.LastError, "500")
		},
		"leads elsewhere": func(d destination) bool {
			return d.SentCount == 0 && d.LostCounts["refused"] > 300 && d.Failing
		},
	} {
		if d := out[of[name]]; !is(d) {
			t.Errorf("the receiver that %s: %+v", name, d)
		} else {
			t.Logf("the receiver that %s: %+v", name, d)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
	mu.Lock()
	for i := range came[1:] {
		if pause := came[i+1].Sub(came[i]); pause < 1900*time.Millisecond {
			t.Errorf("the busy one was asked again after %v", pause)
		}
	}
	mu.Unlock()
	var metrics string
	p.get("/metrics", &metrics)
	if !regexp.MustCompile(`loadstone_out_lost_total\{destination="remote_write(_\d)?",reason="refused"\} [1-9]\d\d`).
		MatchString(metrics) {
		t.Error("/metrics has none that was refused")
	}
	well.Store(true)
	p.await("what waited", func() bool { d := p.out()[of["broken"]]; return d.WaitingCount == 0 && !d.Failing })
	a, b := good.stored(t, "loadstone_operations_total"), recovered.stored(t, "loadstone_operations_total")
	if len(a) == 0 || !maps.EqualFunc(a, b, slices.Equal) {
		t.Errorf("the one that recovered has %v\nand the other %v", b, a)
	}
	var list struct {
		Runs []struct {
			Status engine.Status `json:"status"`
		}
	}
	p.get("/api/runs", &list)
	if len(list.Runs) != 1 || list.Runs[0].Status != engine.StatusCompleted {
		t.Errorf("runs: %+v", list)
	}
	if took := p.end(); took > 40*time.Second {
		t.Errorf("the end took %v", took)
	}
	if strings.Contains(p.said(), "not like this") && !strings.Contains(p.said(), "is lost") {
		t.Error("the log does not say that something is lost")
	}
}

func lost(d destination) (all int64) {
	for _, n := range d.LostCounts {
		all += n
	}
	return all
}

// TestAddressesThatAreRefused: a server does not begin with a receiver where clouds tell a machine its keys.
func TestAddressesThatAreRefused(t *testing.T) {
	for _, address := range []string{"http://169.254.169.254/api/v1/write", "http://[fe80::1%25lo]/",
		"http://[::ffff:a9fe:a9fe]/", "http://metadata.google.internal/",
		"https://user:secret-of-mine@[fd00:ec2::254]/", "ftp://127.0.0.1/"} {
		why := "connections to it are refused"
		if strings.HasPrefix(address, "ftp") {
			why = "is no address"
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		said, err := exec.CommandContext(ctx, file(t), "serve", "--data-dir", folder(t), "--listen", "127.0.0.1:0",
			"--calibrate", "off", "--remote-write", address).CombinedOutput()
		cancel()
		if out := string(said); err == nil || !strings.Contains(out, "--remote-write") || !strings.Contains(out, why) ||
			strings.Contains(out, "secret-of-mine") {
			t.Errorf("%s: %v: %s", address, err, out)
		}
	}
}
