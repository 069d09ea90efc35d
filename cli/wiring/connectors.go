// This part puts the continuous queries of a server together, and opens what they read and write.

package wiring

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// Connectors open what queries read and write.
type Connectors struct {
	// Folder is where files lie.
	Folder *connector.Folder
	// Hub is what the product tells.
	Hub *system.Hub
	// Egress is what may be reached on the word of who writes statements.
	Egress *egress.Policy
	// StopRun stops runs.
	StopRun connector.StopRun
	// Printed are rows that were printed.
	Printed connector.Printed
	// Alerts are what rules have told.
	Alerts connector.Alerts
	// Metrics are what queries tell as gauges.
	Metrics connector.Metrics
	// Failures are what sinks wait for.
	Failures connector.SinkProblems
	// tables are those of saved connections.
	tables tables
}

// Source implements coordinator.Connectors.
func (f *Connectors) Source(
	ctx context.Context,
	s catalog.PhysicalSource,
	columns []column.Column,
) (connector.Source, error) {
	if stream := s.Config.String("SOURCE.STREAM"); s.Type == connector.System {
		if want, fits := system.Fits(stream, columns); !fits {
			return nil, fmt.Errorf("%w: the columns of the stream %s are %s", coordinator.ErrUnusable, stream, want)
		}
		return f.Hub.Open(s.Config.String("SOURCE.STREAM"), columns), nil
	}
	source, err := connector.Open(ctx, s.Type, s.Config, columns, f.Folder, f.Egress.Dial)
	return source, unusable(err)
}

// Sink implements coordinator.Connectors.
func (f *Connectors) Sink(
	ctx context.Context,
	q catalog.Query,
	s catalog.Sink,
	columns []column.Column,
) (connector.Sink, error) {
	if err := f.tables.authorize(ctx, q, s); err != nil {
		return nil, err
	}
	var sink connector.Sink
	var err error
	switch s.Type {
	case connector.Guardrail:
		sink = connector.NewGuardrail(ctx, q.Name, s.Config, columns, f.StopRun, f.Alerts.For(q.ID, q.Name, s.Type))
	case connector.Webhook:
		sink, err = connector.NewWebhook(ctx, secret.New(s.Config.String("SINK.URL")), columns, f.Egress,
			f.Failures.Wrap(q.ID, f.Alerts.For(q.ID, q.Name, s.Type)))
	case connector.Metric:
		sink = f.Metrics.Open(q.Name, s.Config, columns)
	case connector.Postgres:
		return f.tables.open(ctx, q, s, columns, f.Failures.For(q.ID))
	case connector.Print:
		sink, err = connector.OpenSink(s.Type, s.Config, columns, f.Folder, f.Printed.Writer(q.ID))
	default:
		sink, err = connector.OpenSink(s.Type, s.Config, columns, f.Folder, nil)
	}
	return sink, unusable(err)
}

// unusable marks errors that stay.
func unusable(err error) error {
	if errors.Is(err, connector.ErrPath) || errors.Is(err, connector.ErrSealed) || errors.Is(err, egress.ErrRefused) {
		return fmt.Errorf("%w: %w", coordinator.ErrUnusable, err)
	}
	return err
}
