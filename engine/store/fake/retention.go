// This part finds the runs that may go in memory, a part of the store there.

package fake

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/store"
)

// RetentionDeps is what is asked of the rest of the store.
type RetentionDeps interface {
	ListRuns(ctx context.Context, f store.RunFilter) (store.RunList, error)
	Run(ctx context.Context, runID string) (engine.Run, error)
	PendingEnrichments(ctx context.Context) ([]string, error)
	Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error)
	DeleteRun(ctx context.Context, runID string) error
	AppendAudit(ctx context.Context, e store.AuditEntry) error
	RunNote(ctx context.Context, runID string) (store.RunNote, error)
	Baseline(ctx context.Context, templateID string) (store.Baseline, error)
	ListShares(ctx context.Context, runID string) ([]store.Share, error)
	ListTemplates(ctx context.Context) ([]store.Template, error)
	Template(ctx context.Context, id string) (store.Template, error)
	Matrix(ctx context.Context, matrixID string) (engine.MatrixRun, error)
	// ForgetExecutions takes the parts with executions from a run.
	ForgetExecutions(runID, by string)
}

// Retention implements store.Retention. It is safe for concurrent use.
type Retention struct {
	Deps RetentionDeps

	mu sync.Mutex // held while a run is let go of
	deletions
}

// EndedRuns implements store.Retention.
func (k *Retention) EndedRuns(ctx context.Context, keepTags []string) ([]store.EndedRun, time.Time, error) {
	now := time.Now()
	var list []store.EndedRun
	enriching, err := k.Deps.PendingEnrichments(ctx)
	if err != nil {
		return nil, now, err
	}
	for page := (store.Page{Limit: 500}); ; {
		runs, err := k.Deps.ListRuns(ctx, store.RunFilter{Page: page})
		if err != nil {
			return nil, now, err
		}
		for _, r := range runs.Runs {
			if !over(r.Run, enriching) {
				continue
			}
			e, err := k.endedRun(ctx, r.Run, keepTags)
			if err != nil {
				return nil, now, err
			}
			list = append(list, e)
		}
		if page.Cursor = runs.NextCursor; page.Cursor == "" {
			break
		}
	}
	slices.SortFunc(list, func(a, b store.EndedRun) int {
		return cmp.Or(a.EndedAt.Compare(b.EndedAt.Time), strings.Compare(a.RunID, b.RunID))
	})
	return list, now, nil
}

func over(r engine.Run, enriching []string) bool {
	return r.Status.Terminal() && r.Phase != engine.PhaseProcessing && !slices.Contains(enriching, r.RunID)
}

func endOf(r engine.Run) engine.Time {
	if r.EndTime.IsZero() {
		return r.UpdatedAt
	}
	return r.EndTime
}

func (k *Retention) endedRun(ctx context.Context, r engine.Run, keepTags []string) (e store.EndedRun, err error) {
	e = store.EndedRun{RunID: r.RunID, RunName: r.RunName, EndedAt: endOf(r)}
	parts, err := k.Deps.Artifacts(ctx, r.RunID)
	for _, p := range parts {
		if record.HoldsExecutions(p.Kind) {
			e.Parts, e.Bytes = e.Parts+1, e.Bytes+p.SizeBytes
		}
	}
	if err == nil {
		e.Pin, err = k.pin(ctx, r, keepTags)
	}
	return e, err
}

func (k *Retention) pin(ctx context.Context, r engine.Run, keepTags []string) (store.Pin, error) {
	if b, err := k.Deps.Baseline(ctx, r.TemplateID); err == nil && b.RunID == r.RunID {
		return store.PinBaseline, nil
	}
	if n, err := k.Deps.RunNote(ctx, r.RunID); err != nil || n.Text != "" {
		return store.PinNote, err
	}
	shares, err := k.Deps.ListShares(ctx, r.RunID)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(shares, func(s store.Share) bool { return s.ExpiresAt.After(time.Now()) }) {
		return store.PinShare, nil
	}
	if there, err := k.replayed(ctx, r.RunID); err != nil || there {
		return store.PinReplay, err
	}
	if r.MatrixID != "" {
		m, err := k.Deps.Matrix(ctx, r.MatrixID)
		if err != nil && !errors.Is(err, store.ErrNotFound) || err == nil && !m.Status.Terminal() {
			return store.PinMatrix, err
		}
	}
	for tag := range r.Scenario.Tags {
		if slices.Contains(keepTags, tag) || slices.Contains(keepTags, store.AnyTag) {
			return store.PinTag, nil
		}
	}
	return "", nil
}

func (k *Retention) replayed(ctx context.Context, runID string) (bool, error) {
	of := func(s engine.Scenario) bool { return s.Workload.Feed != nil && s.Workload.Feed.Run == runID }
	templates, err := k.Deps.ListTemplates(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range templates {
		t, err := k.Deps.Template(ctx, t.TemplateID)
		if errors.Is(err, store.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil || of(t.Config) {
			return err == nil, err
		}
	}
	going := []engine.Status{engine.StatusPrepared, engine.StatusRunning, engine.StatusStopping, engine.StatusCancelling}
	for page := (store.Page{Limit: 500}); ; {
		runs, err := k.Deps.ListRuns(ctx, store.RunFilter{Statuses: going, Page: page})
		if err != nil {
			return false, err
		}
		for _, r := range runs.Runs {
			run, err := k.Deps.Run(ctx, r.RunID)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil || of(run.Scenario) {
				return err == nil, err
			}
		}
		if page.Cursor = runs.NextCursor; page.Cursor == "" {
			return false, nil
		}
	}
}

// Expire implements store.Retention.
func (k *Retention) Expire(ctx context.Context, e store.Expiry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, err := k.Deps.Run(ctx, e.RunID)
	if err != nil {
		return err
	}
	enriching, err := k.Deps.PendingEnrichments(ctx)
	if err != nil {
		return err
	}
	pinned, err := k.pin(ctx, r, e.KeepTags)
	switch {
	case err != nil:
		return err
	case !over(r, enriching):
		return store.NotExpiredError("it is not over")
	case e.OlderThan > 0 && endOf(r).After(time.Now().Add(-e.OlderThan)):
		return store.NotExpiredError(store.TooRecentReason(e.OlderThan))
	case pinned != "":
		return store.NotExpiredError("it is kept, for its " + string(pinned))
	case !r.ExecutionsDeletedAt.IsZero() && !e.Whole:
		return store.NotExpiredError("its executions are gone already")
	}
	of, err := k.endedRun(ctx, r, e.KeepTags)
	if err != nil {
		return err
	}
	k.QueueRun(e.RunID, e.Whole, of.Bytes)
	if e.Whole {
		if err := k.Deps.DeleteRun(ctx, e.RunID); err != nil {
			return err
		}
	} else {
		k.Deps.ForgetExecutions(e.RunID, store.CleanText(e.By))
	}
	if e.Line.Action != "" {
		if err := k.Deps.AppendAudit(ctx, e.Line); err != nil {
			return err
		}
	}
	return nil
}
