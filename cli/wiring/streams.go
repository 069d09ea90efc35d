package wiring

import (
	"context"

	"github.com/loadstone-db/loadstone/cli/wiring/feeds"
)

// OpenStreams begins to look after continuous queries.
func (s *Services) OpenStreams(ctx context.Context) (*feeds.Streams, error) {
	streams, err := feeds.Open(ctx, feeds.Options{DataDir: s.DataDir, Keeper: s.Store.Streams(), Owner: s.owner,
		Connections: s.Store, Reader: s.relational, Hub: s.hub, Reach: s.reachable,
		Nodes: s.Roster.Nodes, Fragments: s.Runs.Fleet().Fragments, Runs: s.Runs, Log: s.Log})
	if err != nil {
		return nil, err
	}
	s.collectors = append(s.collectors, streams.Metrics())
	s.onClose(streams.Close)
	return streams, nil
}
