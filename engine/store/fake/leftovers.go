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

// leftovers are what is still to be removed, by place.
type leftovers struct {
	waiting sync.Mutex // of what follows; nothing else is asked for with it
	places  map[string]memretentionPlace
	rows    []leftover
}

type memretentionPlace struct {
	label string
	seen  time.Time
}

type leftover struct {
	store.Leftover
	since, tried time.Time
	problem      string
}

// Leave notes that the files of a run are to be removed from every place.
func (k *leftovers) Leave(runID string, whole bool, bytes int64) {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	l := store.Leftover{RunID: runID, Whole: whole, Bytes: bytes}
	if len(k.places) == 0 {
		k.leave(l)
	}
	for l.Place = range k.places {
		k.leave(l)
	}
}

func (k *leftovers) leave(l store.Leftover) {
	if i := k.at(l); i >= 0 {
		k.rows[i].Whole = k.rows[i].Whole || l.Whole
		k.rows[i].Bytes = max(k.rows[i].Bytes, l.Bytes)
		return
	}
	k.rows = append(k.rows, leftover{Leftover: l, since: time.Now()})
}

func (k *leftovers) at(l store.Leftover) int {
	return slices.IndexFunc(k.rows, func(r leftover) bool {
		return r.RunID == l.RunID && r.Place == l.Place && r.Part == l.Part
	})
}

// Reach implements store.Retention.
func (k *leftovers) Reach(ctx context.Context, p store.Place) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	if k.places == nil {
		k.places = map[string]memretentionPlace{}
	}
	k.places[p.Place] = memretentionPlace{p.Label, time.Now()}
	return ctx.Err()
}

// LeaveOver implements store.Retention.
func (k *leftovers) LeaveOver(ctx context.Context, l store.Leftover) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	k.leave(l)
	return ctx.Err()
}

// Leftovers implements store.Retention.
func (k *leftovers) Leftovers(ctx context.Context, place string, most int) ([]store.Leftover, error) {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	rows := slices.DeleteFunc(slices.Clone(k.rows), func(r leftover) bool { return r.Place != "" && r.Place != place })
	slices.SortStableFunc(rows, func(a, b leftover) int {
		return cmp.Or(a.tried.Compare(b.tried), a.since.Compare(b.since))
	})
	list := []store.Leftover{}
	for _, r := range rows[:min(most, len(rows))] {
		list = append(list, r.Leftover)
	}
	return list, ctx.Err()
}

// Tried implements store.Retention.
func (k *leftovers) Tried(ctx context.Context, l store.Leftover, problem string) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	if i := k.at(l); i >= 0 {
		k.rows[i].tried, k.rows[i].problem = time.Now(), store.CleanText(problem)
	}
	return ctx.Err()
}

// Cleared implements store.Retention.
func (k *leftovers) Cleared(ctx context.Context, l store.Leftover) error {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	if i := k.at(l); i >= 0 && (l.Whole || !k.rows[i].Whole) {
		k.rows = slices.Delete(k.rows, i, i+1)
	}
	return ctx.Err()
}

// LeftPlaces implements store.Retention.
func (k *leftovers) LeftPlaces(ctx context.Context) ([]store.LeftPlace, error) {
	k.waiting.Lock()
	defer k.waiting.Unlock()
	list := []store.LeftPlace{}
	runs := map[string]map[string]bool{}
	for _, r := range k.rows {
		i := slices.IndexFunc(list, func(l store.LeftPlace) bool { return l.Place == r.Place })
		if i < 0 {
			i = len(list)
			p := k.places[r.Place]
			list = append(list, store.LeftPlace{Place: r.Place, Label: p.label, Since: engine.At(r.since)})
			if runs[r.Place] = map[string]bool{}; !p.seen.IsZero() {
				list[i].SeenAt = engine.At(p.seen)
			}
		}
		runs[r.Place][r.RunID] = true
		list[i].Runs = len(runs[r.Place])
		if r.tried.After(list[i].TriedAt.Time) {
			list[i].TriedAt, list[i].Problem = engine.At(r.tried), r.problem
		}
	}
	slices.SortFunc(list, func(a, b store.LeftPlace) int { return strings.Compare(a.Place, b.Place) })
	return list, ctx.Err()
}
