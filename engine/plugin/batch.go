package plugin

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Batch holds decoded operations. Its memory is reused by the next Fill, so
// operations are valid until then.
type Batch struct {
	// Ops are the operations in the guest's order.
	Ops []Op
	// Args are the arguments of all operations, one after the other.
	Args []Value
	// Data backs text and bytes values.
	Data []byte
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.Ops, b.Args, b.Data = b.Ops[:0], b.Args[:0], b.Data[:0] }

// The control statements of the batch format.
const (
	StatementBegin    uint16 = 0xFF00
	StatementCommit   uint16 = 0xFF01
	StatementRollback uint16 = 0xFF02
	StatementDelay    uint16 = 0xFF03
)

// Op is one operation: a frozen statement with its arguments, or a delay.
type Op struct {
	// Statement indexes the frozen list, or is one of the control statements.
	Statement uint16
	// FirstArg and NArgs select Batch.Args.
	FirstArg uint32
	NArgs    uint16
	// Referred: a later operation of the same transaction refers to the first row
	// that this one returns, so that it has to be kept until the transaction ends.
	Referred bool
	// Delay is set for StatementDelay: think time for whoever takes the next operation.
	Delay time.Duration
}

// TypeRef is the type of a Value that stands for a column of an earlier
// operation's first row, NULL when there was none. It is no type of a bind: any
// bind takes it, and the driver converts.
const TypeRef engine.ValueType = "ref"

// Ref makes a value of TypeRef: column c of operation k of the transaction, both
// from 0; BEGIN does not count.
func Ref(k, c uint8) Value { return Value{Type: TypeRef, I: int64(k)<<8 | int64(c)} }

// Ref returns the operation and the column that a value of TypeRef names.
func (v Value) Ref() (k, c int) { return int(v.I >> 8), int(v.I & 0xff) }

// Value is one argument. Type "" is NULL; text and bytes lie in Batch.Data[Off:Off+Len].
type Value struct {
	Type engine.ValueType
	// I is an i64, a bool (0 or 1), a timestamp (µs UTC since the Unix epoch), or k<<8 | c of a ref.
	I   int64
	F   float64
	Off uint32
	Len uint32
}

// Bytes returns the data of a text or bytes value.
func (b *Batch) Bytes(v Value) []byte { return b.Data[v.Off : v.Off+v.Len] }
