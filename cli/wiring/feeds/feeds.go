// Package feeds puts the continuous queries of a server together, and opens what they read and write.
package feeds

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/catalog"
	"github.com/loadstone-db/loadstone/engine/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/column"
	"github.com/loadstone-db/loadstone/engine/stream/feed"
	"github.com/loadstone-db/loadstone/engine/stream/outlet"
	"github.com/loadstone-db/loadstone/engine/stream/telemetry"
)

// Feeds open what queries read and write.
type Feeds struct {
	// Folder is where files lie.
	Folder *feed.Folder
	// Hub is what the product tells.
	Hub *telemetry.Hub
	// Reach is what may be reached on the word of who writes statements.
	Reach *egress.Policy
	// Stop stops runs.
	Stop outlet.StopRun
	// Printed are rows that were printed.
	Printed outlet.Printed
	// Alerts are what rules have told.
	Alerts outlet.Alerts
	// Metrics are what queries tell as gauges.
	Metrics outlet.Metrics
	// Troubles are what sinks wait for.
	Troubles outlet.Troubles
	// tables are those of saved connections.
	tables tables
}

// Source implements coordinator.Feeds.
func (f *Feeds) Source(ctx context.Context, s catalog.PhysicalSource, columns []column.Column) (feed.Source, error) {
	if stream := s.Config.Text("SOURCE.STREAM"); s.Type == feed.System {
		if want, fits := telemetry.Fits(stream, columns); !fits {
			return nil, fmt.Errorf("%w: the columns of the stream %s are %s", coordinator.ErrUnusable, stream, want)
		}
		return f.Hub.Open(s.Config.Text("SOURCE.STREAM"), columns), nil
	}
	source, err := feed.Open(ctx, s.Type, s.Config, columns, f.Folder, f.Reach.Dial)
	return source, unusable(err)
}

// Sink implements coordinator.Feeds.
func (f *Feeds) Sink(ctx context.Context, q catalog.Query, s catalog.Sink, columns []column.Column) (feed.Sink, error) {
	var sink feed.Sink
	var err error
	switch s.Type {
	case feed.Guardrail:
		sink = outlet.Guardrail(q.Name, s.Config, columns, f.Stop, f.Alerts.Of(q.ID, q.Name, s.Type))
	case feed.Webhook:
		sink, err = outlet.Webhook(ctx, s.Config, columns, f.Reach,
			f.Troubles.Telling(q.ID, f.Alerts.Of(q.ID, q.Name, s.Type)))
	case feed.Metric:
		sink = f.Metrics.Open(q.Name, s.Config, columns)
	case feed.Postgres:
		return f.tables.open(ctx, q, s, columns, f.Troubles.Of(q.ID))
	case feed.Print:
		sink, err = feed.OpenSink(s.Type, s.Config, columns, f.Folder, f.Printed.Of(q.ID))
	default:
		sink, err = feed.OpenSink(s.Type, s.Config, columns, f.Folder, nil)
	}
	return sink, unusable(err)
}

// unusable marks errors that stay.
func unusable(err error) error {
	if errors.Is(err, feed.ErrPath) || errors.Is(err, outlet.ErrSealed) || errors.Is(err, egress.ErrRefused) {
		return fmt.Errorf("%w: %w", coordinator.ErrUnusable, err)
	}
	return err
}
