// Package rollup adds the executions of a run up to seconds: of the run, its kinds, statements, errors and
// run workers. It is pure.
package rollup

import (
	"math"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// Cell is what ended in one second.
type Cell struct {
	Operations, Errors, Rows int64
	// Rated is how many of the operations count in the rates of the measurement: those that ended in it, also where they
	// were due in the warm-up. It means nothing where Seconds do not know the measurement.
	Rated   int64
	Latency histogram.Compact
}

// Moment is a second of a run, counted from its start.
type Moment struct {
	Second int32
	Warmup bool
}

// OfKind, StatementKey, WorkerKey and ErrorKey are the keys of cells.
type (
	// KindKey is a kind in a second.
	KindKey struct {
		Moment
		Kind string
	}
	// StatementKey is a statement in a second.
	StatementKey struct {
		Moment
		Statement, Kind string
		InTransaction   bool
	}
	// WorkerKey is a run worker in a second.
	WorkerKey struct {
		Moment
		Worker string
	}
	// ErrorKey is one kind of error in a second.
	ErrorKey struct {
		Moment
		Class, Code, Kind string
	}
)

// Seconds are the seconds of one run.
type Seconds struct {
	start time.Time
	// from and to enclose the measurement, in ns; to is 0 where it is not known.
	from, to   int64
	Run        map[Moment]*Cell
	Kinds      map[KindKey]*Cell
	Statements map[StatementKey]*Cell
	Workers    map[WorkerKey]*Cell
	Errors     map[ErrorKey]int64
	// Loads are what run workers reported; they come from no record of executions.
	Loads      map[WorkerKey]*Load
	Executions int64
}

// New returns no seconds of a run that started at the time.
func New(start time.Time) *Seconds {
	return &Seconds{
		start:      start,
		Run:        map[Moment]*Cell{},
		Kinds:      map[KindKey]*Cell{},
		Statements: map[StatementKey]*Cell{},
		Workers:    map[WorkerKey]*Cell{},
		Errors:     map[ErrorKey]int64{},
		Loads:      map[WorkerKey]*Load{},
	}
}

// SetMeasurement says from when to when the run was measured; zero times for not known. It comes before executions are
// added.
func (s *Seconds) SetMeasurement(from, to time.Time) {
	if !from.IsZero() && !to.IsZero() {
		s.from, s.to = from.UnixNano(), to.UnixNano()
	}
}

// HasRated reports whether cells know what counts in the rates.
func (s *Seconds) HasRated() bool { return s.to != 0 }

// rates reports whether an execution that ended then counts in the rates of the measurement.
func (s *Seconds) rates(ended int64, warmup bool) bool {
	return ended <= s.to && (!warmup || ended > s.from)
}

// At is when a second began.
func (s *Seconds) At(second int32) time.Time { return s.start.Add(time.Duration(second) * time.Second) }

func cellFor[K comparable](m map[K]*Cell, key K) *Cell {
	c := m[key]
	if c == nil {
		c = &Cell{}
		m[key] = c
	}
	return c
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
	PerHour     CreditRateFunc
	// Segment is the file that holds the same seconds, stored by now.
	Segment Segment
	// Executions are the single ones.
	Executions Staged
}

// Live are seconds of a run that is going on, as its owner in an epoch knows them from snapshots: what has come since
// its last batch. They are provisional: the run is taken in from its record when it has ended.
type Live struct {
	RunID        string
	Epoch, Batch int64
	Seconds      *Seconds
	Warehouse    []engine.WarehousePoint
	PerHour      CreditRateFunc
	// Ticks are the last snapshots that are in the batch, by run worker.
	Ticks map[string]int64
	// Operations and Errors are those of the run so far.
	Operations, Errors int64
}

// Segment is a stored file of the series of a run.
type Segment struct {
	Name, SHA256    string
	SizeBytes, Rows int64
}

// CreditRateFunc says what an hour of a warehouse as it was polled takes, in credits; false when nobody knows.
type CreditRateFunc func(engine.Warehouse) (credits float64, known bool)

// WarehouseSecond is what a warehouse was when it was asked, once for a second at most.
type WarehouseSecond struct {
	engine.WarehousePoint
	Second int64
	// CreditsPerHour is Unknown where nobody knows.
	CreditsPerHour float64
}

// WarehouseSeconds are the polls of the run's warehouse; the first one of a second counts.
func (r *Run) WarehouseSeconds() (all []WarehouseSecond) {
	last := int64(math.MinInt64)
	for _, p := range r.Warehouse {
		if second := int64(math.Floor(p.ElapsedSeconds)); second > last {
			last = second
			all = append(all, WarehouseSecond{p, second, r.PerHour.rate(p.Warehouse)})
		}
	}
	return all
}

func (f CreditRateFunc) rate(w engine.Warehouse) float64 {
	if f != nil {
		if credits, known := f(w); known {
			return credits
		}
	}
	return Unknown
}

// CellFor is the cell of a key, made when it is not there yet.
func CellFor[K comparable](m map[K]*Cell, key K) *Cell { return cellFor(m, key) }
