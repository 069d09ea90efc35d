package fake

import (
	"context"
	"slices"
	"strconv"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// EnqueueRunCommand implements run.CommandStore.
func (s *Store) EnqueueRunCommand(ctx context.Context, w store.RunCommand) (int64, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if s.runs[w.RunID] == nil {
		return 0, notFound("run", w.RunID)
	}
	defer func() {
		close(s.commandAdded)
		s.commandAdded = make(chan struct{})
	}()
	for i := range s.runCommands {
		if known := &s.runCommands[i]; known.RunID == w.RunID && known.Kind == w.Kind && known.AckedBy == "" {
			known.HeardBy = ""
			return known.Seq, nil
		}
	}
	w.Seq, w.EnqueuedAt, w.AckedBy, w.HeardBy = s.next(), engine.At(now()), "", ""
	w.By, w.Server = store.CleanText(w.By), store.CleanText(w.Server)
	s.runCommands = append(s.runCommands, w)
	return w.Seq, nil
}

// RunCommand implements run.CommandStore.
func (s *Store) RunCommand(ctx context.Context, seq int64) (store.RunCommand, error) {
	if err := s.lock(ctx); err != nil {
		return store.RunCommand{}, err
	}
	defer s.mu.Unlock()
	for _, w := range s.runCommands {
		if w.Seq == seq && s.runs[w.RunID] != nil {
			return w, nil
		}
	}
	return store.RunCommand{}, notFound("command", strconv.FormatInt(seq, 10))
}

// PendingRunCommands implements run.CommandStore.
func (s *Store) PendingRunCommands(ctx context.Context) ([]store.RunCommand, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.runCommands), func(w store.RunCommand) bool {
		return w.AckedBy != "" || s.runs[w.RunID] == nil
	}), nil
}

// HearRunCommand implements run.CommandStore.
func (s *Store) HearRunCommand(ctx context.Context, seq int64, server string) (string, error) {
	if err := s.lock(ctx); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	for i := range s.runCommands {
		if w := &s.runCommands[i]; w.Seq == seq && w.AckedBy == "" && s.runs[w.RunID] != nil {
			if w.HeardBy == "" {
				w.HeardBy = store.CleanText(server)
			}
			return w.HeardBy, nil
		}
	}
	return "", notFound("open command", strconv.FormatInt(seq, 10))
}

// AckRunCommand implements run.CommandStore.
func (s *Store) AckRunCommand(ctx context.Context, seq int64, server string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range s.runCommands {
		if w := &s.runCommands[i]; w.Seq == seq && w.AckedBy == "" {
			w.AckedBy = store.CleanText(server)
		}
	}
	return nil
}

// WatchRunCommands implements run.CommandStore.
func (s *Store) WatchRunCommands(ctx context.Context, heard func()) error {
	for {
		if err := s.lock(ctx); err != nil {
			return err
		}
		noted := s.commandAdded
		s.mu.Unlock()
		heard()
		select {
		case <-noted:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
