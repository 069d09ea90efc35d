package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// result is a row of test_results; its documents are stored as JSON.
type result struct {
	engine.RunResult // without its documents
	figures, validity, thresholds, plan, environment,
	search, enrichment []byte
	aggregate engine.EnrichmentStatus // of the enrichment
}

// keep stores a document that is there.
func keep[T any](to *[]byte, what string, v *T) error {
	if v == nil {
		return nil
	}
	text, err := document(what, v)
	if err == nil {
		*to = text
	}
	return err
}

// view is the result as it is returned.
func (r *result) view() (engine.RunResult, error) {
	out := r.RunResult
	if g := r.WorkerGroupID; g != nil {
		group := *g
		out.WorkerGroupID = &group
	}
	if p := r.Passed; p != nil {
		passed := *p
		out.Passed = &passed
	}
	var err error
	get := func(e error) { err = cmp.Or(err, e) }
	load(&out.Figures, "figures", r.figures, get)
	load(&out.Validity, "verdict", r.validity, get)
	load(&out.Thresholds, "thresholds", r.thresholds, get)
	load(&out.Plan, "plan", r.plan, get)
	load(&out.Environment, "environment", r.environment, get)
	load(&out.FindMax, "answer of the search", r.search, get)
	load(&out.Enrichment, "enrichment", r.enrichment, get)
	return out, err
}

func load[T any](to *T, what string, text []byte, failed func(error)) {
	v, err := read[T](what, text)
	if err != nil {
		failed(err)
	}
	*to = v
}

// SaveResult implements writer.Store. Empty strings and zero times are left as they are too.
func (s *Store) SaveResult(ctx context.Context, rows ...engine.RunResult) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	var all []result
	for _, r := range rows {
		owner, err := s.written(r.RunID, rows[0].Epoch)
		if err != nil {
			return err
		}
		row, err := saved(owner, r)
		if err != nil {
			return err
		}
		all = append(all, row)
	}
	for i, r := range rows {
		s.runs[r.RunID].results[r.ResultID] = &all[i]
	}
	return nil
}

// saved is the row that saving r makes of what is there.
func saved(owner *run, r engine.RunResult) (result, error) {
	row := result{RunResult: engine.RunResult{ResultID: r.ResultID, RunID: r.RunID, WorkerID: r.WorkerID,
		Status: engine.StatusPrepared, CreatedAt: engine.At(now())}}
	if old := owner.results[r.ResultID]; old != nil {
		row = *old
	} else if r.ResultID == "" || r.WorkerID == "" {
		return row, unnamed("result")
	}
	row.UpdatedAt = engine.At(now())
	row.RunName = cmp.Or(r.RunName, row.RunName)
	row.Status = cmp.Or(r.Status, row.Status)
	row.FailureReason = cmp.Or(store.CleanText(r.FailureReason), row.FailureReason)
	row.EnrichmentStatus = cmp.Or(r.EnrichmentStatus, row.EnrichmentStatus)
	put(&row.StartTime, r.StartTime.Time)
	put(&row.EndTime, r.EndTime.Time)
	if g := r.WorkerGroupID; g != nil {
		group := *g
		row.WorkerGroupID = &group
	}
	if p := r.Passed; p != nil {
		passed := *p
		row.Passed = &passed
	}
	if e := r.Enrichment; e != nil {
		row.EnrichmentStatus, row.aggregate = e.Status, ""
		if e.Aggregate != nil {
			row.aggregate = e.Aggregate.Status
		}
	}
	thresholds := &r.Thresholds
	if r.Thresholds == nil {
		thresholds = nil
	}
	if err := cmp.Or(keep(&row.figures, "figures", r.Figures.OfWorker()), keep(&row.validity, "verdict", r.Validity),
		keep(&row.thresholds, "thresholds", thresholds), keep(&row.plan, "plan", r.Plan),
		keep(&row.environment, "environment", r.Environment), keep(&row.search, "answer of the search", r.FindMax),
		keep(&row.enrichment, "enrichment", r.Enrichment)); err != nil {
		return row, err
	}
	return row, nil
}

