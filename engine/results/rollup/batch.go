package rollup

import (
	"time"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// Batch are rows of a record by column; all columns have as many rows as DueNs.
type Batch struct {
	// DueNs is when an execution was due, since the epoch of Unix.
	DueNs, ElapsedNs []int64
	Rows             []int32
	// Position is 0 for an execution; other rows are statements inside a transaction.
	Position                             []int32
	Warmup, Success                      []bool
	Kind, Statement, Worker, Class, Code record.Texts
}

// momentCells are the cells of one second that the rows of a batch belong to, by index, so that nothing is looked up by
// name for each row.
type momentCells struct {
	run            *Cell
	kinds, workers []*Cell
	statements     []*Cell // by the number of the series
	errors         map[[3]int32]int64
}

// batchAdder is the state of adding a batch.
type batchAdder struct {
	s       *Seconds
	b       *Batch
	moments map[Moment]*momentCells
	// numbers are those of the statements' series plus 1, by statement, kind and whether inside a transaction; they are
	// given as they come, because few of the combinations do.
	numbers []int32
	series  []StatementKey
}

// Add counts the rows of a batch in the seconds in which they ended; what ended before the start is in the first.
func (s *Seconds) Add(b *Batch) {
	a := &batchAdder{s: s, b: b, moments: map[Moment]*momentCells{},
		numbers: make([]int32, 2*(len(b.Kind.Values)+1)*(len(b.Statement.Values)+1))}
	var last Moment
	var m *momentCells
	start := s.start.UnixNano()
	for i, due := range b.DueNs {
		elapsed := b.ElapsedNs[i]
		at := Moment{Second: int32(min(max(due+elapsed-start, 0)/int64(time.Second), 1<<31-1)), Warmup: b.Warmup[i]}
		if m == nil || at != last {
			m, last = a.moment(at), at
		}
		inside, success, rows := b.Position[i] != 0, b.Success[i], int64(b.Rows[i])
		bucket := histogram.BucketIndex(elapsed)
		rated := s.rates(due+elapsed, b.Warmup[i])
		a.statement(m, at, i, inside).add(bucket, elapsed, rows, success, rated)
		if inside {
			continue
		}
		s.Executions++
		if m.run == nil {
			m.run = cellFor(s.Run, at)
		}
		m.run.add(bucket, elapsed, rows, success, rated)
		kind := &m.kinds[b.Kind.Index[i]+1]
		if *kind == nil {
			*kind = cellFor(s.Kinds, KindKey{at, b.Kind.At(i)})
		}
		(*kind).add(bucket, elapsed, rows, success, rated)
		worker := &m.workers[b.Worker.Index[i]+1]
		if *worker == nil {
			*worker = cellFor(s.Workers, WorkerKey{at, b.Worker.At(i)})
		}
		(*worker).add(bucket, elapsed, rows, success, rated)
		if !success {
			m.fail(b, i)
		}
	}
	for at, m := range a.moments {
		for key, n := range m.errors {
			s.Errors[ErrorKey{at, b.Class.Value(key[0]), b.Code.Value(key[1]), b.Kind.Value(key[2])}] += n
		}
	}
}

func (m *momentCells) fail(b *Batch, i int) {
	if m.errors == nil {
		m.errors = map[[3]int32]int64{}
	}
	m.errors[[3]int32{b.Class.Index[i], b.Code.Index[i], b.Kind.Index[i]}]++
}

func (a *batchAdder) moment(at Moment) *momentCells {
	m := a.moments[at]
	if m == nil {
		m = &momentCells{kinds: make([]*Cell, len(a.b.Kind.Values)+1), workers: make([]*Cell, len(a.b.Worker.Values)+1)}
		a.moments[at] = m
	}
	return m
}

// statement is the cell of the statement of a row.
func (a *batchAdder) statement(m *momentCells, at Moment, i int, inside bool) *Cell {
	b := a.b
	place := 2 * (int(b.Statement.Index[i]+1)*(len(b.Kind.Values)+1) + int(b.Kind.Index[i]+1))
	if inside {
		place++
	}
	number := a.numbers[place]
	if number == 0 {
		a.series = append(a.series, StatementKey{Statement: b.Statement.At(i), Kind: b.Kind.At(i), InTransaction: inside})
		number = int32(len(a.series))
		a.numbers[place] = number
	}
	for len(m.statements) < int(number) {
		m.statements = append(m.statements, nil)
	}
	c := m.statements[number-1]
	if c == nil {
		key := a.series[number-1]
		key.Moment = at
		c = cellFor(a.s.Statements, key)
		m.statements[number-1] = c
	}
	return c
}

func (c *Cell) add(bucket int, elapsed, rows int64, success, rated bool) {
	c.Operations++
	c.Rows += rows
	if !success {
		c.Errors++
	}
	if rated {
		c.Rated++
	}
	c.Latency.RecordBucket(bucket, elapsed)
}

func (c *Cell) merge(o *Cell) {
	c.Operations += o.Operations
	c.Errors += o.Errors
	c.Rows += o.Rows
	c.Rated += o.Rated
	c.Latency.Merge(&o.Latency)
}

// Merge adds the seconds of another part of the same run, which are not to be used any more.
func (s *Seconds) Merge(o *Seconds) {
	mergeCells(s.Run, o.Run)
	mergeCells(s.Kinds, o.Kinds)
	mergeCells(s.Statements, o.Statements)
	mergeCells(s.Workers, o.Workers)
	for key, n := range o.Errors {
		s.Errors[key] += n
	}
	for key, l := range o.Loads {
		s.load(key, l)
	}
	s.Executions += o.Executions
}

func mergeCells[K comparable](into, from map[K]*Cell) {
	for key, c := range from {
		if known := into[key]; known != nil {
			known.merge(c)
		} else {
			into[key] = c
		}
	}
}
