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
	// Delay is set for StatementDelay: think time for whoever takes the next operation.
	Delay time.Duration
}

// Value is one argument. Type "" is NULL; text and bytes lie in Batch.Data[Off:Off+Len].
type Value struct {
	Type engine.ValueType
	// I is an i64, a bool (0 or 1) or a timestamp (µs UTC since the Unix epoch).
	I   int64
	F   float64
	Off uint32
	Len uint32
}

// Bytes returns the data of a text or bytes value.
func (b *Batch) Bytes(v Value) []byte { return b.Data[v.Off : v.Off+v.Len] }
