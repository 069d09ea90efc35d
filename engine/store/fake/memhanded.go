// This part keeps shares, notes and baselines of runs in memory, a part of the store there.

package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// MemhandedKept implements store.Handed but for TagRun. It is safe for concurrent use.
type MemhandedKept struct {
	// Run and Template look into the rest of the store.
	Run      func(ctx context.Context, runID string) (engine.Run, error)
	Template func(ctx context.Context, id string) (store.Template, error)

	mu        sync.Mutex
	shares    []share // oldest first
	notes     map[string]store.RunNote
	baselines map[string]store.Baseline
}

type share struct {
	store.Share
	secret [32]byte
}

func memhandedNow() engine.Time { return engine.At(time.Now().UTC().Truncate(time.Microsecond)) }

func memhandedMissing(what, id string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no %s %q.", what, id)}
}

// CreateShare implements store.Handed.
func (k *MemhandedKept) CreateShare(ctx context.Context, s store.Share, secret [32]byte) (store.Share, error) {
	run, err := k.Run(ctx, s.RunID)
	if err != nil {
		return s, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.ShareID, s.CreatedAt, s.RunName = uuid.NewString(), memhandedNow(), run.RunName
	s.UsedAt, s.UseCount, s.RunDeleted = engine.Time{}, 0, false
	k.shares = append(k.shares, share{s, secret})
	return s, nil
}

// told is a share with what has become of its run.
func (k *MemhandedKept) told(ctx context.Context, s store.Share) (store.Share, error) {
	_, err := k.Run(ctx, s.RunID)
	if s.RunDeleted = errors.Is(err, store.ErrNotFound); s.RunDeleted {
		err = nil
	}
	return s, err
}

// UseShare implements store.Handed.
func (k *MemhandedKept) UseShare(ctx context.Context, secret [32]byte) (store.Share, error) {
	k.mu.Lock()
	i := slices.IndexFunc(k.shares, func(s share) bool { return s.secret == secret })
	if i < 0 {
		k.mu.Unlock()
		return store.Share{}, fmt.Errorf("a share: %w", store.ErrNotFound)
	}
	s := &k.shares[i]
	if at := memhandedNow(); s.ExpiresAt.After(at.Time) {
		s.UsedAt, s.UseCount = at, s.UseCount+1
	}
	found := s.Share
	k.mu.Unlock()
	return k.told(ctx, found)
}

// ListShares implements store.Handed.
func (k *MemhandedKept) ListShares(ctx context.Context, runID string) ([]store.Share, error) {
	k.mu.Lock()
	all := slices.Clone(k.shares)
	k.mu.Unlock()
	list := []store.Share{}
	for _, s := range slices.Backward(all) {
		if runID != "" && s.RunID != runID {
			continue
		}
		told, err := k.told(ctx, s.Share)
		if err != nil {
			return nil, err
		}
		list = append(list, told)
	}
	return list, ctx.Err()
}

// EndShare implements store.Handed.
func (k *MemhandedKept) EndShare(ctx context.Context, shareID string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.shares)
	k.shares = slices.DeleteFunc(k.shares, func(s share) bool { return s.ShareID == shareID })
	if len(k.shares) == before {
		return memhandedMissing("share", shareID)
	}
	return ctx.Err()
}

// EndSharesOf ends the links that a user has made, who is no more.
func (k *MemhandedKept) EndSharesOf(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shares = slices.DeleteFunc(k.shares, func(s share) bool { return s.CreatedBy == name })
}

// RunNote implements store.Handed.
func (k *MemhandedKept) RunNote(ctx context.Context, runID string) (store.RunNote, error) {
	if _, err := k.Run(ctx, runID); err != nil {
		return store.RunNote{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.notes[runID]
	n.RunID = runID
	return n, nil
}

// SaveRunNote implements store.Handed.
func (k *MemhandedKept) SaveRunNote(ctx context.Context, n store.RunNote) (store.RunNote, error) {
	n, err := store.CheckNote(n)
	if err != nil {
		return n, err
	}
	if _, err := k.Run(ctx, n.RunID); err != nil {
		return n, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if there := k.notes[n.RunID]; there.Version != n.Version {
		return n, store.ChangedMeanwhile("note of run", n.RunID, there.UpdatedBy, there.UpdatedAt, there.Version)
	}
	n.Version, n.UpdatedAt, n.UpdatedBy = n.Version+1, memhandedNow(), store.CleanText(n.UpdatedBy)
	if k.notes == nil {
		k.notes = map[string]store.RunNote{}
	}
	k.notes[n.RunID] = n
	return n, nil
}

// Baseline implements store.Handed.
func (k *MemhandedKept) Baseline(ctx context.Context, templateID string) (store.Baseline, error) {
	k.mu.Lock()
	b, ok := k.baselines[templateID]
	k.mu.Unlock()
	if !ok {
		return b, fmt.Errorf("a baseline: %w", store.ErrNotFound)
	}
	// It goes with its run and its template.
	if _, err := k.Run(ctx, b.RunID); err != nil {
		return store.Baseline{}, err
	}
	_, err := k.Template(ctx, templateID)
	return b, err
}

// SetBaseline implements store.Handed.
func (k *MemhandedKept) SetBaseline(ctx context.Context, b store.Baseline) (store.Baseline, error) {
	if _, err := k.Template(ctx, b.TemplateID); err != nil {
		return b, err
	}
	run, err := k.Run(ctx, b.RunID)
	switch {
	case err != nil:
		return b, err
	case run.TemplateID != b.TemplateID:
		return b, store.NotBaseline("it is of another template")
	case run.Status != engine.StatusCompleted:
		return b, store.NotBaseline("it has not completed")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	b.SetAt, b.SetBy = memhandedNow(), store.CleanText(b.SetBy)
	if k.baselines == nil {
		k.baselines = map[string]store.Baseline{}
	}
	k.baselines[b.TemplateID] = b
	return b, nil
}

// DropBaseline implements store.Handed.
func (k *MemhandedKept) DropBaseline(ctx context.Context, templateID string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.baselines, templateID)
	return ctx.Err()
}
