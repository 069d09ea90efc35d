// Package column holds rows by columns: types, vectors of values, batches of vectors. Vectors keep their memory from
// one batch to the next, so that rows cost no allocation.
package column

import (
	"fmt"
	"math"
	"strings"
)

// Kind is how values of a type are kept.
type Kind uint8

// The kinds. Unknown is the type of NULL, which fits every other.
const (
	Unknown Kind = iota
	Boolean
	Int       // Ints
	Float     // Floats
	Decimal   // Ints, in units of 10^-Scale
	Text      // Bytes and Ends
	Timestamp // Ints, in microseconds since 1970 UTC
)

// Type is the type of a column.
type Type struct {
	Kind Kind
	// Bits are those of an Int or Float; results of arithmetic have 64.
	Bits uint8
	// Unsigned integers are 0 or more.
	Unsigned         bool
	Precision, Scale uint8
}

// The types of results.
var (
	BooleanType   = Type{Kind: Boolean}
	Int64Type     = Type{Kind: Int, Bits: 64}
	Float64Type   = Type{Kind: Float, Bits: 64}
	TextType      = Type{Kind: Text}
	TimestampType = Type{Kind: Timestamp}
)

// MaxPrecision is how many digits a DECIMAL has at most: what 64 bits hold.
const MaxPrecision = 18

// names of types; what stands for another is not shown.
var names = map[string]Type{
	"BOOLEAN": BooleanType, "BOOL": BooleanType,
	"INT8": {Kind: Int, Bits: 8}, "INT16": {Kind: Int, Bits: 16}, "INT32": {Kind: Int, Bits: 32}, "INT64": Int64Type,
	"INT": Int64Type, "INTEGER": Int64Type, "BIGINT": Int64Type,
	"UINT8":   {Kind: Int, Bits: 8, Unsigned: true},
	"UINT16":  {Kind: Int, Bits: 16, Unsigned: true},
	"UINT32":  {Kind: Int, Bits: 32, Unsigned: true},
	"UINT64":  {Kind: Int, Bits: 64, Unsigned: true},
	"FLOAT32": {Kind: Float, Bits: 32}, "REAL": {Kind: Float, Bits: 32},
	"FLOAT64": Float64Type, "FLOAT": Float64Type, "DOUBLE": Float64Type,
	"TEXT": TextType, "VARCHAR": TextType, "VARSIZED": TextType, "STRING": TextType, "CHAR": TextType,
	"TIMESTAMP": TimestampType, "TIMESTAMPTZ": TimestampType,
}

// TypeNames are the types that messages name.
var TypeNames = []string{"BOOLEAN", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FLOAT32",
	"FLOAT64", "DECIMAL", "TEXT", "TIMESTAMP"}

// IsType reports whether a name is that of a type.
func IsType(name string) bool {
	_, ok := names[strings.ToUpper(name)]
	return ok || strings.EqualFold(name, "DECIMAL") || strings.EqualFold(name, "NUMERIC")
}

// TypeNamed returns the type of a name and the numbers in parentheses behind it; the error is a sentence without a
// place.
func TypeNamed(name string, args []int64) (Type, error) {
	name = strings.ToUpper(name)
	if name == "DECIMAL" || name == "NUMERIC" {
		t := Type{Kind: Decimal, Precision: MaxPrecision, Scale: 6}
		if len(args) > 0 {
			if args[0] < 1 || args[0] > MaxPrecision {
				return t, fmt.Errorf("a DECIMAL has 1 to %d digits", MaxPrecision)
			}
			t.Precision, t.Scale = uint8(args[0]), 0
		}
		if len(args) > 1 {
			if args[1] < 0 || args[1] > args[0] {
				return t, fmt.Errorf("of %d digits 0 to %d can be behind the point", args[0], args[0])
			}
			t.Scale = uint8(args[1])
		}
		return t, nil
	}
	t, ok := names[name]
	if !ok {
		return t, fmt.Errorf("there is no type %s", name)
	}
	if len(args) > 0 && t.Kind != Text {
		return t, fmt.Errorf("%s takes no numbers in parentheses", name)
	}
	return t, nil
}

// String is the name of the type.
func (t Type) String() string {
	switch t.Kind {
	case Boolean:
		return "BOOLEAN"
	case Int:
		return fmt.Sprintf("%sINT%d", map[bool]string{true: "U"}[t.Unsigned], t.Bits)
	case Float:
		return fmt.Sprintf("FLOAT%d", t.Bits)
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d, %d)", t.Precision, t.Scale)
	case Text:
		return "TEXT"
	case Timestamp:
		return "TIMESTAMP"
	}
	return "NULL"
}

// Width is how many bytes a value takes, but for the bytes of a text.
func (t Type) Width() int {
	switch t.Kind {
	case Boolean, Unknown:
		return 2
	case Text:
		return 5
	}
	return 9
}

// Numeric reports whether the type can be reckoned with.
func (t Type) Numeric() bool { return t.Kind == Int || t.Kind == Float || t.Kind == Decimal }

// Holds reports whether a value of Ints is in the type's range.
func (t Type) Holds(v int64) bool {
	switch t.Kind {
	case Int:
		if t.Unsigned {
			return v >= 0 && (t.Bits == 64 || v < 1<<t.Bits)
		}
		return t.Bits == 64 || v >= -1<<(t.Bits-1) && v < 1<<(t.Bits-1)
	case Decimal:
		return v > -Pow10[t.Precision] && v < Pow10[t.Precision]
	case Timestamp:
		return v >= MinTime && v <= MaxTime
	}
	return true
}

// MinTime and MaxTime are the first and last instants of a TIMESTAMP, in microseconds: the years 0001 and 9999.
const (
	MinTime = -62135596800_000_000
	MaxTime = 253402300799_999_999
)

// Pow10 are the powers of ten that an int64 holds.
var Pow10 = func() (p [MaxPrecision + 1]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// Rescale changes the scale of a decimal, half away from zero; false if it overflows.
func Rescale(v int64, from, to uint8) (int64, bool) {
	if from == to {
		return v, true
	}
	if to > from {
		f := Pow10[to-from]
		if v > math.MaxInt64/f || v < math.MinInt64/f {
			return 0, false
		}
		return v * f, true
	}
	f := Pow10[from-to]
	q, r := v/f, v%f
	if r >= f-r && r > 0 {
		q++
	} else if r < 0 && -r >= f+r {
		q--
	}
	return q, true
}
