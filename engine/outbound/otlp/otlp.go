// Package otlp sends spans to a collector, as OpenTelemetry says: OTLP over HTTP or gRPC. Who makes a span never waits:
// spans wait in a queue that has an end, and those that find no room in it, or that no collector takes, are counted.
package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/outbound/trace"
)

// Options say where spans go. What they leave open, and all else, the environment says: OTEL_EXPORTER_OTLP_ENDPOINT,
// _HEADERS, _PROTOCOL, _CERTIFICATE and the others, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER,
// OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_SCHEDULE_DELAY, OTEL_SDK_DISABLED.
type Options struct {
	// Endpoint is the collector's address; empty leaves it to the environment.
	Endpoint string
	// Service names what this process is, and Instance which one.
	Service, Version, Instance string
	Log                        zerolog.Logger
}

// Sender sends spans to a collector. A nil *Sender sends none.
type Sender struct {
	*queue
	tracer *trace.Tracer
}

// Open makes a sender, nil where nobody has named a collector. It does not wait for the collector.
func Open(ctx context.Context, o Options) (*Sender, error) {
	at := firstNonEmpty(
		o.Endpoint,
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
	)
	if at == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") ||
		strings.EqualFold(os.Getenv("OTEL_TRACES_EXPORTER"), "none") {
		return nil, nil
	}
	sampler, err := sampler()
	if err != nil {
		return nil, err
	}
	exporter, err := exporter(ctx, o.Endpoint, at)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", o.Service),
		attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Instance)),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if about == nil {
		return nil, fmt.Errorf("describing this process to the collector: %w", err)
	}
	s := &Sender{queue: newQueue(exporter, number("OTEL_BSP_MAX_QUEUE_SIZE", queueSize),
		time.Duration(number("OTEL_BSP_SCHEDULE_DELAY", int(batchDelay.Milliseconds())))*time.Millisecond, o.Log)}
	// What a collector refused of a batch it has taken, and what the libraries have to say besides.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(s.logLoss))
	spans := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithIDGenerator(ids{}), sdk.WithSpanProcessor(s.queue),
		sdk.WithSampler(sdk.ParentBased(sampler)))
	s.tracer = trace.New(spans.Tracer("loadstone", oteltrace.WithInstrumentationVersion(o.Version)),
		func(id oteltrace.TraceID) bool {
			return sampler.ShouldSample(sdk.SamplingParameters{ParentContext: context.Background(), TraceID: id,
				Name: "run"}).Decision == sdk.RecordAndSample
		})
	return s, nil
}

// Tracer makes the spans that are sent; nil where none are.
func (s *Sender) Tracer() *trace.Tracer {
	if s == nil {
		return nil
	}
	return s.tracer
}

// Close sends what waits, for as long as ctx allows, and ends.
func (s *Sender) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.Shutdown(ctx)
}

// ids are those that spans are to have.
type ids struct{}

// NewIDs implements sdk.IDGenerator.
func (ids) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	t, _ := trace.SpanIDs(ctx)
	for !t.IsValid() {
		fill(t[:])
	}
	return t, ids{}.NewSpanID(ctx, t)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	_, s := trace.SpanIDs(ctx)
	for !s.IsValid() {
		fill(s[:])
	}
	return s
}

func fill(b []byte) {
	for i := range b {
		b[i] = byte(rand.N(256))
	}
}

// How long one attempt to send may take, and all of one batch's.
const (
	attemptTimeout = 10 * time.Second
	batchTimeout   = 30 * time.Second
	minBackoff     = time.Second
	maxBackoff     = 5 * time.Second
)

