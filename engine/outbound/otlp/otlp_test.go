package otlp

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
	"github.com/loadstone-db/loadstone/engine/outbound/otlptest"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o Options) *Sender {
	t.Helper()
	o.Service, o.Version, o.Instance = "loadstone-test", "1.2.3", "here"
	s, err := Open(t.Context(), o)
	if err != nil || s == nil {
		t.Fatalf("%v, %v", s, err)
	}
	return s
}

// outcomes are what the metric says.
func outcomes(t *testing.T, s *Sender) (sent, failed, dropped int) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(s)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]int{}
	for _, m := range families[0].GetMetric() {
		by[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
	}
	return by["sent"], by["failed"], by["dropped"]
}

var begin = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func record(t *trace.Tracer, of string) {
	t.Record(trace.Span{Name: "part", Trace: of, Key: "k", Begin: begin, End: begin.Add(time.Second), Failed: "why not",
		Fields: []trace.Field{trace.String("run_id", of), trace.Number("bytes", 7), trace.Bool("resumed", true)}})
	t.Record(trace.Span{Name: "below", Trace: of, ParentKey: "k", Begin: begin, End: begin})
	t.Record(trace.Span{Name: "run", Trace: of, Key: trace.Root, Begin: begin, End: begin.Add(2 * time.Second)})
}

// TestSpansReachACollector over both protocols, with their ids, their times and what they say.
func TestSpansReachACollector(t *testing.T) {
	for name, listen := range map[string]func(testing.TB) (*otlptest.Collector, string){"http/protobuf": otlptest.HTTP,
		"grpc": otlptest.GRPC} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", name)
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=proof")
			c, address := listen(t)
			s := open(t, Options{Endpoint: address})
			record(s.Tracer(), "run-1")
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			spans := c.Trace(trace.ID("run-1"))
			if len(spans) != 3 || len(c.Spans()) != 3 {
				t.Fatalf("%+v", c.Spans())
			}
			part, below, run := spans[0], spans[1], spans[2]
			if part.Name != "part" || part.ParentID != run.SpanID || below.ParentID != part.SpanID || run.ParentID != "" ||
				run.Name != "run" || below.SpanID == part.SpanID {
				t.Errorf("the spans do not hang together: %+v", spans)
			}
			if !part.Begin.Equal(begin) || part.End.Sub(part.Begin) != time.Second || part.Failed != "why not" ||
				run.Failed != "" {
				t.Errorf("%+v", part)
			}
			if part.Fields["run_id"] != "run-1" || !strings.Contains(part.Fields["bytes"], "7") {
				t.Errorf("it says %v", part.Fields)
			}
			if p := part.Process; p["service.name"] != "loadstone-test" || p["service.version"] != "1.2.3" ||
				p["service.instance.id"] != "here" || p["deployment.environment"] != "proof" {
				t.Errorf("the process is %v", p)
			}
			if sent, failed, dropped := outcomes(t, s); sent != 3 || failed != 0 || dropped != 0 {
				t.Errorf("%d sent, %d failed, %d dropped", sent, failed, dropped)
			}
		})
	}
}

// TestThePortSaysTheProtocol, unless the environment does.
func TestThePortSaysTheProtocol(t *testing.T) {
	for address, want := range map[string]string{"http://collector:4317": "grpc", "http://collector:4318": "",
		"https://collector": ""} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := protocol(u); got != want {
			t.Errorf("%s: %q", address, got)
		}
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
		if got := protocol(u); got != "http/protobuf" {
			t.Errorf("%s, where the environment says another: %q", address, got)
		}
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "")
	}
}

// TestACollectorWithACertificate of an authority of its own: who knows that one reaches it, over both protocols. Who
// does not sends nothing, and the log says why.
func TestACollectorWithACertificate(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		for _, knows := range []bool{true, false} {
			t.Run(fmt.Sprint(protocol, " known ", knows), func(t *testing.T) {
				t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
				c, address, authority := otlptest.TLS(t, protocol)
				if knows {
					path := filepath.Join(t.TempDir(), "ca.pem")
					if err := os.WriteFile(path, authority, 0o600); err != nil {
						t.Fatal(err)
					}
					t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", path)
				}
				var log bytes.Buffer
				s := open(t, Options{Endpoint: address, Log: zerolog.New(&log)})
				record(s.Tracer(), "run-1")
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if !knows && protocol == "grpc" { // which tries for half a minute
					ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
				}
				defer cancel()
				_ = s.Close(ctx) // that it was cut short
				sent, failed, _ := outcomes(t, s)
				if knows && (sent != 3 || len(c.Spans()) != 3) || !knows && (failed != 3 || len(c.Spans()) != 0) {
					t.Errorf("%d sent, %d failed, %d have come: %s", sent, failed, len(c.Spans()), log.String())
				}
				if !knows && protocol != "grpc" && !strings.Contains(log.String(), "certificate signed by unknown authority") {
					t.Errorf("the log says %s", log.String())
				}
			})
		}
	}
}

