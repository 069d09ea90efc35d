package wiring

import (
	"context"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/outbound/otlp"
)

// TraceFlags say where spans are sent.
type TraceFlags struct {
	OTLPEndpoint string `name:"otlp-endpoint" placeholder:"URL" env:"LOADSTONE_OTLP_ENDPOINT" help:"Send traces to this collector: http://HOST:4318 (OTLP over HTTP) or http://HOST:4317 (gRPC). The variables OTEL_EXPORTER_OTLP_* apply (default: none)."`
}

// Tracing is how a process sends spans.
type Tracing struct {
	flags   TraceFlags
	service string
	env     *terminal.Env
}

// ForService is how the process that has this name sends spans.
func (f TraceFlags) ForService(service string, e *terminal.Env) Tracing {
	return Tracing{f, service, e}
}

// tracesCloseTimeout is how long the end of a process waits for a collector that does not answer.
const tracesCloseTimeout = 3 * time.Second

// Open begins to send spans, which is to be closed at the end; nil where nobody has named a collector.
func (t Tracing) Open(ctx context.Context, instance string) (*otlp.Sender, func(), error) {
	if t.env == nil {
		return nil, func() {}, nil
	}
	s, err := otlp.Open(ctx, otlp.Options{Endpoint: t.flags.OTLPEndpoint, Service: t.service, Version: t.env.Version,
		Instance: instance, Log: t.env.Log})
	if s == nil || err != nil {
		return nil, func() {}, err
	}
	t.env.Traced()
	return s, func() {
		closing, cancel := context.WithTimeout(context.Background(), tracesCloseTimeout)
		defer cancel()
		_ = s.Close(closing) // what could not be sent is counted
	}, nil
}
