package wiring

import (
	"context"
)

// OpenStreams begins to look after continuous queries.
func (s *Services) OpenStreams(ctx context.Context) (*Streams, error) {
	streams, err := OpenContinuousQueries(
		ctx,
		StreamOptions{DataDir: s.DataDir, Catalog: s.Store.Streams(), Owner: s.owner,
			Connections: s.Store, Reader: s.relational, Hub: s.hub, Egress: s.reachable,
			Memory: s.streamMemory, ReleaseAfter: s.options.StreamRelease.After,
			Nodes: s.Roster.Nodes, Fragments: s.Runs.Nodes().Fragments, Runs: s.Runs, Log: s.Log},
	)
	if err != nil {
		return nil, err
	}
	s.collectors = append(s.collectors, streams.Metrics())
	s.onClose(streams.Close)
	return streams, nil
}
