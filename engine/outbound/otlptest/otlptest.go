// Package otlptest gives tests a collector of traces: what OTLP says, over HTTP and gRPC, and the faults that one has.
package otlptest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it arrived.
type Span struct {
	Name, TraceID, SpanID, ParentID string
	Begin, End                      time.Time
	// Failed is what its status says, empty when it is not an error.
	Failed string
	// Fields are its attributes, Process those of the resource.
	Fields, Process map[string]string
}

// Collector takes spans.
type Collector struct {
	collector.UnimplementedTraceServiceServer
	mu      sync.Mutex
	spans   []Span
	headers http.Header
	// fault is asked before each batch; nil takes it.
	fault func(ctx context.Context) int
	calls int
}

// FailWith has fault decide what becomes of each batch: the HTTP status that it is answered with. It may wait for its
// context.
func (c *Collector) FailWith(fault func(ctx context.Context) int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// HTTP listens for OTLP over HTTP, at the address that it returns.
func HTTP(t testing.TB) (*Collector, string) {
	t.Helper()
	c, s := newServer(t)
	s.Start()
	return c, s.URL
}

// TLS listens for OTLP over HTTP or gRPC with a certificate of an authority of its own, which it returns in PEM.
func TLS(t testing.TB, protocol string) (c *Collector, address string, authority []byte) {
	t.Helper()
	c, s := newServer(t)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if protocol != "grpc" {
		return c, s.URL, authority
	}
	c, address = listen(t, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: s.TLS.Certificates,
		MinVersion: tls.VersionTLS12})))
	return c, "https://" + address, authority
}

// newServer is a collector that does not listen yet.
func newServer(t testing.TB) (*Collector, *httptest.Server) {
	t.Helper()
	c := &Collector{}
	ending, end := context.WithCancel(context.Background())
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer context.AfterFunc(ending, cancel)()
		defer cancel()
		c.answer(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() { end(); s.CloseClientConnections(); s.Close() })
	return c, s
}

func (c *Collector) answer(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "no OTLP", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" && err == nil {
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(z)
		}
	}
	m := &collector.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(body, m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if code := c.faulted(r.Context()); code != http.StatusOK {
		http.Error(w, "a fault", code)
		return
	}
	c.take(m, r.Header)
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{}) // nothing in it can fail
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer) // to who has gone
}

func (c *Collector) faulted(ctx context.Context) int {
	c.mu.Lock()
	c.calls++
	fault := c.fault
	c.mu.Unlock()
	if fault == nil {
		return http.StatusOK
	}
	return fault(ctx)
}

// GRPC listens for OTLP over gRPC, at the address that it returns.
func GRPC(t testing.TB) (*Collector, string) {
	t.Helper()
	c, address := listen(t)
	return c, "http://" + address
}

func listen(t testing.TB, opts ...grpc.ServerOption) (c *Collector, address string) {
	t.Helper()
	c = &Collector{}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	collector.RegisterTraceServiceServer(s, c)
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }() // until Stop
	t.Cleanup(func() { s.Stop(); <-served })
	return c, l.Addr().String()
}

// Export implements the service of OTLP.
func (c *Collector) Export(_ context.Context, m *collector.ExportTraceServiceRequest) (
	*collector.ExportTraceServiceResponse, error) {
	c.take(m, nil)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (c *Collector) take(m *collector.ExportTraceServiceRequest, headers http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = headers
	for _, r := range m.GetResourceSpans() {
		process := fields(r.GetResource().GetAttributes())
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				read := Span{Name: s.GetName(), TraceID: hex.EncodeToString(s.GetTraceId()),
					SpanID: hex.EncodeToString(s.GetSpanId()), ParentID: hex.EncodeToString(s.GetParentSpanId()),
					Begin: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
					Fields: fields(s.GetAttributes()), Process: process}
				if s.GetStatus().GetCode() == spans.Status_STATUS_CODE_ERROR {
					read.Failed = s.GetStatus().GetMessage()
				}
				c.spans = append(c.spans, read)
			}
		}
	}
}

func fields(attributes []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range attributes {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[a.GetKey()] = v.StringValue
		default:
			m[a.GetKey()] = a.GetValue().String()
		}
	}
	return m
}

// Spans are those that have arrived.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Calls is how often somebody has asked for a batch to be taken.
func (c *Collector) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Header is what the last batch came with.
func (c *Collector) Header(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.Get(name)
}

// Trace are the spans of a trace, in the order of their beginning.
func (c *Collector) Trace(traceID string) (found []Span) {
	for _, s := range c.Spans() {
		if s.TraceID == traceID {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b Span) int { return a.Begin.Compare(b.Begin) })
	return found
}
