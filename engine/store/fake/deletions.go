package fake

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// deletions are what is still to be removed, by place.
type deletions struct {
	waiting sync.Mutex // of what follows; nothing else is asked for with it
	places  map[string]location
	rows    []pendingDeletion
}

type location struct {
	label string
	seen  time.Time
}

type pendingDeletion struct {
	store.PendingDeletion
	since, tried time.Time
	problem      string
}

// QueueRun notes that the files of a run are to be removed from every place.
func (k *deletions) QueueRun(runID string, whole bool, bytes int64) {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	l := store.PendingDeletion{RunID: runID, Whole: whole, Bytes: bytes}
	if len(k.places) == 0 {
		k.queue(l)
	}
	for l.Location = range k.places {
		k.queue(l)
	}
}

func (k *deletions) queue(l store.PendingDeletion) {
	if i := k.backlogAt(l); i >= 0 {
		k.rows[i].Whole = k.rows[i].Whole || l.Whole
		k.rows[i].Bytes = max(k.rows[i].Bytes, l.Bytes)
		return
	}
	k.rows = append(k.rows, pendingDeletion{PendingDeletion: l, since: time.Now()})
}

func (k *deletions) backlogAt(l store.PendingDeletion) int {
	return slices.IndexFunc(k.rows, func(r pendingDeletion) bool {
		return r.RunID == l.RunID && r.Location == l.Location && r.Part == l.Part
	})
}

// RegisterLocation implements store.Retention.
func (k *deletions) RegisterLocation(ctx context.Context, p store.FileLocation) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	if k.places == nil {
		k.places = map[string]location{}
	}
	k.places[p.ID] = location{p.Label, time.Now()}
	return ctx.Err()
}

// QueueDeletion implements store.Retention.
func (k *deletions) QueueDeletion(ctx context.Context, l store.PendingDeletion) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	k.queue(l)
	return ctx.Err()
}

// PendingDeletions implements store.Retention.
func (k *deletions) PendingDeletions(ctx context.Context, place string, most int) ([]store.PendingDeletion, error) {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	rows := slices.DeleteFunc(
		slices.Clone(k.rows),
		func(r pendingDeletion) bool { return r.Location != "" && r.Location != place },
	)
	slices.SortStableFunc(rows, func(a, b pendingDeletion) int {
		return cmp.Or(a.tried.Compare(b.tried), a.since.Compare(b.since))
	})
	list := []store.PendingDeletion{}
	for _, r := range rows[:min(most, len(rows))] {
		list = append(list, r.PendingDeletion)
	}
	return list, ctx.Err()
}

// DeletionFailed implements store.Retention.
func (k *deletions) DeletionFailed(ctx context.Context, l store.PendingDeletion, problem string) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	if i := k.backlogAt(l); i >= 0 {
		k.rows[i].tried, k.rows[i].problem = time.Now(), store.CleanText(problem)
	}
	return ctx.Err()
}

// DeletionDone implements store.Retention.
func (k *deletions) DeletionDone(ctx context.Context, l store.PendingDeletion) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	if i := k.backlogAt(l); i >= 0 && (l.Whole || !k.rows[i].Whole) {
		k.rows = slices.Delete(k.rows, i, i+1)
	}
	return ctx.Err()
}

// DeletionBacklogs implements store.Retention.
func (k *deletions) DeletionBacklogs(ctx context.Context) ([]store.LeftPlace, error) {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	list := []store.LeftPlace{}
	runs := map[string]map[string]bool{}
	for _, r := range k.rows {
		i := slices.IndexFunc(list, func(l store.LeftPlace) bool { return l.Location == r.Location })
		if i < 0 {
			i = len(list)
			p := k.places[r.Location]
			list = append(list, store.LeftPlace{Location: r.Location, Label: p.label, Since: engine.At(r.since)})
			if runs[r.Location] = map[string]bool{}; !p.seen.IsZero() {
				list[i].SeenAt = engine.At(p.seen)
			}
		}
		runs[r.Location][r.RunID] = true
		list[i].Runs = len(runs[r.Location])
		if r.tried.After(list[i].TriedAt.Time) {
			list[i].TriedAt, list[i].Problem = engine.At(r.tried), r.problem
		}
	}
	slices.SortFunc(list, func(a, b store.LeftPlace) int { return strings.Compare(a.Location, b.Location) })
	return list, ctx.Err()
}
