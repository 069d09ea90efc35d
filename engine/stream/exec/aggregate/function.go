// Package aggregate adds rows up by groups: COUNT, SUM, AVG, MIN, MAX, STDDEV, QUANTILE and LAST. States merge, so that
// parts of a window, or of the rows, can be added up apart and put together in any order. NULL is left out by all but
// COUNT(*).
package aggregate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
)

// Function is an aggregate of an argument's type.
type Function struct {
	Name   string
	Arg    column.Type
	Result column.Type
	// Q is which quantile, 0 … 1.
	Q float64
}

// names of the aggregates.
var names = []string{"COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "QUANTILE", "LAST"}

// IsAggregate reports whether a name is that of an aggregate.
func IsAggregate(name string) bool { return slices.Contains(names, strings.ToUpper(name)) }

// New returns an aggregate; the error is a sentence without a place.
func New(name string, arg column.Type, q float64) (Function, error) {
	f := Function{Name: strings.ToUpper(name), Arg: arg, Q: q}
	switch {
	case f.Name == "COUNT":
		f.Result = column.Int64Type
		return f, nil
	case arg.Kind == column.Unknown:
		return f, fmt.Errorf("%s of NULL has no type; cast it", f.Name)
	case f.Name == "MIN" || f.Name == "MAX" || f.Name == "LAST":
		f.Result = arg
		return f, nil
	case !arg.Numeric():
		return f, fmt.Errorf("%s takes numbers, not %s", f.Name, arg)
	case f.Name == "QUANTILE" && !(q >= 0 && q <= 1):
		return f, fmt.Errorf("a quantile is between 0 and 1, as QUANTILE(x, 0.99)")
	}
	f.Result = column.Float64Type
	if f.Name == "SUM" && arg.Kind == column.Int {
		f.Result = column.Int64Type
	} else if f.Name == "SUM" && arg.Kind == column.Decimal {
		f.Result = column.Type{Kind: column.Decimal, Precision: column.MaxPrecision, Scale: arg.Scale}
	}
	return f, nil
}

// Rows are rows with their groups: row From+i belongs to group Groups[i].
type Rows struct {
	Groups []int32
	From   int
	// Arg is the argument's values, nil of COUNT(*).
	Arg *column.Vec
	// Times are those of the rows, for LAST.
	Times []int64
}

// State is what an aggregate keeps of each group.
type State interface {
	// Grow makes room for groups below n.
	Grow(n int)
	// Add adds rows.
	Add(r Rows)
	// Merge adds a group of another state of the same function.
	Merge(group int, o State, other int)
	// Append appends the result of a group.
	Append(to *column.Vec, group int)
	// Reset forgets all groups and keeps memory.
	Reset()
	// Size is about how many bytes a group takes.
	Size() int
}

// textSizer is a state that keeps texts besides.
type textSizer interface {
	// TextBytes is how many bytes they take.
	TextBytes() int
	// textBytes is how many bytes that of a group takes.
	textBytes(group int) int
}

// state returns an empty state of the function.
func (f Function) state(faults *expression.Faults) State {
	decimal := f.Arg.Kind == column.Decimal
	scale := float64(column.Pow10[f.Arg.Scale])
	switch f.Name {
	case "COUNT":
		return &count{}
	case "SUM", "AVG":
		if f.Arg.Kind == column.Float {
			return &sumFloat{average: f.Name == "AVG", faults: faults}
		}
		return &sumInt{average: f.Name == "AVG", scale: scale, faults: faults}
	case "STDDEV":
		return &deviation{scale: scale, ints: f.Arg.Kind != column.Float, faults: faults}
	case "QUANTILE":
		return &quantile{q: f.Q, whole: f.Arg.Kind == column.Int || decimal, scale: scale, faults: faults}
	case "LAST":
		return &last{arg: f.Arg}
	}
	switch f.Arg.Kind {
	case column.Float:
		return &extremeFloat{isMax: f.Name == "MAX"}
	case column.Text:
		return &extremeText{isMax: f.Name == "MAX"}
	case column.Boolean:
		return &extremeBool{isMax: f.Name == "MAX"}
	}
	return &extremeInt{isMax: f.Name == "MAX"}
}
