package results

import (
	"math"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// conditions are a query as columns know it.
type conditions struct {
	texts       []textCondition
	success     *bool
	rolledBack  bool
	warmup      *bool
	inside      bool
	workers     []string
	from, until int64
	over, upto  float64
	// needTime says that ends are compared or sorted by; failed that only errors are wanted.
	needTime, failed bool
}

// textCondition are the values of a text column that are wanted.
type textCondition struct {
	col    record.Column
	values []string
}

func newConditions(q *executions.Query) conditions {
	c := conditions{inside: q.InTransactions, workers: q.Workers, from: math.MinInt64, until: math.MaxInt64,
		over: -1, upto: math.Inf(1), rolledBack: q.Outcome == executions.RolledBack}
	if !q.From.IsZero() {
		c.from = q.From.UnixNano()
	}
	if !q.Until.IsZero() {
		c.until = q.Until.UnixNano()
	}
	if q.OverMs > 0 {
		c.over = q.OverMs
	}
	if q.UptoMs > 0 {
		c.upto = q.UptoMs
	}
	kinds := make([]string, 0, len(q.Kinds))
	for _, k := range q.Kinds {
		kinds = append(kinds, k.String())
	}
	for _, t := range []textCondition{{record.ColErrorClass, q.Classes}, {record.ColErrorCode, q.Codes},
		{record.ColErrorMessage, q.Messages}, {record.ColKind, kinds}, {record.ColStatementID, q.Statements}} {
		if len(t.values) > 0 {
			c.texts = append(c.texts, t)
		}
	}
	c.failed = len(q.Classes)+len(q.Codes)+len(q.Messages) > 0
	if q.Outcome == executions.Failed || q.Outcome == executions.Succeeded {
		ok := q.Outcome == executions.Succeeded
		c.success = &ok
	}
	if q.Phase != engine.PhaseNone {
		w := q.Phase == engine.PhaseWarmup
		c.warmup = &w
	}
	c.needTime = q.Sort == executions.ByTime || !q.From.IsZero() || !q.Until.IsZero()
	return c
}

// excludes reports whether nothing in the part can be wanted, by what is known of it without opening it.
func (c *conditions) excludes(a engine.Artifact) bool {
	switch {
	case len(c.workers) > 0 && !slices.Contains(c.workers, a.WorkerID):
		return true
	case !a.MinTime.IsZero() && a.MinTime.UnixNano() >= c.until:
		return true // nothing ends before it is due
	}
	// The index keeps milliseconds.
	return !a.MaxTime.IsZero() && a.MaxTime.UnixNano()+1e6 < c.from
}

// groupMayMatch reports whether a row group can hold what is wanted.
func (c *conditions) groupMayMatch(b record.Bounds) bool {
	return b.EndFrom() < c.until && b.EndTo() >= c.from && b.ElapsedTo > c.over && b.ElapsedFrom <= c.upto &&
		(!c.failed || !b.NoErrors)
}

// rowSelector reads the columns of one row group after the other, and keeps their memory.
type rowSelector struct {
	n       int
	rows    []int32 // those that are wanted
	due     []int64
	elapsed []float64
	indexes []int32
	bools   []bool
	numbers []int32
	places  []executions.Position
}

// selectRows finds the rows of a row group that are wanted. A column is read while there are rows left.
func (r *rowSelector) selectRows(p *record.Part, group int, c *conditions) (err error) {
	r.n = p.Rows(group)
	r.rows = slices.Grow(r.rows[:0], r.n)
	for i := range r.n {
		r.rows = append(r.rows, int32(i))
	}
	for _, t := range c.texts {
		if err := r.text(p, group, t); err != nil || len(r.rows) == 0 {
			return err
		}
	}
	if r.elapsed, err = p.Doubles(group, record.ColAppElapsedMs, r.elapsed); err != nil {
		return err
	}
	if c.over >= 0 || !math.IsInf(c.upto, 1) {
		if r.filterRows(func(i int32) bool { return r.elapsed[i] > c.over && r.elapsed[i] <= c.upto }); len(r.rows) == 0 {
			return nil
		}
	}
	if c.needTime {
		if r.due, err = p.Int64s(group, record.ColDueAt, r.due); err != nil {
			return err
		}
		r.filterRows(func(i int32) bool {
			ended := r.due[i] + record.Nanoseconds(r.elapsed[i])
			return ended >= c.from && ended < c.until
		})
	}
	for _, b := range []struct {
		col  record.Column
		want *bool
	}{{record.ColSuccess, c.success}, {record.ColWarmup, c.warmup}, {record.ColRolledBack, trueOrNil(c.rolledBack)}} {
		if b.want == nil || len(r.rows) == 0 {
			continue
		}
		if r.bools, err = p.Bools(group, b.col, r.bools); err != nil {
			return err
		}
		r.filterRows(func(i int32) bool { return r.bools[i] == *b.want })
	}
	if c.inside || len(r.rows) == 0 {
		return nil
	}
	if r.numbers, err = p.Int32s(group, record.ColPosition, r.numbers); err != nil {
		return err
	}
	r.filterRows(func(i int32) bool { return r.numbers[i] == 0 })
	return nil
}

// trueOrNil is nil for false: then it does not matter.
func trueOrNil(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}

func (r *rowSelector) filterRows(wanted func(row int32) bool) {
	n := 0
	for _, i := range r.rows {
		if wanted(i) {
			r.rows[n] = i
			n++
		}
	}
	r.rows = r.rows[:n]
}

func (r *rowSelector) text(p *record.Part, group int, t textCondition) error {
	indexes, values, err := p.Strings(group, t.col, r.indexes)
	if err != nil {
		return err
	}
	r.indexes = indexes
	wanted, any := make([]bool, len(values)), false
	for i, v := range values {
		wanted[i] = slices.Contains(t.values, v)
		any = any || wanted[i]
	}
	if !any {
		r.rows = r.rows[:0]
		return nil
	}
	r.filterRows(func(i int32) bool { return indexes[i] >= 0 && wanted[indexes[i]] })
	return nil
}
