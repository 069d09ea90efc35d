package wiring

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// runSource is what a node records of one run, while its rules read it.
type runSource struct {
	hub         *system.Hub
	unsubscribe func()
	readers     int
}

// openRunSource opens what the node records of a run. Rules of the run share it; queries over all runs have another.
func (n *StreamNode) openRunSource(ctx context.Context, run string, s catalog.PhysicalSource,
	columns []column.Column) (connector.Source, error) {
	n.mu.Lock()
	of := n.runs[run]
	if of == nil {
		of = &runSource{hub: &system.Hub{Node: n.o.ID, Account: n.hub.CPUAccount()}}
		of.unsubscribe = n.recorded.Listen(run, of.hub.Observers())
		n.runs[run] = of
	}
	of.readers++
	n.mu.Unlock()
	source, err := (&Connectors{Hub: of.hub}).Source(ctx, s, columns)
	part, is := source.(connector.Partial)
	if err == nil && !is {
		err = errors.New("rules read only what run workers record")
	}
	if err != nil {
		n.releaseRunSource(run)
		return nil, err
	}
	read := &sharedRunSource{Partial: part, closed: sync.OnceFunc(func() { n.releaseRunSource(run) })}
	if m, is := source.(connector.Metered); is {
		return &meteredRunSource{read, m.Took}, nil
	}
	return read, nil
}

// releaseRunSource takes note that one reads a run no more.
func (n *StreamNode) releaseRunSource(run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.runs[run]
	if of.readers--; of.readers == 0 {
		delete(n.runs, run)
		of.unsubscribe()
	}
}

// sharedRunSource ends the hub of its run with the last that reads it.
type sharedRunSource struct {
	connector.Partial
	closed func()
}

// Close implements connector.Source.
func (s *sharedRunSource) Close() error {
	err := s.Partial.Close()
	s.closed()
	return err
}

type meteredRunSource struct {
	*sharedRunSource
	took func(time.Duration) (time.Duration, error)
}

// Took implements connector.Metered.
func (s *meteredRunSource) Took(d time.Duration) (time.Duration, error) { return s.took(d) }
