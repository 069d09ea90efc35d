package results

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// QueryRows implements record.Results.
func (f *Results) QueryRows(ctx context.Context, runID string, fn func(*record.QueryRows) error) error {
	parts, err := f.executionParts(ctx, runID)
	if err != nil {
		return err
	}
	r := &queryReader{}
	for _, at := range parts {
		if err := r.part(ctx, at, fn); err != nil {
			return fmt.Errorf("reading query ids from %s: %w", at.name, err)
		}
	}
	return nil
}

// queryReader holds the column buffers.
type queryReader struct {
	record.Columns
	rows record.QueryRows
}

func (r *queryReader) part(ctx context.Context, at part, fn func(*record.QueryRows) error) error {
	p, err := at.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }() // only read
	for g, err := range r.Scan(ctx, p, record.ColWarmup, record.ColAppElapsedMs, record.ColScheduleLagMs,
		record.ColPoolWaitMs, record.ColKind) {
		if err != nil {
			return err
		}
		if err := r.group(p, g); err != nil {
			return err
		}
		if err := fn(&r.rows); err != nil {
			return err
		}
	}
	return nil
}

func (r *queryReader) group(p *record.Part, g int) (err error) {
	q := &r.rows
	if q.IDs, err = p.QueryIDs(g, q.IDs); err != nil {
		return err
	}
	known, err := parseKinds(r.Kind.Values)
	if err != nil {
		return err
	}
	q.Warmup, q.ServiceMs = r.Warmup, r.Elapsed
	q.Kinds = slices.Grow(q.Kinds[:0], r.N)
	for i, k := range r.Kind.Index {
		if k < 0 {
			return fmt.Errorf("row %d has no kind", i)
		}
		q.Kinds = append(q.Kinds, known[k])
		q.ServiceMs[i] -= r.Lag[i] + r.Wait[i]
	}
	return nil
}

// enrichmentParts lists the numbers of the stored enrichment parts, ascending.
func (f *Results) enrichmentParts(ctx context.Context, runID string) ([]int, error) {
	names, err := f.objects.Names(ctx, runID)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		if n, ok := record.EnrichmentNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// Enriched implements record.Results.
func (f *Results) Enriched(ctx context.Context, runID string, fn func(*engine.EnrichedExecution) error) (last int,
	err error) {
	numbers, err := f.enrichmentParts(ctx, runID)
	if err != nil {
		return 0, err
	}
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return last, err
		}
		name := record.EnrichmentName(n)
		file, err := f.objects.Open(ctx, runID, name)
		if err != nil {
			return last, fmt.Errorf("opening enrichment %s: %w", name, err)
		}
		err = record.ReadEnrichment(file, name, fn)
		_ = file.Close() // only read
		if err != nil {
			return last, err
		}
		last = n
	}
	return last, nil
}

// enrichedRows are the enrichment of a run, by query id.
type enrichedRows struct {
	rows     []enrichedRow
	statuses []string
}

// enrichedRow is one of them. Whole milliseconds are exact in a float32 up to 4.6 hours.
type enrichedRow struct {
	id                                              engine.QueryID
	server, compilation, execution, queued, blocked float32
	overhead                                        float64
	cluster, status                                 int32
}

// enrichedRows reads the enrichment of a run, nil when there is none.
func (f *Results) enrichedRows(ctx context.Context, runID string) (*enrichedRows, error) {
	r := &enrichedRows{}
	known := map[string]int32{}
	last, err := f.Enriched(ctx, runID, func(e *engine.EnrichedExecution) error {
		status, ok := known[e.Status]
		if !ok {
			status = int32(len(r.statuses))
			known[e.Status] = status
			r.statuses = append(r.statuses, csvText(e.Status))
		}
		r.rows = append(r.rows, enrichedRow{id: e.QueryID, server: float32(e.ServerMs), compilation: float32(e.CompilationMs),
			execution: float32(e.ExecutionMs),
			queued:    float32(e.QueuedMs()), blocked: float32(e.BlockedMs), overhead: e.OverheadMs, cluster: e.Cluster,
			status: status})
		return nil
	})
	if err != nil || last == 0 {
		return nil, err
	}
	slices.SortFunc(r.rows, func(a, b enrichedRow) int { return bytes.Compare(a.id[:], b.id[:]) })
	return r, nil
}

// appendCSV writes the columns of csvEnriched for a query id.
func (r *enrichedRows) appendCSV(b []byte, text string) []byte {
	id, err := engine.ParseQueryID(text)
	i, ok := slices.BinarySearchFunc(r.rows, id,
		func(e enrichedRow, id engine.QueryID) int { return bytes.Compare(e.id[:], id[:]) })
	if err != nil || text == "" || !ok {
		return append(b, ",,,,,,,,"...)
	}
	e := &r.rows[i]
	for _, v := range [...]float32{e.server, e.compilation, e.execution, e.queued, e.blocked} {
		b = strconv.AppendFloat(append(b, ','), float64(v), 'f', -1, 32)
	}
	b = strconv.AppendFloat(append(b, ','), e.overhead, 'f', -1, 64)
	b = strconv.AppendInt(append(b, ','), int64(e.cluster), 10)
	return append(append(b, ','), r.statuses[e.status]...)
}