// Results implements query.Store.
func (s *Store) Results(ctx context.Context, runID string) ([]engine.RunResult, error) {
	return of(ctx, s, runID, func(r *run) ([]engine.RunResult, error) {
		var out []engine.RunResult
		for _, row := range sorted(r.results, inOrder) {
			shown, err := row.view()
			if err != nil {
				return nil, err
			}
			out = append(out, shown)
		}
		return out, nil
	})
}

// inOrder puts the parent's row first, then the run workers' by group.
func inOrder(a, b *result) int {
	group := func(r *result) int {
		switch {
		case r.ResultID == r.RunID:
			return -1
		case r.WorkerGroupID == nil:
			return 1 << 31
		}
		return *r.WorkerGroupID
	}
	return cmp.Or(cmp.Compare(group(a), group(b)), strings.Compare(a.WorkerID, b.WorkerID))
}

// Overviews implements query.Store.
func (s *Store) Overviews(ctx context.Context, runID string) ([]engine.RunResult, error) {
	all, err := s.Results(ctx, runID)
	for i := range all {
		if f := all[i].Figures; f != nil && all[i].ResultID != runID {
			f.Histogram, f.Slowest, f.ByStatement, f.ByKind = nil, nil, nil, nil
			f.SplitMs, f.ServiceMs, f.ScheduleLagMs = nil, nil, nil
		}
	}
	return all, err
}

// terminal lists the ended runs whose own result meets a condition.
func (s *Store) terminal(ctx context.Context, met func(*result) bool) ([]string, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var ids []string
	for id, r := range s.runs {
		if r.row.Status.Terminal() && met(r.results[id]) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func (r *result) enriching() bool { return r.EnrichmentStatus != "" && !r.EnrichmentStatus.Terminal() }

// PendingEnrichments implements enrichment.Store.
func (s *Store) PendingEnrichments(ctx context.Context) ([]string, error) {
	return s.terminal(ctx, (*result).enriching)
}

// PendingAggregates implements enrichment.Store.
func (s *Store) PendingAggregates(ctx context.Context) ([]string, error) {
	return s.terminal(ctx, func(r *result) bool { return r.aggregate == engine.EnrichmentPending && !r.enriching() })
}

// SaveArtifact implements writer.Store. The same name with another checksum is store.ErrConflict.
func (s *Store) SaveArtifact(ctx context.Context, epoch int64, a engine.Artifact) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	r, err := s.written(a.RunID, epoch)
	if err != nil {
		return err
	}
	if old, there := r.artifacts[a.Name]; there {
		if old.SHA256 != a.SHA256 {
			return fmt.Errorf("saving artifact: %w: artifact %s is stored with another checksum", store.ErrConflict, a.Name)
		}
		return nil
	}
	a.ArtifactID, a.CreatedAt = cmp.Or(a.ArtifactID, newID()), orNow(a.CreatedAt)
	r.artifacts[a.Name] = a
	return nil
}

func (r *run) parts() []engine.Artifact {
	return sorted(r.artifacts, func(a, b engine.Artifact) int { return strings.Compare(a.Name, b.Name) })
}

// Artifacts implements recovery.Store; they are ordered by name.
func (s *Store) Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error) {
	return of(ctx, s, runID, func(r *run) ([]engine.Artifact, error) { return r.parts(), nil })
}

// ArtifactPage implements query.Store.
func (s *Store) ArtifactPage(ctx context.Context, runID, after string, limit int) (page []engine.Artifact, total int64,
	err error) {
	page, err = of(ctx, s, runID, func(r *run) ([]engine.Artifact, error) {
		all := r.parts()
		total = int64(len(all))
		return first(limit, slices.DeleteFunc(all, func(a engine.Artifact) bool { return a.Name <= after })), nil
	})
	return page, total, err
}
