package finalize

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/run/writer"
	"github.com/loadstone-db/loadstone/engine/store"
)

// maxConcurrentFetches is how many parts of one run are fetched at a time: most of that is waiting, for nodes and for
// disks.
const maxConcurrentFetches = 8

// StorePart stores and indexes one part, then acknowledges it: the node deletes its own after
// that. Repeating it is harmless.
func (s *Service) StorePart(ctx context.Context, k *writer.Writer, p nodes.Part) error {
	return s.storeParts(ctx, k, []nodes.Part{p})[0]
}

// storeParts is Keep of several parts: some are fetched while others are, and they are indexed and acknowledged in
// their order. It returns what became of each.
func (s *Service) storeParts(ctx context.Context, k *writer.Writer, parts []nodes.Part) []error {
	errs := make([]error, len(parts))
	stored, indexed := make([]chan error, len(parts)), make(chan *writer.Write, len(parts))
	for i := range stored {
		stored[i] = make(chan error, 1)
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	turns := make(chan struct{}, maxConcurrentFetches)
	wait.Go(func() {
		for i, p := range parts {
			turns <- struct{}{} // room: once a part before has been put, which ends with ctx
			wait.Go(func() {
				stored[i] <- s.opts.Results.Put(ctx, p.Artifact, p) // room: a part is put once
				<-turns
			})
		}
	})
	wait.Go(func() {
		for i, p := range parts {
			if err := <-stored[i]; err != nil {
				errs[i] = fmt.Errorf("storing %s: %w", p.Artifact.Name, err)
				indexed <- nil // room: one for each part
				continue
			}
			indexed <- k.SaveArtifact(p.Artifact) // room: one for each part
		}
	})
	for i, p := range parts {
		w := <-indexed
		if w == nil {
			continue
		}
		select {
		case <-w.Done():
			errs[i] = w.Err()
			if errors.Is(errs[i], store.ErrExecutionsDeleted) {
				errs[i] = nil // nobody wants it any more, and what was stored is removed again
			}
			if errs[i] == nil {
				p.Acknowledge()
			}
		case <-ctx.Done():
			errs[i] = ctx.Err()
		}
	}
	return errs
}
