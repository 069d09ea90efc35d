package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/outbound/otlp"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// NodeMetrics are the metrics of a node, and the address where they are read.
type NodeMetrics struct {
	*metrics.Node
	// Read is the node's state; it is set when there is a node.
	Read    func() worker.NodeState
	version string
	traces  *otlp.Sender
	// load is what a node that refreshes tables knows of the queue; nil at others.
	load atomic.Pointer[func(ctx context.Context) (refresh.Load, error)]
}

// Refreshes shows how much there is to refresh from now on; nil ends that.
func (m *NodeMetrics) Refreshes(load func(ctx context.Context) (refresh.Load, error)) {
	if load == nil {
		m.load.Store(nil)
		return
	}
	m.load.Store(&load)
}

// errNoQueue: there are no figures of a queue.
var errNoQueue = errors.New("this node refreshes no tables")

func (m *NodeMetrics) queue(ctx context.Context) (refresh.Load, error) {
	if load := m.load.Load(); load != nil {
		return (*load)(ctx)
	}
	return refresh.Load{}, errNoQueue
}

// NewNodeMetrics returns them, all 0, for a program of that version that sends spans of what they measure, if not nil.
func NewNodeMetrics(version string, traces *otlp.Sender) *NodeMetrics {
	m := &NodeMetrics{version: version, traces: traces}
	m.Node = metrics.NewNode(traces.Tracer(), func() worker.NodeState { return m.Read() })
	return m
}

// handler answers /metrics, /livez and /readyz; the last is 503 while the node takes no new work.
func (m *NodeMetrics) handler(ready func() bool) http.Handler {
	registry := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadstone_build_info",
		Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": m.version}})
	build.Set(1)
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.Node, metrics.NewRefreshes(m.queue), build)
	if m.traces != nil {
		registry.MustRegister(m.traces)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "the node takes no new work", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ready")
	})
	return mux
}

// Serve answers at the address until closed; at none when it is empty.
func (m *NodeMetrics) Serve(address string, ready func() bool, log zerolog.Logger) (closed func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, terminal.ListenError("--metrics-listen", address, err)
	}
	server := &http.Server{Handler: m.handler(ready), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Msg("the metrics are not served any more")
		}
	}()
	log.Info().Str("address", listener.Addr().String()).Msg("the node's metrics are served")
	return func() { _ = server.Close(); <-ended }, nil
}
