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

// RunArtifacts implements store.RunArtifacts but for TagRun. It is safe for concurrent use.
type RunArtifacts struct {
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

func artifactNow() engine.Time { return engine.At(time.Now().UTC().Truncate(time.Microsecond)) }

func artifactNotFound(what, id string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no %s %q.", what, id)}
}

// CreateShare implements store.RunArtifacts.
func (k *RunArtifacts) CreateShare(ctx context.Context, s store.Share, secret [32]byte) (store.Share, error) {
	run, err := k.Run(ctx, s.RunID)
	if err != nil {
		return s, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.ShareID, s.CreatedAt, s.RunName = uuid.NewString(), artifactNow(), run.RunName
	s.UsedAt, s.UseCount, s.RunDeleted = engine.Time{}, 0, false
	k.shares = append(k.shares, share{s, secret})
	return s, nil
}

// describeShare is a share with what has become of its run.
func (k *RunArtifacts) describeShare(ctx context.Context, s store.Share) (store.Share, error) {
	_, err := k.Run(ctx, s.RunID)
	if s.RunDeleted = errors.Is(err, store.ErrNotFound); s.RunDeleted {
		err = nil
	}
	return s, err
}

// UseShare implements store.RunArtifacts.
func (k *RunArtifacts) UseShare(ctx context.Context, secret [32]byte) (store.Share, error) {
	k.mu.Lock()
	i := slices.IndexFunc(k.shares, func(s share) bool { return s.secret == secret })
	if i < 0 {
		k.mu.Unlock()
		return store.Share{}, fmt.Errorf("a share: %w", store.ErrNotFound)
	}
	s := &k.shares[i]
	if at := artifactNow(); s.ExpiresAt.After(at.Time) {
		s.UsedAt, s.UseCount = at, s.UseCount+1
	}
	found := s.Share
	k.mu.Unlock()
	return k.describeShare(ctx, found)
}

// ListShares implements store.RunArtifacts.
func (k *RunArtifacts) ListShares(ctx context.Context, runID string) ([]store.Share, error) {
	k.mu.Lock()
	all := slices.Clone(k.shares)
	k.mu.Unlock()
	list := []store.Share{}
	for _, s := range slices.Backward(all) {
		if runID != "" && s.RunID != runID {
			continue
		}
		told, err := k.describeShare(ctx, s.Share)
		if err != nil {
			return nil, err
		}
		list = append(list, told)
	}
	return list, ctx.Err()
}

// RevokeShare implements store.RunArtifacts.
func (k *RunArtifacts) RevokeShare(ctx context.Context, shareID string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.shares)
	k.shares = slices.DeleteFunc(k.shares, func(s share) bool { return s.ShareID == shareID })
	if len(k.shares) == before {
		return artifactNotFound("share", shareID)
	}
	return ctx.Err()
}

// RevokeUserShares ends the links that a user has made, who is no more.
func (k *RunArtifacts) RevokeUserShares(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shares = slices.DeleteFunc(k.shares, func(s share) bool { return s.CreatedBy == name })
}

// RunNote implements store.RunArtifacts.
func (k *RunArtifacts) RunNote(ctx context.Context, runID string) (store.RunNote, error) {
	if _, err := k.Run(ctx, runID); err != nil {
		return store.RunNote{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.notes[runID]
	n.RunID = runID
	return n, nil
}

// SaveRunNote implements store.RunArtifacts.
func (k *RunArtifacts) SaveRunNote(ctx context.Context, n store.RunNote) (store.RunNote, error) {
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
		return n, store.ConcurrentEditError("note of run", n.RunID, there.UpdatedBy, there.UpdatedAt, there.Version)
	}
	n.Version, n.UpdatedAt, n.UpdatedBy = n.Version+1, artifactNow(), store.CleanText(n.UpdatedBy)
	if k.notes == nil {
		k.notes = map[string]store.RunNote{}
	}
	k.notes[n.RunID] = n
	return n, nil
}

// Baseline implements store.RunArtifacts.
func (k *RunArtifacts) Baseline(ctx context.Context, templateID string) (store.Baseline, error) {
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

// SetBaseline implements store.RunArtifacts.
func (k *RunArtifacts) SetBaseline(ctx context.Context, b store.Baseline) (store.Baseline, error) {
	if _, err := k.Template(ctx, b.TemplateID); err != nil {
		return b, err
	}
	run, err := k.Run(ctx, b.RunID)
	switch {
	case err != nil:
		return b, err
	case run.TemplateID != b.TemplateID:
		return b, store.BaselineError("it is of another template")
	case run.Status != engine.StatusCompleted:
		return b, store.BaselineError("it has not completed")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	b.SetAt, b.SetBy = artifactNow(), store.CleanText(b.SetBy)
	if k.baselines == nil {
		k.baselines = map[string]store.Baseline{}
	}
	k.baselines[b.TemplateID] = b
	return b, nil
}

// DeleteBaseline implements store.RunArtifacts.
func (k *RunArtifacts) DeleteBaseline(ctx context.Context, templateID string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.baselines, templateID)
	return ctx.Err()
}
