package results

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/outage"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// Outages reads every execution of the run, and the failures and what was delayed once more where there are
// outages. The load began at a time, was measured from another, and ended at a third; the zero time of an end
// leaves that to the executions. unknown operations may have been committed, in an outage or not.
func (f *Results) Outages(
	ctx context.Context,
	runID string,
	began, measured, ended time.Time,
) (found []engine.Outage, unknown int64, err error) {
	parts, err := f.executionParts(ctx, runID)
	if err != nil {
		return nil, 0, err
	}
	from := began.UnixNano()
	var courses outage.Courses
	err = eachPart(ctx, parts, func(r *outageReader) error {
		return r.read(ctx, func(op outage.Operation) {
			r.courses.Add(from, op)
			if op.Code == engine.CodeUnknownOutcome {
				r.unknown++
			}
		})
	}, func(r *outageReader) {
		courses.Merge(&r.courses)
		unknown += r.unknown
	})
	if err != nil {
		return nil, 0, err
	}
	end := int64(0)
	if !ended.IsZero() {
		end = ended.UnixNano()
	}
	found = outage.Find(&courses, measured.UnixNano(), end)
	if len(found) == 0 {
		return nil, unknown, nil
	}
	var mu sync.Mutex
	since, latest := outage.Span(found)
	err = eachPart(ctx, parts, func(r *outageReader) error {
		return r.read(ctx, func(op outage.Operation) {
			if op.Due <= latest && op.Ended >= since {
				r.seen = append(r.seen, op)
			}
			if len(r.seen) == cap(r.seen) {
				r.flush(&mu, found)
			}
		})
	}, func(r *outageReader) { r.flush(&mu, found) })
	return found, unknown, err
}

// outageReader reads parts, one at a time.
type outageReader struct {
	record.Columns
	part    *record.Part
	courses outage.Courses
	unknown int64
	seen    []outage.Operation
}

func (r *outageReader) flush(mu *sync.Mutex, into []engine.Outage) {
	mu.Lock()
	defer mu.Unlock()
	for _, op := range r.seen {
		outage.Count(into, op)
	}
	r.seen = r.seen[:0]
}

// eachPart reads the parts of a run, several at a time; done is called for each reader, one at a time.
func eachPart(ctx context.Context, parts []part, read func(*outageReader) error, done func(*outageReader)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next  atomic.Int64
		mu    sync.Mutex
		group sync.WaitGroup
	)
	one := func(r *outageReader, at part) (err error) {
		if r.part, err = at.open(ctx); err != nil {
			return err
		}
		defer func() { _ = r.part.Close() }() // only read
		return read(r)
	}
	for range max(1, min(runtime.GOMAXPROCS(0), len(parts), 4)) {
		group.Go(func() {
			r := &outageReader{seen: make([]outage.Operation, 0, 4096)}
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					break
				}
				if err := one(r, parts[i]); err != nil {
					cancel(fmt.Errorf("reading executions from %s: %w", parts[i].name, err))
				}
			}
			mu.Lock()
			defer mu.Unlock()
			done(r)
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// read calls fn with each operation of the part, statements of transactions left out.
func (r *outageReader) read(ctx context.Context, fn func(outage.Operation)) error {
	for g, err := range r.Scan(ctx, r.part, record.ColAppElapsedMs, record.ColDueAt, record.ColSuccess, record.ColKind,
		record.ColPosition) {
		if err != nil {
			return err
		}
		kinds, err := parseKinds(r.Kind.Values)
		if err != nil {
			return err
		}
		failures := false
		for i := range r.N {
			failures = failures || !r.Success[i]
		}
		if failures {
			if err := r.Read(r.part, g, record.ColErrorClass, record.ColErrorCode); err != nil {
				return err
			}
		}
		for i := range r.N {
			if r.Position[i] != 0 {
				continue
			}
			op := outage.Operation{Kind: kinds[r.Kind.Index[i]], Due: r.Due[i], OK: r.Success[i],
				Ended: r.Due[i] + record.Nanoseconds(r.Elapsed[i])}
			if !op.OK {
				op.Class, op.Code = engine.ErrorClass(r.Class.At(i)), r.Code.At(i)
			}
			fn(op)
		}
	}
	return nil
}
