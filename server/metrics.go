package server

import (
	"context"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	outboundmetrics "github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

// metrics has a registry of its own; nothing is registered for the process.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	log      zerolog.Logger
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "loadstone_http_requests_total",
			Help: "HTTP requests answered, by method, route and status."}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "loadstone_http_request_duration_seconds",
			Help:    "Duration of HTTP requests, by method and route.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 10}}, []string{"method", "route"}),
		log: s.opts.Log,
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests, m.duration, &runCollector{server: s},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "loadstone_websocket_clients",
			Help: "Open WebSockets that watch runs."}, func() float64 { return float64(s.hub.Clients()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "loadstone_nodes", Help: "Nodes that accept run workers."},
			func() float64 { return float64(s.opts.Nodes()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "loadstone_can_create_runs",
			Help: "1 if runs can be created, as /readyz reports; otherwise 0."}, func() float64 {
			if s.checkNodes() != nil {
				return 0
			}
			return 1
		}))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "loadstone_disk_free_bytes",
		Help: "Free disk space for results in bytes; -1 if unknown."}, func() float64 {
		if free := freeBytes(s.opts.DataDir); free != nil {
			return float64(*free)
		}
		return -1
	}))
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "loadstone_build_info",
		Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": s.opts.Version}})
	build.Set(1)
	m.registry.MustRegister(build)
	if s.opts.Tables != nil {
		m.registry.MustRegister(outboundmetrics.NewRefreshes(s.opts.Tables.Load))
	}
	for _, c := range s.opts.Collectors {
		if err := m.registry.Register(c); err != nil {
			s.opts.Log.Error().Err(err).Msg("could not register a metric")
		}
	}
	return m
}

func (m *metrics) request(method, route string, status int, elapsed time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch,
		http.MethodOptions:
	default:
		method = "OTHER"
	}
	m.requests.WithLabelValues(method, route, statusText(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(elapsed.Seconds())
}

// handler has no timeout of promhttp's: that derives a context from fasthttp's,
// which is written to at shutdown. Collectors bound themselves.
func (m *metrics) handler() fiber.Handler {
	return adaptor.HTTPHandler(promhttp.HandlerFor(m.registry,
		promhttp.HandlerOpts{ErrorLog: promLogger{m.log}, ErrorHandling: promhttp.ContinueOnError,
			EnableOpenMetrics: true}))
}

type promLogger struct{ log zerolog.Logger }

// Println makes zerolog promhttp's logger.
func (l promLogger) Println(v ...any) {
	l.log.Error().Interface("detail", v).Msg("could not collect every metric")
}

// runCollector asks the control store for live runs when it is scraped.
type runCollector struct{ server *Server }

var (
	liveRunsDesc = prometheus.NewDesc("loadstone_live_runs", "Live runs, by phase.",
		[]string{"phase"}, nil)
	runQPSDesc = prometheus.NewDesc("loadstone_operations_per_second", "Operations of the last second, of all live runs.",
		nil, nil)
	runErrorsDesc = prometheus.NewDesc(
		"loadstone_operations_failed",
		"Failed operations in the current phase of all live runs.",
		nil,
		nil,
	)
	runConnsDesc = prometheus.NewDesc("loadstone_load_connections", "Open load connections of all live runs.", nil, nil)
	degradedDesc = prometheus.NewDesc("loadstone_runs_degraded", "Live runs that are DEGRADED so far.", nil, nil)

	tokensEndingDesc = prometheus.NewDesc("loadstone_api_tokens_ending",
		"API tokens used in the last 7 days that expire within 14 days.", nil, nil)
	storeUpDesc = prometheus.NewDesc("loadstone_control_store_up", "1 if the control store answered this scrape.", nil,
		nil)
)

// Describe implements prometheus.Collector.
func (r *runCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{liveRunsDesc, runQPSDesc, runErrorsDesc, runConnsDesc, degradedDesc,
		tokensEndingDesc, storeUpDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (r *runCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(r.server.streams, pingTimeout)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	runs, err := r.server.opts.Store.LiveRuns(ctx)
	if err != nil {
		gauge(storeUpDesc, 0)
		return
	}
	gauge(storeUpDesc, 1)
	byPhase := map[engine.Phase]int{engine.PhasePreparing: 0, engine.PhaseWarmup: 0, engine.PhaseMeasurement: 0,
		engine.PhaseCooldown: 0, engine.PhaseProcessing: 0}
	var qps, failed, connections, degraded float64
	for _, run := range runs {
		byPhase[run.Phase]++
		p := r.server.opts.Runs.LiveState(run.RunID)
		if p == nil {
			continue
		}
		qps += p.Ops.CurrentPerSec
		failed += float64(p.Errors.Count)
		connections += float64(p.Connections.Active)
		if p.Validity.Verdict == engine.VerdictDegraded {
			degraded++
		}
	}
	gauge(runQPSDesc, qps)
	gauge(runErrorsDesc, failed)
	gauge(runConnsDesc, connections)
	gauge(degradedDesc, degraded)
	if tokens, err := r.server.opts.Store.ListTokens(ctx, "", auth.KindAPI); err == nil {
		gauge(tokensEndingDesc, float64(tokensEnding(tokens, time.Now())))
	}
	for phase, n := range byPhase {
		gauge(liveRunsDesc, float64(n), string(phase))
	}
}

// How recently a token was used that somebody would miss, and from when on it is told that it ends.
const (
	tokenInUse  = 7 * 24 * time.Hour
	tokenEndsIn = 14 * 24 * time.Hour
)

// tokensEnding counts the tokens that are in use and end soon: KEDA, a scraper and a pipeline say little when they are
// refused.
func tokensEnding(tokens []store.Token, now time.Time) (n int) {
	for _, t := range tokens {
		used := !t.LastUsedAt.IsZero() && now.Sub(t.LastUsedAt.Time) < tokenInUse
		ends := !t.ExpiresAt.IsZero() && t.ExpiresAt.Sub(now) < tokenEndsIn // a zero end is that of a token that has none
		if used && ends {
			n++
		}
	}
	return n
}
