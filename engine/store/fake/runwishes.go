package fake

import (
	"context"
	"slices"
	"strconv"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// AskOfRun implements store.RunWishes.
func (s *Store) AskOfRun(ctx context.Context, w store.RunWish) (int64, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if s.runs[w.RunID] == nil {
		return 0, notFound("run", w.RunID)
	}
	defer func() {
		close(s.noted)
		s.noted = make(chan struct{})
	}()
	for _, known := range s.runWishes {
		if known.RunID == w.RunID && known.Kind == w.Kind && known.AnsweredBy == "" {
			return known.Seq, nil
		}
	}
	w.Seq, w.AskedAt, w.AnsweredBy = s.next(), engine.At(now()), ""
	w.By, w.Server = store.CleanText(w.By), store.CleanText(w.Server)
	s.runWishes = append(s.runWishes, w)
	return w.Seq, nil
}

// RunWish implements store.RunWishes.
func (s *Store) RunWish(ctx context.Context, seq int64) (store.RunWish, error) {
	if err := s.begin(ctx); err != nil {
		return store.RunWish{}, err
	}
	defer s.mu.Unlock()
	for _, w := range s.runWishes {
		if w.Seq == seq && s.runs[w.RunID] != nil {
			return w, nil
		}
	}
	return store.RunWish{}, notFound("wish", strconv.FormatInt(seq, 10))
}

// OpenRunWishes implements store.RunWishes.
func (s *Store) OpenRunWishes(ctx context.Context) ([]store.RunWish, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.runWishes), func(w store.RunWish) bool {
		return w.AnsweredBy != "" || s.runs[w.RunID] == nil
	}), nil
}

// AnswerRunWish implements store.RunWishes.
func (s *Store) AnswerRunWish(ctx context.Context, seq int64, server string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range s.runWishes {
		if w := &s.runWishes[i]; w.Seq == seq && w.AnsweredBy == "" {
			w.AnsweredBy = store.CleanText(server)
		}
	}
	return nil
}

// HearRunWishes implements store.RunWishes.
func (s *Store) HearRunWishes(ctx context.Context, heard func()) error {
	for {
		if err := s.begin(ctx); err != nil {
			return err
		}
		noted := s.noted
		s.mu.Unlock()
		heard()
		select {
		case <-noted:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