// exporter speaks with the collector at an address, which flag says, or else the environment.
func exporter(ctx context.Context, flag, at string) (sdk.SpanExporter, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, engine.InvalidField("--otlp-endpoint", fmt.Sprintf("%q is no address of a collector", redactURL(u)),
			"write http://HOST:4318 or https://HOST (OTLP over HTTP), or http://HOST:4317 (gRPC)")
	}
	if egress.IsForbiddenHost(u.Hostname()) {
		return nil, egress.InvalidFlag("--otlp-endpoint", u.Hostname())
	}
	security, err := tlsConfig()
	if err != nil {
		return nil, err
	}
	protocol := protocol(u)
	switch protocol {
	case "grpc":
		options := []otlptracegrpc.Option{otlptracegrpc.WithTimeout(attempt()),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: minBackoff,
				MaxInterval: maxBackoff, MaxElapsedTime: batchTimeout})}
		if flag != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(at))
		}
		// Who brings a way of dialling leaves the proxy of the environment out.
		if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy == nil {
			options = append(options, otlptracegrpc.WithDialOption(grpc.WithContextDialer(
				func(ctx context.Context, address string) (net.Conn, error) {
					return egress.Unrestricted().Dial(ctx, "tcp", address)
				})))
		}
		return otlptracegrpc.New(ctx, options...)
	case "", "http/protobuf":
		client := &http.Client{Timeout: attempt(), Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,
			DialContext: egress.Unrestricted().Dial, TLSClientConfig: security, TLSHandshakeTimeout: attemptTimeout,
			ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}}
		options := []otlptracehttp.Option{otlptracehttp.WithHTTPClient(client),
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: minBackoff,
				MaxInterval: maxBackoff, MaxElapsedTime: batchTimeout})}
		if flag != "" {
			if !strings.HasSuffix(u.Path, "/v1/traces") {
				u = u.JoinPath("v1/traces")
			}
			options = append(options, otlptracehttp.WithEndpointURL(u.String()))
		}
		return otlptracehttp.New(ctx, options...)
	}
	return nil, engine.InvalidField("OTEL_EXPORTER_OTLP_PROTOCOL", fmt.Sprintf("is %q", protocol),
		"write grpc or http/protobuf")
}

// protocol is the one that the environment says, or that of the address's port; empty for the usual one.
func protocol(at *url.URL) string {
	said := firstNonEmpty(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if said == "" && at.Port() == "4317" {
		return "grpc" // its own port
	}
	return said
}

// tlsConfig is TLS as the environment has it. It refuses files that cannot be used: the library would go on without.
func tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, path := envFile("CERTIFICATE"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, engine.InvalidField(name, fmt.Sprintf("cannot be read: %v", err), "name a file of certificates in PEM")
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, engine.InvalidField(name, "holds no certificate: "+path, "name a file of certificates in PEM")
		}
	}
	name, cert := envFile("CLIENT_CERTIFICATE")
	if _, key := envFile("CLIENT_KEY"); cert != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, engine.InvalidField(name, fmt.Sprintf("cannot be used with its key: %v", err),
				"name files of a certificate and its key in PEM")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// envFile is a file that the environment names, for traces or for all that is sent, and the variable.
func envFile(what string) (name, path string) {
	for _, name = range []string{"OTEL_EXPORTER_OTLP_TRACES_" + what, "OTEL_EXPORTER_OTLP_" + what} {
		if path = os.Getenv(name); path != "" {
			return name, path
		}
	}
	return name, ""
}

// redactURL is an address without what may be secret in it.
func redactURL(u *url.URL) string {
	if u == nil {
		return "the address"
	}
	return u.Redacted()
}

// attempt is how long one attempt to send may take.
func attempt() time.Duration {
	most := int(attemptTimeout.Milliseconds())
	return time.Duration(number("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", number("OTEL_EXPORTER_OTLP_TIMEOUT", most))) *
		time.Millisecond
}

// sampler is the one that the environment asks for. It decides by the trace's id alone, so that all processes of a run
// decide alike.
func sampler() (sdk.Sampler, error) {
	name := os.Getenv("OTEL_TRACES_SAMPLER")
	switch strings.TrimPrefix(name, "parentbased_") {
	case "", "always_on":
		return sdk.AlwaysSample(), nil
	case "always_off":
		return sdk.NeverSample(), nil
	case "traceidratio":
		part, err := strconv.ParseFloat(firstNonEmpty(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), "1"), 64)
		if err != nil || part < 0 || part > 1 {
			return nil, engine.InvalidField("OTEL_TRACES_SAMPLER_ARG", "is no part of 1", "write a number from 0 to 1")
		}
		return sdk.TraceIDRatioBased(part), nil
	}
	return nil, engine.InvalidField("OTEL_TRACES_SAMPLER", fmt.Sprintf("is %q, which is not known here", name),
		"write always_on, always_off or traceidratio, with parentbased_ before it or not")
}

// number reads one from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
