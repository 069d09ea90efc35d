package wiring

import (
	"context"
)

// OpenStreams begins to look after continuous queries.
func (s *Services) OpenStreams(ctx context.Context) (*Streams, error) {
	streams, err := OpenStream(ctx, StreamOptions{DataDir: s.DataDir, Keeper: s.Store.Streams(), Owner: s.owner,
		Connections: s.Store, Reader: s.relational, Hub: s.hub, Reach: s.reachable,
		Nodes: s.Roster.Nodes, Fragments: s.Runs.Fleet().Fragments, Runs: s.Runs, Log: s.Log})
	if err != nil {
		return nil, err
	}
	s.collectors = append(s.collectors, streams.Metrics())
	s.onClose(streams.Close)
	return streams, nil
}
