// Package rollup adds the executions of a run up to seconds: of the run, its kinds, statements, errors and
// run workers. It is pure.
package rollup

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/histogram"
)

// Cell is what ended in one second.
type Cell struct {
	Operations, Errors, Rows int64
	Latency                  histogram.Narrow
}

func (c *Cell) add(e *Execution) {
	c.Operations++
	c.Rows += int64(e.Rows)
	if !e.Success {
		c.Errors++
	}
	c.Latency.Record(e.ElapsedNs)
}

// Moment is a second of a run, counted from its start.
type Moment struct {
	Second int32
	Warmup bool
}

// OfKind, OfStatement, OfWorker and OfError are the keys of cells.
type (
	// OfKind is a kind in a second.
	OfKind struct {
		Moment
		Kind string
	}
	// OfStatement is a statement in a second.
	OfStatement struct {
		Moment
		Statement, Kind string
		InTransaction   bool
	}
	// OfWorker is a run worker in a second.
	OfWorker struct {
		Moment
		Worker string
	}
	// OfError is one kind of error in a second.
	OfError struct {
		Moment
		Class, Code, Kind string
	}
)

// Execution is one row of a record.
type Execution struct {
	// DueNs is when it was due, since the epoch of Unix.
	DueNs, ElapsedNs        int64
	Rows                    int32
	Warmup, Success         bool
	Inside                  bool // a statement inside a transaction
	Kind, Statement, Worker string
	Class, Code             string
}

// Seconds are the seconds of one run.
type Seconds struct {
	start      time.Time
	Run        map[Moment]*Cell
	Kinds      map[OfKind]*Cell
	Statements map[OfStatement]*Cell
	Workers    map[OfWorker]*Cell
	Errors     map[OfError]int64
	Executions int64
}

// New returns no seconds of a run that started at the time.
func New(start time.Time) *Seconds {
	return &Seconds{start: start, Run: map[Moment]*Cell{}, Kinds: map[OfKind]*Cell{}, Statements: map[OfStatement]*Cell{},
		Workers: map[OfWorker]*Cell{}, Errors: map[OfError]int64{}}
}

// At is when a second began.
func (s *Seconds) At(second int32) time.Time { return s.start.Add(time.Duration(second) * time.Second) }

func cell[K comparable](m map[K]*Cell, key K) *Cell {
	c := m[key]
	if c == nil {
		c = &Cell{}
		m[key] = c
	}
	return c
}

// Add counts an execution in the second in which it ended; what ended before the start is in the first.
func (s *Seconds) Add(e *Execution) {
	since := max(e.DueNs+e.ElapsedNs-s.start.UnixNano(), 0)
	at := Moment{Second: int32(min(since/int64(time.Second), 1<<31-1)), Warmup: e.Warmup}
	cell(s.Statements, OfStatement{at, e.Statement, e.Kind, e.Inside}).add(e)
	if e.Inside {
		return
	}
	s.Executions++
	cell(s.Run, at).add(e)
	cell(s.Kinds, OfKind{at, e.Kind}).add(e)
	cell(s.Workers, OfWorker{at, e.Worker}).add(e)
	if !e.Success {
		s.Errors[OfError{at, e.Class, e.Code, e.Kind}]++
	}
}

// Run is what is taken in of a run.
type Run struct {
	Run     engine.Run
	Summary *engine.Summary
	// Adapter is the name of the plan's, or the template's.
	Adapter string
	// Parts is how many parts the record has, Problems what could not be read of them, in sentences.
	Parts    int
	Problems []string
	// Fingerprint tells whether anything has changed since a run was taken in.
	Fingerprint string
	Seconds     *Seconds
	Warehouse   []engine.WarehousePoint
}
