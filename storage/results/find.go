// This part looks for single executions in the parts of a run.

package results

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// findReaders read beside each other: two where the processors are the limit, and enough to hide the way to S3.
const findReaders = 4

// Find answers a query over the parts. Parts and row groups whose bounds hold nothing that is wanted are not
// read, of the others only the columns that tell, in the order of what is sorted by, and no more of them than the page
// takes. Memory is one row group for each of four readers.
func Find(ctx context.Context, kept objects.Store, runID string, parts []engine.Artifact,
	q executions.Query) (executions.ExecutionPage, error) {
	begin := time.Now()
	page := executions.ExecutionPage{Executions: []executions.Execution{}}
	if err := q.Validate(); err != nil {
		return page, err
	}
	s := &executionSearch{q: &q, wanted: newConditions(&q),
		open: partOpener{results: kept, runID: runID, many: len(parts) > maxOpenParts, parts: map[string]*openedPart{}}}
	defer s.open.close()
	page.Record = recordOf(parts)
	if err := s.list(ctx, parts); err != nil {
		return page, fmt.Errorf("looking for executions: %w", err)
	}
	if err := s.scan(ctx); err != nil {
		return page, fmt.Errorf("looking for executions: %w", err)
	}
	found := s.best
	if len(found) > q.Limit {
		found = found[:q.Limit]
		page.NextCursor = q.Cursor(found[len(found)-1])
	}
	var err error
	if page.Executions, err = s.readExecutions(ctx, found); err != nil {
		return page, fmt.Errorf("reading executions: %w", err)
	}
	page.Record.ReadCount, page.Record.ElapsedMs = s.read, float64(time.Since(begin).Microseconds())/1e3
	return page, nil
}

func recordOf(parts []engine.Artifact) (r executions.RecordRead) {
	for _, a := range parts {
		if a.Kind == record.KindExecutions {
			r.PartsCount++
			r.ExecutionsCount += a.RowCount
		}
	}
	return r
}

// partOpener opens each part once, or, where there are many, each time.
type partOpener struct {
	results objects.Store
	runID   string
	many    bool
	mu      sync.Mutex
	parts   map[string]*openedPart
}

type openedPart struct {
	once sync.Once
	p    *record.Part
	err  error
}

// maxOpenParts parts stay open between their footers and their rows; of more each is opened again when it is its turn.
const maxOpenParts = 256

// with calls fn with an open part.
func (o *partOpener) with(ctx context.Context, name string, fn func(*record.Part) error) error {
	if o.many {
		p, err := openPart(ctx, o.results, o.runID, name)
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }() // only read
		return fn(p)
	}
	o.mu.Lock()
	one := o.parts[name]
	if one == nil {
		one = &openedPart{}
		o.parts[name] = one
	}
	o.mu.Unlock()
	one.once.Do(func() { one.p, one.err = openPart(ctx, o.results, o.runID, name) })
	if one.err != nil {
		return one.err
	}
	return fn(one.p)
}

func (o *partOpener) close() {
	for _, one := range o.parts {
		if one.p != nil {
			_ = one.p.Close() // only read
		}
	}
}

// rowGroup is one that may hold what is wanted; best is the least value by which a row of it can be sorted.
type rowGroup struct {
	part  string
	group int
	best  int64
}

// executionSearch is a query under way. Values that it sorts by are negated where the highest come first, so that the
// least is the first everywhere.
type executionSearch struct {
	q      *executions.Query
	open   partOpener
	wanted conditions
	groups []rowGroup

	mu   sync.Mutex
	best []executions.Position // the first ones so far, in order, one more than are shown
	read int64
}

func (s *executionSearch) value(ended int64, ms float64) int64 {
	v := ended
	if s.q.Sort == executions.ByLatency {
		v = record.Nanoseconds(ms)
	}
	if !s.q.Ascending {
		return -v
	}
	return v
}

func order(a, b executions.Position) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Row, b.Row))
}