// TestAFileThatIsNoAuthorityIsRefused: the library would go on with the authorities of the system, and send nothing.
func TestAFileThatIsNoAuthorityIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_CERTIFICATE", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"} {
		for file, says := range map[string]string{path: "holds no certificate", path + ".gone": "cannot be read"} {
			t.Run(name+" "+says, func(t *testing.T) {
				t.Setenv(name, file)
				_, err := Open(t.Context(), Options{Endpoint: "https://127.0.0.1:1"})
				if text := engine.ErrorText(err); !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(text, says) ||
					!strings.Contains(fmt.Sprintf("%+v", err), name) {
					t.Errorf("%s, %+v", text, err)
				}
			})
		}
	}
}

// TestACollectorThatLeadsToTheLink gets nothing: by its address, or by its name once that is dialled.
func TestACollectorThatLeadsToTheLink(t *testing.T) {
	if _, err := Open(t.Context(), Options{Endpoint: "http://169.254.169.254:4318"}); !engine.HasCode(err,
		engine.CodeInvalid) || !strings.Contains(engine.ErrorText(err), "connections to it are refused") {
		t.Errorf("an address: %v", err)
	}
	egresstest.StubDNS(t, egresstest.Metadata)
	for _, at := range []string{"http://collector.example:4318", "http://collector.example:4317"} {
		exporter, err := exporter(t.Context(), at, at)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		err = exporter.ExportSpans(ctx, tracetest.SpanStubs{{Name: "run"}}.Snapshots())
		cancel()
		if err == nil || !strings.Contains(err.Error(), "connections to it are refused") {
			t.Errorf("%s: %v", at, err)
		}
		_ = exporter.Shutdown(t.Context())
	}
}

// TestAClientCertificateOfTheEnvironment is shown to a collector, and one that cannot be used is refused.
func TestAClientCertificateOfTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "client.pem")
	if err := os.WriteFile(path, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", path)
	t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", path)
	_, err := Open(t.Context(), Options{Endpoint: "https://127.0.0.1:1"})
	if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(fmt.Sprintf("%+v", err), "CLIENT_CERTIFICATE") {
		t.Errorf("%v", err)
	}
}

// TestTheEnvironmentNamesTheCollector, what is sent along, and that there is to be none.
func TestTheEnvironmentNamesTheCollector(t *testing.T) {
	if s, err := Open(t.Context(), Options{}); s != nil || err != nil || s.Tracer().Enabled() {
		t.Fatalf("without a collector there is a sender: %v, %v", s, err)
	}
	c, address := otlptest.HTTP(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=seven")
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	s := open(t, Options{})
	record(s.Tracer(), "run-1")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.Spans()) != 3 || c.Header("X-Tenant") != "seven" || c.Spans()[0].Process["service.name"] != "mine" {
		t.Errorf("%d spans, with %q: %v", len(c.Spans()), c.Header("X-Tenant"), c.Spans())
	}
	for _, off := range []string{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none"} {
		t.Run(off, func(t *testing.T) {
			name, value, _ := strings.Cut(off, "=")
			t.Setenv(name, value)
			if s, err := Open(t.Context(), Options{Endpoint: address}); s != nil || err != nil {
				t.Errorf("%v, %v", s, err)
			}
		})
	}
}

