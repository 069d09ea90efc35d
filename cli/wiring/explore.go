package wiring

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/loadstone-db/loadstone/engine/explore"
	"github.com/loadstone-db/loadstone/engine/explore/leaf"
	"github.com/loadstone-db/loadstone/engine/explore/node"
	"github.com/loadstone-db/loadstone/engine/explore/series"
	"github.com/loadstone-db/loadstone/engine/segment"
)

// seriesInMemory bounds what is kept of segments that were read.
const seriesInMemory = 256 << 20

// Telemetry returns what answers PromQL over the runs that were taken in.
func (t *Tables) Telemetry() *explore.Telemetry {
	o := leaf.DefaultOptions()
	files := node.Files(func(ctx context.Context, s node.Segment) (*segment.File, error) {
		return t.s.Results.OpenSegment(ctx, s.RunID, s.Name)
	})
	read := func(ctx context.Context, s node.Segment) (*series.Set, error) {
		if !s.Live {
			return files(ctx, s)
		}
		db, err := t.Database(ctx)
		if err != nil {
			return nil, err
		}
		return series.Live(s.Labels, func(add func(*segment.Row, []int64) error) error {
			return db.Seconds(ctx, s.RunID, add)
		})
	}
	n := node.New(read, o, seriesInMemory)
	return explore.NewTelemetry(segments{t}, explore.Local{Catalog: segments{t}, Node: n}, n, o)
}

// segments are those that the results database names.
type segments struct{ tables *Tables }

// Segments implements explore.Catalog.
func (s segments) Segments(ctx context.Context, from, to int64) ([]node.Segment, error) {
	db, err := s.tables.Database(ctx)
	if err != nil {
		return nil, err
	}
	// A run's last sample is later than its end by the rest of a second, a warehouse's by two polls.
	const late = 20 * time.Second
	found, err := db.Segments(ctx, time.UnixMilli(askable(from)).Add(-late), time.UnixMilli(askable(to)).Add(late))
	if err != nil {
		return nil, err
	}
	all := make([]node.Segment, len(found))
	for i, s := range found {
		all[i] = node.Segment{RunID: s.RunID, Name: s.Name, Live: s.Live, SHA256: s.SHA256, Bytes: s.SizeBytes,
			From: s.StartedAt.Add(-late).UnixMilli(), To: s.EndedAt.Add(late).UnixMilli(),
			Labels: labels.FromStrings("run", s.RunID, "run_name", s.RunName, "template", s.Template,
				"table_type", s.Adapter, "target", s.Connection, "table", s.Table)}
	}
	return all, nil
}

// askable is a time that a database can be asked for.
func askable(ms int64) int64 { return min(max(ms, 0), 32_503_680_000_000) }
