package promsuite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promqltest"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/outbound/metricpush"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// receiver is Prometheus' own handler of remote-write over a TSDB, and what it was asked for.
type receiver struct {
	db  *teststorage.TestStorage
	url string
	http.Handler

	mu    sync.Mutex
	kinds map[string]int // of requests, by the message and the answer
	// times are how often a sample was sent, by its series and its time; of the second version alone.
	times map[string]map[int64]int
}

// receive begins to receive the versions of the message that are named.
func receive(t *testing.T, messages ...remoteapi.WriteMessageType) *receiver {
	t.Helper()
	r := &receiver{db: teststorage.New(t), kinds: map[string]int{}, times: map[string]map[int64]int{}}
	h := remote.NewWriteHandler(promslog.NewNopLogger(), nil, r.db, messages, false, false)
	r.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		seen := &status{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(seen, q)
		version := q.Header.Get("X-Prometheus-Remote-Write-Version")
		r.mu.Lock()
		defer r.mu.Unlock()
		r.kinds[fmt.Sprintf("%s %d", version, seen.code)]++
		if strings.HasPrefix(version, "2.") && seen.code/100 == 2 {
			r.note(t, body)
		}
	})
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL + "/api/v1/write"
	return r
}

// note counts the samples of a request. It needs mu.
func (r *receiver) note(t *testing.T, body []byte) {
	var message writev2.Request
	plain, err := snappy.Decode(nil, body)
	if err == nil {
		err = message.Unmarshal(plain)
	}
	if err != nil {
		t.Errorf("a request cannot be read: %v", err)
		return
	}
	b := labels.NewScratchBuilder(0)
	for _, s := range message.Timeseries {
		about, err := s.ToLabels(&b, message.Symbols)
		if err != nil {
			t.Errorf("a request has a series without labels: %v", err)
			return
		}
		times := r.times[about.String()]
		if times == nil {
			times = map[int64]int{}
			r.times[about.String()] = times
		}
		for _, sample := range s.Samples {
			times[sample.Timestamp]++
		}
		for _, sample := range s.Histograms {
			times[sample.Timestamp]++
		}
	}
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// minute is a run of 75 s of 50 operations a second, of three kinds on two run workers, of which every 30th fails; its
// first five seconds are warmup.
func minute(id string) (engine.Run, []*rollup.Batch) {
	run := engine.Run{RunID: id, RunName: "a \"run\"\nof ü", StartTime: engine.At(promqltest.Noon)}
	run.Scenario.TemplateName = "t-1"
	run.Scenario.Target.Adapter, run.Scenario.Target.TableName = "heap", "orders"
	run.Scenario.Target.Connection.Name = "production"
	var all []*rollup.Batch
	for second := range 75 {
		b := &rollup.Batch{Kind: record.Texts{Values: []string{"POINT_LOOKUP", "INSERT", "UPDATE"}},
			Statement: record.Texts{Values: []string{"a"}}, Worker: record.Texts{Values: []string{"w1", "w2"}},
			Class: record.Texts{Values: []string{"TIMEOUT"}}, Code: record.Texts{Values: []string{"57014"}}}
		for i := range 50 {
			n := 50*second + i
			ns := int64(1e5 * math.Exp(float64(n*7919%1000)/150))
			ended := promqltest.Noon.Add(time.Duration(n) * 20 * time.Millisecond)
			failed := int32(-1)
			if n%30 == 0 {
				failed = 0
			}
			b.DueNs, b.ElapsedNs = append(b.DueNs, ended.UnixNano()-ns), append(b.ElapsedNs, ns)
			b.Rows, b.Position = append(b.Rows, 1), append(b.Position, 0)
			b.Warmup, b.Success = append(b.Warmup, second < 5), append(b.Success, failed < 0)
			b.Kind.Index, b.Statement.Index = append(b.Kind.Index, int32(n%3)), append(b.Statement.Index, 0)
			b.Worker.Index = append(b.Worker.Index, int32(n*7%2))
			b.Class.Index, b.Code.Index = append(b.Class.Index, failed), append(b.Code.Index, failed)
		}
		all = append(all, b)
	}
	return run, all
}

// send brings a run to a receiver as a server does.
func send(t *testing.T, url string, run engine.Run, batches []*rollup.Batch) delivery.Counts {
	t.Helper()
	w, err := metricpush.OpenRemoteWrite(
		delivery.Endpoint{Flag: "--remote-write", URL: secret.New(url)},
		zerolog.New(zerolog.NewTestWriter(t)),
	)
	if err != nil {
		t.Fatal(err)
	}
	feed := metricpush.Start(w)
	if _, err := feed.BeginLive(t.Context(), run, 1); err != nil {
		t.Fatal(err)
	}
	for i, b := range batches {
		s := rollup.New(run.StartTime.Time)
		s.Add(b)
		l := rollup.Live{RunID: run.RunID, Epoch: 1, Batch: int64(i), Seconds: s}
		if err := feed.PutLive(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	feed.Ended(run.RunID)
	feed.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	w.Close(ctx)
	return w.Counts()
}

// TestWhatIsWrittenIsAnsweredAlike: what Prometheus has received of a run, in each version of remote-write, answers
// queries as the run does here.
func TestWhatIsWrittenIsAnsweredAlike(t *testing.T) {
	run, batches := minute("r-1")
	whole := &rollup.Run{Run: run, Seconds: rollup.New(run.StartTime.Time)}
	for _, b := range batches {
		whole.Seconds.Add(b)
	}
	content, _, err := segment.Bytes(whole)
	if err != nil {
		t.Fatal(err)
	}
	here := promqltest.Catalog{{Content: content, Segment: promql.Segment{RunID: run.RunID, Name: "one",
		From: promqltest.Noon.UnixMilli(), To: promqltest.Noon.Add(2 * time.Minute).UnixMilli(),
		Labels: labels.FromStrings("run", run.RunID, "run_name", run.RunName, "template", "t-1", "table_type", "heap",
			"target", "production", "table", "orders")}}}
	o := promql.DefaultOptions()
	own := promql.NewEvaluator(here.Read, o, 64<<20)
	ours := promql.NewTelemetry(here, promqltest.Local{Catalog: here, Evaluator: own}, own, o)
	for _, c := range []struct {
		name     string
		messages []remoteapi.WriteMessageType
		version  string
	}{
		{"2.0", []remoteapi.WriteMessageType{remoteapi.WriteV2MessageType, remoteapi.WriteV1MessageType}, "2.0.0 204"},
		{"1.0", []remoteapi.WriteMessageType{remoteapi.WriteV1MessageType}, "0.1.0 204"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := receive(t, c.messages...)
			counts := send(t, r.url, run, batches)
			if counts.Sent < 2000 || counts.Lost[delivery.LostRejected] > 0 || r.kinds[c.version] == 0 {
				t.Fatalf("%+v, requests %v", counts, r.kinds)
			}
			theirs := o.Engine(5 * time.Minute)
			for _, text := range []string{
				`loadstone_operations_total{phase="measurement"}`,
				`sum by (kind) (rate(loadstone_operations_total[10s]))`,
				`sum by (worker) (increase(loadstone_worker_operations_total[20s]))`,
				`loadstone_failed_operations_total`, `loadstone_worker_failed_operations_total`,
				`sum by (kind, error_class, error_code) (rate(loadstone_errors_total[10s]))`,
				`histogram_quantile(0.99, sum by (run) (rate(loadstone_latency_seconds[10s])))`,
				`histogram_quantile(0.5, sum by (worker, run_name) (loadstone_worker_latency_seconds))`,
				`histogram_count(loadstone_latency_seconds)`, `histogram_sum(rate(loadstone_latency_seconds[15s]))`,
				`loadstone_latency_seconds`, `count({__name__=~"loadstone_.+",__name__!~"loadstone_statement.*|loadstone_rows_total"})`,
			} {
				from, to := promqltest.Noon.Add(26*time.Second), promqltest.Noon.Add(80*time.Second)
				a, err := ours.Range(t.Context(), text, from, to, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				b, err := theirs.NewRangeQuery(t.Context(), r.db, nil, text, from, to, time.Second)
				if err != nil {
					t.Fatal(err)
				}
				x, y := a.Exec(t.Context()), b.Exec(t.Context())
				if m, err := y.Matrix(); err != nil || len(m) == 0 || len(m[0].Floats)+len(m[0].Histograms) < 30 {
					t.Errorf("%s: nothing is there: %v, %v", text, m, err)
				}
				if what := promqltest.Diff(x, y); what != "" {
					t.Errorf("%s\n%s", text, what)
				}
				a.Close()
				b.Close()
			}
		})
	}
}

// TestATakeoverIsReceived: who takes a run over counts on from 0, and what the two have sent adds up to what there was.
func TestATakeoverIsReceived(t *testing.T) {
	run, batches := minute("r-1")
	r := receive(t, remoteapi.WriteV2MessageType)
	send(t, r.url, run, batches[:40])
	// The marker at the end of what the first one has sent takes one more second.
	counts := send(t, r.url, run, batches[42:])
	if counts.Lost[delivery.LostRejected] > 0 {
		t.Errorf("%+v", counts)
	}
	q, err := promql.DefaultOptions().Engine(5*time.Minute).NewInstantQuery(t.Context(), r.db, nil,
		`sum(increase(loadstone_operations_total[70s]))`, promqltest.Noon.Add(75*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	got := q.Exec(t.Context())
	v, err := got.Vector()
	// 70 s, of which nothing is known of two, and of the second whose zero is one sample.
	if err != nil || len(v) != 1 || v[0].F < 50*65 || v[0].F > 50*72 {
		t.Errorf("%v, %v", v, err)
	}
}

// TestWhatIsSentTwice: samples that the receiver has, and others, are refused and counted; the sender goes on.
func TestWhatIsSentTwice(t *testing.T) {
	run, batches := minute("r-1")
	r := receive(t, remoteapi.WriteV2MessageType)
	first := send(t, r.url, run, batches)
	again := send(t, r.url, run, batches[:10])
	if again.Sent+again.Lost[delivery.LostRejected] == 0 || again.Sent > first.Sent || again.Waiting > 0 {
		t.Errorf("%+v, then %+v", first, again)
	}
	for kind := range r.kinds {
		if !strings.HasPrefix(kind, "2.0.0") {
			t.Errorf("a receiver that knows the second version was sent %s", kind)
		}
	}
}