// list finds the row groups that may hold what is wanted, the most promising first.
func (s *executionSearch) list(ctx context.Context, parts []engine.Artifact) error {
	// Parts stay open for the search, and a file of S3 is read under the context that it was opened with: the group's own
	// ends with the group.
	work, together := errgroup.WithContext(ctx)
	work.SetLimit(findReaders)
	var mu sync.Mutex
	for _, a := range parts {
		if a.Kind != record.KindExecutions || s.wanted.excludes(a) {
			continue
		}
		work.Go(func() error {
			if err := together.Err(); err != nil {
				return err
			}
			var groups []rowGroup
			err := s.open.with(ctx, a.Name, func(p *record.Part) error {
				for g := range p.RowGroups() {
					b := p.Bounds(g)
					if best, worst := s.valuesOf(b); s.wanted.groupMayMatch(b) && (s.q.After == nil || worst >= s.q.After.Value) {
						groups = append(groups, rowGroup{a.Name, g, best})
					}
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			s.groups = append(s.groups, groups...)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	slices.SortFunc(s.groups, func(a, b rowGroup) int {
		return cmp.Or(cmp.Compare(a.best, b.best), cmp.Compare(a.part, b.part), cmp.Compare(a.group, b.group))
	})
	return nil
}

// valuesOf is between which values the rows of the group are.
func (s *executionSearch) valuesOf(b record.Bounds) (best, worst int64) {
	best, worst = b.EndFrom(), b.EndTo()
	if s.q.Sort == executions.ByLatency {
		best, worst = record.Nanoseconds(b.ElapsedFrom), int64(math.MaxInt64)
		if !math.IsInf(b.ElapsedTo, 1) {
			worst = record.Nanoseconds(b.ElapsedTo)
		}
	}
	if !s.q.Ascending {
		return -worst, -max(best, -math.MaxInt64)
	}
	return best, worst
}

// scan reads row groups until none can hold a better row.
func (s *executionSearch) scan(ctx context.Context) error {
	next, turns := 0, make(chan rowGroup)
	work, together := errgroup.WithContext(ctx)
	work.Go(func() error {
		defer close(turns)
		for ; next < len(s.groups) && !s.isBeyondBest(s.groups[next].best); next++ {
			select {
			case turns <- s.groups[next]:
			case <-together.Done():
				return together.Err()
			}
		}
		return nil
	})
	for range findReaders {
		work.Go(func() error {
			var r rowSelector
			for at := range turns {
				if s.isBeyondBest(at.best) {
					continue
				}
				if err := together.Err(); err != nil {
					return err
				}
				if err := s.searchGroup(ctx, at, &r); err != nil {
					return fmt.Errorf("reading part %s: %w", at.part, err)
				}
			}
			return nil
		})
	}
	return work.Wait()
}

// isBeyondBest reports whether no row with this value, or a worse one, is wanted any more.
func (s *executionSearch) isBeyondBest(best int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.best) > s.q.Limit && best > s.best[len(s.best)-1].Value
}

// searchGroup takes in the rows of a row group.
func (s *executionSearch) searchGroup(ctx context.Context, at rowGroup, r *rowSelector) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.open.with(ctx, at.part, func(p *record.Part) error { return r.selectRows(p, at.group, &s.wanted) })
	if err != nil {
		return err
	}
	n := s.q.Limit + 1
	worst := int64(math.MaxInt64)
	s.mu.Lock()
	s.read += int64(r.n)
	if len(s.best) == n {
		worst = s.best[n-1].Value
	}
	s.mu.Unlock()
	own := r.places[:0]
	for _, row := range r.rows {
		ended := int64(0)
		if s.wanted.needTime {
			ended = r.due[row] + record.Nanoseconds(r.elapsed[row])
		}
		v := s.value(ended, r.elapsed[row])
		if v > worst {
			continue
		}
		here := executions.Position{Value: v, Part: at.part, Group: at.group, Row: int(row)}
		if s.q.After != nil && order(here, *s.q.After) <= 0 {
			continue
		}
		if own = append(own, here); len(own) >= 4*n {
			own = first(own, n)
			worst = own[n-1].Value
		}
	}
	r.places = own
	s.mu.Lock()
	defer s.mu.Unlock()
	s.best = first(append(s.best, own...), n)
	return nil
}

// first sorts places, and keeps the first n.
func first(of []executions.Position, n int) []executions.Position {
	slices.SortFunc(of, order)
	return of[:min(len(of), n)]
}

// readExecutions reads all columns of the rows at these places.
func (s *executionSearch) readExecutions(
	ctx context.Context,
	found []executions.Position,
) ([]executions.Execution, error) {
	out := make([]executions.Execution, len(found))
	type place struct {
		part  string
		group int
	}
	where := map[place][]int{}
	for i, at := range found {
		key := place{at.Part, at.Group}
		where[key] = append(where[key], i)
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(findReaders)
	var memory sync.Pool
	for key, of := range where {
		work.Go(func() error {
			r, _ := memory.Get().(*rows)
			if r == nil {
				r = &rows{}
			}
			defer memory.Put(r)
			return s.open.with(ctx, key.part, func(p *record.Part) error {
				if err := r.Read(p, key.group, shownColumns...); err != nil {
					return err
				}
				for _, i := range of {
					out[i] = r.execution(found[i].Row)
				}
				return nil
			})
		})
	}
	return out, work.Wait()
}

func (g *rows) execution(i int) executions.Execution {
	return executions.Execution{WorkerID: g.Worker.At(i), ConnectionID: uint32(g.Connection[i]), Seq: uint32(g.Seq[i]),
		Position: g.Position[i], Step: g.Step[i], Phase: engine.Phase(g.Phase.At(i)), Kind: kindOf(g.Kind.At(i)),
		StatementID: g.Statement.At(i), DueAt: engine.At(time.Unix(0, g.Due[i])),
		StartedAt: engine.At(time.Unix(0, g.Started[i])),
		EndedAt:   engine.At(time.Unix(0, g.Due[i]+record.Nanoseconds(g.Elapsed[i]))), AppElapsedMs: g.Elapsed[i],
		LagMs: g.Lag[i], WaitMs: g.Wait[i], DecodeMs: float64(g.Decode[i]) / 1e6, Rows: g.Rows[i], Success: g.Success[i],
		RolledBack: g.RolledBack[i], ErrorClass: g.Class.At(i), ErrorCode: g.Code.At(i), ErrorMessage: g.Message.At(i),
		Retries: g.Retries[i], QueryID: g.QueryID.At(i)}
}
