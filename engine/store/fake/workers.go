package fake

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// NoteRefreshWorker implements refresh.Refreshes.
func (s *RefreshQueue) NoteRefreshWorker(ctx context.Context, w refresh.Worker) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	w.Kinds, w.SeenAt = slices.Clone(w.Kinds), engine.At(refreshNow())
	s.workers[w.Name] = w
	return nil
}

// ForgetRefreshWorker implements refresh.Refreshes.
func (s *RefreshQueue) ForgetRefreshWorker(ctx context.Context, name string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	delete(s.workers, name)
	return nil
}

// present are the workers that have said something lately, by role, host and name.
func (s *RefreshQueue) present() (all []refresh.Worker) {
	for _, w := range s.workers {
		if refreshNow().Sub(w.SeenAt.Time) <= refresh.WorkerTTL {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b refresh.Worker) int {
		return strings.Compare(string(a.Role)+"\x00"+a.Host+"\x00"+a.Name, string(b.Role)+"\x00"+b.Host+"\x00"+b.Name)
	})
	return all
}

// RefreshLoad implements refresh.Refreshes.
func (s *RefreshQueue) RefreshLoad(ctx context.Context) (l refresh.Load, err error) {
	over, there := s.runs()
	if err := s.lock(ctx); err != nil {
		return l, err
	}
	defer s.mu.Unlock()
	at := refreshNow()
	for task, p := range s.pending {
		_, claimed := s.claims[task]
		if claimed || !p.Due.After(at) {
			l.Due++
		}
		if first := at.Sub(p.enqueued); first > at.Sub(p.Due.Time) {
			l.OverdueSeconds = max(l.OverdueSeconds, first.Seconds())
		} else {
			l.OverdueSeconds = max(l.OverdueSeconds, at.Sub(p.Due.Time).Seconds())
		}
		if !claimed {
			l.OldestSeconds = max(l.OldestSeconds, at.Sub(p.Due.Time).Seconds())
		}
	}
	var took []float64
	for _, r := range slices.Backward(s.history) {
		if r.Error == "" && len(took) < refresh.DurationSamples {
			took = append(took, r.EndedAt.Sub(r.StartedAt.Time).Seconds())
		}
	}
	l.P95Seconds = p95(took)
	for name, t := range s.tables {
		if t.Status == refresh.Failed {
			l.Failed++
		}
		if t.Kind != refresh.Ingest || t.Status == refresh.Suspended {
			continue
		}
		if _, since := s.staleRuns(name, over, there, at); !since.IsZero() {
			l.IngestLagSeconds = max(l.IngestLagSeconds, at.Sub(since).Seconds())
		}
	}
	return l, nil
}

// p95 is the 95th percentile of durations, by the nearest rank.
func p95(seconds []float64) float64 {
	if len(seconds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(seconds))
	return sorted[int(math.Ceil(0.95*float64(len(sorted))))-1]
}
