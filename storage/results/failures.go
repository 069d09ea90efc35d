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

// Failures tells what failed in the parts, in groups by error and statement; row groups without an error are not read.
func Failures(ctx context.Context, kept objects.Store, runID string,
	parts []engine.Artifact) (executions.Failures, error) {
	begin := time.Now()
	out := executions.Failures{Failures: []executions.Failure{}, Record: recordOf(parts)}
	all := failureGroups{}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(findReaders)
	var mu sync.Mutex
	for _, a := range parts {
		if a.Kind != record.KindExecutions {
			continue
		}
		work.Go(func() error {
			own, read, err := partFailures(ctx, kept, runID, a.Name)
			if err != nil {
				return fmt.Errorf("looking for errors in part %s: %w", a.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			out.Record.ReadCount += read
			all.merge(own)
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return out, err
	}
	out.Total = len(all)
	for _, g := range all {
		out.Failures = append(out.Failures, g.asFailure())
	}
	slices.SortFunc(out.Failures, func(a, b executions.Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ErrorClass, b.ErrorClass),
			cmp.Compare(a.ErrorCode, b.ErrorCode), cmp.Compare(a.StatementID, b.StatementID))
	})
	out.Failures = out.Failures[:min(len(out.Failures), executions.MaxFailures)]
	out.Record.ElapsedMs = float64(time.Since(begin).Microseconds()) / 1e3
	return out, nil
}

type failureKey struct {
	class, code, kind, statement string
	inside                       bool
}

type failureGroup struct {
	executions.Failure
	workers     map[string]bool
	messages    map[string]int64
	first, last int64
}

type failureGroups map[failureKey]*failureGroup

func (g failureGroups) of(key failureKey) *failureGroup {
	one := g[key]
	if one == nil {
		one = &failureGroup{Failure: executions.Failure{ErrorClass: key.class, ErrorCode: key.code, Kind: kindOf(key.kind),
			StatementID: key.statement, InTransaction: key.inside}, workers: map[string]bool{}, messages: map[string]int64{},
			first: math.MaxInt64, last: math.MinInt64}
		g[key] = one
	}
	return one
}

// otherMessages stands for those beyond executions.MaxMessages.
const otherMessages = "(other messages)"

func (g *failureGroup) message(text string, n int64) {
	if _, known := g.messages[text]; !known && len(g.messages) >= executions.MaxMessages {
		text = otherMessages
	}
	g.messages[text] += n
}

func (g failureGroups) merge(from failureGroups) {
	for key, o := range from {
		one := g.of(key)
		one.Count += o.Count
		one.WarmupCount += o.WarmupCount
		one.SlowestMs = max(one.SlowestMs, o.SlowestMs)
		one.first, one.last = min(one.first, o.first), max(one.last, o.last)
		for w := range o.workers {
			one.workers[w] = true
		}
		for text, n := range o.messages {
			one.message(text, n)
		}
	}
}

func (g *failureGroup) asFailure() executions.Failure {
	f := g.Failure
	f.FirstAt, f.LastAt = engine.At(time.Unix(0, g.first)), engine.At(time.Unix(0, g.last))
	f.WorkerCount, f.Messages = len(g.workers), len(g.messages)
	f.Examples = make([]executions.FailureExample, 0, len(g.messages))
	for text, n := range g.messages {
		f.Examples = append(f.Examples, executions.FailureExample{Message: text, Count: n})
	}
	slices.SortFunc(f.Examples, func(a, b executions.FailureExample) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Message, b.Message))
	})
	f.Examples = f.Examples[:min(len(f.Examples), executions.MaxExamples)]
	return f
}

func partFailures(ctx context.Context, kept objects.Store, runID, name string) (failureGroups, int64, error) {
	p, err := openPart(ctx, kept, runID, name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = p.Close() }() // only read
	groups, read := failureGroups{}, int64(0)
	var r rows
	for g := range p.RowGroups() {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if p.Bounds(g).NoErrors {
			continue
		}
		if err := r.Read(p, g, failureColumns...); err != nil {
			return nil, 0, err
		}
		read += int64(r.N)
		for i := range r.N {
			if r.Class.Index[i] < 0 {
				continue
			}
			one := groups.of(failureKey{r.Class.At(i), r.Code.At(i), r.Kind.At(i), r.Statement.At(i), r.Position[i] != 0})
			one.Count++
			if r.Warmup[i] {
				one.WarmupCount++
			}
			ended := r.Due[i] + record.Nanoseconds(r.Elapsed[i])
			one.first, one.last = min(one.first, ended), max(one.last, ended)
			one.SlowestMs = max(one.SlowestMs, r.Elapsed[i])
			one.workers[r.Worker.At(i)] = true
			one.message(r.Message.At(i), 1)
		}
	}
	return groups, read, nil
}
