package wiring

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/promql"
	"github.com/loadstone-db/loadstone/engine/analytics/promql/series"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/outbound/metrics"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/worker"
)

// segmentCacheBytes bounds what is kept of segments that were read.
const segmentCacheBytes = 256 << 20

// openSeries prepares to read the series of runs in this process.
func (s *Services) openSeries() {
	s.series = promql.NewEvaluator(s.readSeries, promql.DefaultOptions(), segmentCacheBytes)
}

// readSeries reads those of a run: of one that was taken in from its segment, of another from the results database.
func (s *Services) readSeries(ctx context.Context, g promql.Segment) (*series.Set, int64, error) {
	if !g.Live {
		file, err := s.Results.OpenSegment(ctx, g.RunID, g.Name)
		if err != nil {
			return nil, 0, err
		}
		set, err := series.Read(file, g.Labels)
		_ = file.Close()
		return set, 0, err
	}
	t := s.tables.Load()
	if t == nil {
		return nil, 0, &engine.Error{Code: engine.CodeUnavailable, Message: "There is no results database here.",
			Hint: "Start the server with --results-database-url."}
	}
	db, err := t.Database(ctx)
	if err != nil {
		return nil, 0, err
	}
	set, err := series.Live(g.Labels, func(add func(*segment.Row, []int64) error) error {
		return db.Seconds(ctx, g.RunID, add)
	})
	return set, 0, err
}

// serveQueryWork has the own node of a server take the work of queries; a run of the command line asks nothing.
func (s *Services) serveQueryWork() func(worker.Disk) worker.Queries {
	if !s.options.Serves {
		return nil
	}
	return func(d worker.Disk) worker.Queries {
		return promql.NewExecutor(
			promql.ExecutorOptions{NodeID: protocol.OwnNode, Evaluate: s.series, Disk: d, Meter: s.localMetrics, Log: s.Log},
		)
	}
}

// OpenQueryWork has a node of another process take the work of queries: over segments that servers bring, in cache.
func OpenQueryWork(id string, m *metrics.Node, log zerolog.Logger) (queries func(worker.Disk) worker.Queries,
	cache func() *promql.Cache) {
	var c *promql.Cache
	return func(d worker.Disk) worker.Queries {
		c = promql.NewCache(d, log)
		return promql.NewExecutor(promql.ExecutorOptions{NodeID: id, Cache: c, Disk: d, Meter: m, Log: log,
			Evaluate: promql.NewEvaluator(c.Read, promql.DefaultOptions(), segmentCacheBytes)})
	}, func() *promql.Cache { return c }
}

// Telemetry returns what answers PromQL over the runs that were taken in, and those that go on.
func (t *Tables) Telemetry() *promql.Telemetry {
	asking := promql.Dispatcher{Catalog: segmentCatalog{t}, Nodes: t.s.Runs.Nodes(), Own: t.s.series, Meter: t.s.Metrics,
		Log: t.s.Log}
	return promql.NewTelemetry(segmentCatalog{t}, asking, t.s.series, promql.DefaultOptions())
}

// segmentCatalog are those that the results database names.
type segmentCatalog struct{ tables *Tables }

// Segments implements promql.Catalog.
func (s segmentCatalog) Segments(ctx context.Context, from, to int64) ([]promql.Segment, error) {
	db, err := s.tables.Database(ctx)
	if err != nil {
		return nil, err
	}
	// A run's last sample is later than its end by the rest of a second, a warehouse's by two polls.
	const late = 20 * time.Second
	found, err := db.Segments(
		ctx,
		time.UnixMilli(queryableTime(from)).Add(-late),
		time.UnixMilli(queryableTime(to)).Add(late),
	)
	if err != nil {
		return nil, err
	}
	all := make([]promql.Segment, len(found))
	for i, s := range found {
		all[i] = promql.Segment{RunID: s.RunID, Name: s.Name, Live: s.Live, SHA256: s.SHA256, Bytes: s.SizeBytes,
			From: s.StartedAt.Add(-late).UnixMilli(), To: s.EndedAt.Add(late).UnixMilli(),
			Labels: labels.FromStrings("run", s.RunID, "run_name", s.RunName, "template", s.Template,
				"table_type", s.Adapter, "target", s.Connection, "table", s.Table)}
	}
	return all, nil
}

// queryableTime is a time that a database can be asked for.
func queryableTime(ms int64) int64 { return min(max(ms, 0), 32_503_680_000_000) }
