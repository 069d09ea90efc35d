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

// ofRun is what a node records of one run, while its rules read it.
type ofRun struct {
	hub     *system.Hub
	leave   func()
	readers int
}

// sourceOf opens what the node records of a run. Rules of the run share it; queries over all runs have another.
func (n *Node) sourceOf(ctx context.Context, run string, s catalog.PhysicalSource,
	columns []column.Column) (connector.Source, error) {
	n.mu.Lock()
	of := n.runs[run]
	if of == nil {
		of = &ofRun{hub: &system.Hub{Node: n.o.ID, Account: n.hub.Spent()}}
		of.leave = n.recorded.Listen(run, of.hub.Taps())
		n.runs[run] = of
	}
	of.readers++
	n.mu.Unlock()
	source, err := (&Feeds{Hub: of.hub}).Source(ctx, s, columns)
	part, is := source.(connector.Partial)
	if err == nil && !is {
		err = errors.New("rules read only what run workers record")
	}
	if err != nil {
		n.closed(run)
		return nil, err
	}
	read := &sourceOfRun{Partial: part, closed: sync.OnceFunc(func() { n.closed(run) })}
	if m, is := source.(connector.Metered); is {
		return &meteredOfRun{read, m.Took}, nil
	}
	return read, nil
}

// closed takes note that one reads a run no more.
func (n *Node) closed(run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.runs[run]
	if of.readers--; of.readers == 0 {
		delete(n.runs, run)
		of.leave()
	}
}

// sourceOfRun ends the hub of its run with the last that reads it.
type sourceOfRun struct {
	connector.Partial
	closed func()
}

// Close implements connector.Source.
func (s *sourceOfRun) Close() error {
	err := s.Partial.Close()
	s.closed()
	return err
}

type meteredOfRun struct {
	*sourceOfRun
	took func(time.Duration) (time.Duration, error)
}

// Took implements connector.Metered.
func (s *meteredOfRun) Took(d time.Duration) (time.Duration, error) { return s.took(d) }