// TestWhatNobodyUnderstandsIsRefused at the start, not in the middle of a run.
func TestWhatNobodyUnderstandsIsRefused(t *testing.T) {
	for _, address := range []string{"collector:4317", "://", "ftp://collector", "http://", "http://user:secret@%zz",
		"ftp://user:secret@collector"} {
		if _, err := Open(t.Context(), Options{Endpoint: address}); !engine.HasCode(err, engine.CodeInvalid) ||
			strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, set := range []string{"OTEL_TRACES_SAMPLER=sometimes", "OTEL_TRACES_SAMPLER_ARG=2",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json"} {
		t.Run(set, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			name, value, _ := strings.Cut(set, "=")
			t.Setenv(name, value)
			if _, err := Open(t.Context(), Options{Endpoint: "http://127.0.0.1:1"}); !engine.HasCode(err, engine.CodeInvalid) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAPartOfTheTracesIsKeptWhole: all processes of a run keep it, or none does.
func TestAPartOfTheTracesIsKeptWhole(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	c, address := otlptest.HTTP(t)
	s := open(t, Options{Endpoint: address})
	kept := 0
	for i := range 200 {
		id := fmt.Sprintf("run-%d", i)
		record(s.Tracer(), id)
		if s.Tracer().Sampled(id) {
			kept++
		}
		if on := strings.HasSuffix(s.Tracer().Context(id, "k"), "-01"); on != s.Tracer().Sampled(id) {
			t.Errorf("what is sent along says that the trace is kept: %t", on)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept < 60 || kept > 140 || len(c.Spans()) != 3*kept {
		t.Errorf("%d of 200 traces are kept, with %d spans", kept, len(c.Spans()))
	}
	for i := range 200 {
		id := fmt.Sprintf("run-%d", i)
		if n := len(c.Trace(trace.ID(id))); n != 0 && n != 3 || (n == 3) != s.Tracer().Sampled(id) {
			t.Errorf("%s has %d spans", id, n)
		}
	}
}

// TestACollectorThatHangsHoldsNobodyUp: what is recorded meanwhile is counted, and the end comes when it is to.
func TestACollectorThatHangsHoldsNobodyUp(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	c, address := otlptest.HTTP(t)
	c.FailWith(func(ctx context.Context) int { <-ctx.Done(); return http.StatusServiceUnavailable })
	var log bytes.Buffer
	s := open(t, Options{Endpoint: address, Log: zerolog.New(&log)})
	for i := range 5000 { // far more than one batch and the queue hold together
		record(s.Tracer(), fmt.Sprint(i))
	}
	if _, _, dropped := outcomes(t, s); dropped == 0 {
		t.Error("nothing was dropped, so something waited")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Close(over) // that it was cut short
	sent, failed, dropped := outcomes(t, s)
	if sent != 0 || failed == 0 || failed+dropped != 15000 {
		t.Errorf("%d sent, %d failed, %d dropped of 15000", sent, failed, dropped)
	}
	record(s.Tracer(), "after the end")
	if n := len(c.Spans()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

// TestACollectorThatRefusesIsToldOfOnce: every batch is lost, and the log says so in one line.
func TestACollectorThatRefusesIsToldOfOnce(t *testing.T) {
	c, address := otlptest.HTTP(t)
	c.FailWith(func(context.Context) int { return http.StatusForbidden })
	var log bytes.Buffer
	s := open(t, Options{Endpoint: address, Log: zerolog.New(&log)})
	for range 400 {
		record(s.Tracer(), "run-1")
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, failed, _ := outcomes(t, s); failed != 1200 || c.Calls() < 2 {
		t.Errorf("%d failed in %d calls", failed, c.Calls())
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "403") {
		t.Errorf("the log has %d lines: %s", lines, log.String())
	}
}

// TestACollectorThatIsAwayIsLeftAtTheEnd, however long it would still be tried.
func TestACollectorThatIsAwayIsLeftAtTheEnd(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := l.Addr().String()
			_ = l.Close() // nobody listens there
			s := open(t, Options{Endpoint: "http://" + address, Log: zerolog.Nop()})
			record(s.Tracer(), "run-1")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_ = s.Close(ctx) // that it was cut short
			if sent, failed, _ := outcomes(t, s); sent != 0 || failed != 3 {
				t.Errorf("%d sent, %d failed", sent, failed)
			}
		})
	}
}

// slow takes a batch an hour.
type slow struct{ tracetest.InMemoryExporter }

func (s *slow) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	select {
	case <-time.After(time.Hour):
		return s.InMemoryExporter.ExportSpans(ctx, spans)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestSpansAreSentTogetherAndSoon: a batch waits for others no longer than told, and a full one not at all.
func TestSpansAreSentTogetherAndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := tracetest.NewInMemoryExporter()
		q := newQueue(e, queueSize, time.Second, zerolog.Nop())
		p := sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithIDGenerator(ids{}))
		tracer := trace.New(p.Tracer("test"), func(oteltrace.TraceID) bool { return true })
		record(tracer, "run-1")
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if n := len(e.GetSpans()); n != 0 {
			t.Fatalf("%d spans were sent at once", n)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := len(e.GetSpans()); n != 3 {
			t.Fatalf("%d spans were sent after a second", n)
		}
		for range batchSize/3 + 1 {
			record(tracer, "run-2")
		}
		synctest.Wait()
		if n := len(e.GetSpans()); n != 3+batchSize {
			t.Errorf("%d spans were sent when a batch was full", n)
		}
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if sent := q.sent.Load(); sent != 3+3*(batchSize/3+1) {
			t.Errorf("%d were sent in the end", sent)
		}
	})
}

// TestTheEndWaitsNoLongerThanItMay for an exporter that takes its time.
func TestTheEndWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(&slow{}, queueSize, time.Second, zerolog.Nop())
		p := sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithIDGenerator(ids{}))
		tracer := trace.New(p.Tracer("test"), func(oteltrace.TraceID) bool { return true })
		for range 1000 {
			record(tracer, "run-1")
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_ = p.Shutdown(ctx) // that it was cut short
		if took := time.Since(began); took != 3*time.Second || q.failed.Load() != 3000 {
			t.Errorf("the end took %v, and %d were counted", took, q.failed.Load())
		}
	})
}
