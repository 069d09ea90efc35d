package abi

import "math"

// Batch writes operations, or sample rows, in wire format. Its memory is kept by
// Reset, so that a batch in steady state allocates nothing. The number of
// arguments is counted by the batch itself. Not safe for concurrent use.
type Batch struct {
	buf  []byte
	nops uint32
	// argsAt is where the running operation keeps its argument count.
	argsAt int
	// first is the number, in the batch, of the first operation after the last BEGIN.
	first uint32
}

// Reset empties the batch and writes a new header.
func (b *Batch) Reset() {
	b.nops = 0
	b.argsAt, b.first = -1, 0
	b.buf = append(b.buf[:0], BatchVersion, 0, 0, 0, 0, 0, 0, 0)
}

// Op begins an operation; its arguments follow.
func (b *Batch) Op(statement uint16) {
	b.nops++
	b.argsAt = len(b.buf) + 2
	b.buf = append(b.buf, byte(statement), byte(statement>>8), 0)
}

// Row begins a sample row; its columns follow.
func (b *Batch) Row() { b.Op(0) }

// Len is the number of operations so far.
func (b *Batch) Len() int { return int(b.nops) }

// Size is the length in bytes so far.
func (b *Batch) Size() int { return len(b.buf) }

// Bytes completes the header and returns the batch, valid until the next change.
func (b *Batch) Bytes() []byte {
	if len(b.buf) < HeaderSize {
		b.Reset()
	}
	b.buf[4], b.buf[5], b.buf[6], b.buf[7] = byte(b.nops), byte(b.nops>>8), byte(b.nops>>16), byte(b.nops>>24)
	return b.buf
}

// Null adds a NULL.
func (b *Batch) Null() {
	b.buf = append(b.buf, TypeNull)
	b.buf[b.argsAt]++
}

func (b *Batch) eight(t uint8, v uint64) {
	b.buf = append(b.buf, t, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48),
		byte(v>>56))
	b.buf[b.argsAt]++
}

// I64 adds an integer.
func (b *Batch) I64(v int64) { b.eight(TypeI64, uint64(v)) }

// F64 adds a float.
func (b *Batch) F64(v float64) { b.eight(TypeF64, math.Float64bits(v)) }

// Timestamp adds a time in µs since the Unix epoch, UTC.
func (b *Batch) Timestamp(micros int64) { b.eight(TypeTimestamp, uint64(micros)) }

// Bool adds a boolean.
func (b *Batch) Bool(v bool) {
	var x byte
	if v {
		x = 1
	}
	b.buf = append(b.buf, TypeBool, x)
	b.buf[b.argsAt]++
}

// Ref adds a reference to column c of the first row that the k-th operation
// after BEGIN returned; both count from 0. It is NULL when that returned no row.
// The operation must come before this one, and its statement must declare the
// column.
func (b *Batch) Ref(k, c uint8) {
	b.buf = append(b.buf, TypeRef, k, c)
	b.buf[b.argsAt]++
}

// Key adds a value of the keys that the host holds of a table: column c of key n of the pool at that place among
// those of the OpenRequest.
func (b *Batch) Key(pool, c uint8, n uint32) {
	b.buf = append(b.buf, TypeKey, pool, c, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	b.buf[b.argsAt]++
}

func (b *Batch) head(t uint8, n int) {
	b.buf = append(b.buf, t, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	b.buf[b.argsAt]++
}

// Text adds a string, which must be UTF-8.
func (b *Batch) Text(v string) {
	b.head(TypeText, len(v))
	b.buf = append(b.buf, v...)
}

// TextBytes adds a string held in bytes, which are copied.
func (b *Batch) TextBytes(v []byte) {
	b.head(TypeText, len(v))
	b.buf = append(b.buf, v...)
}

// Blob adds bytes, which are copied.
func (b *Batch) Blob(v []byte) {
	b.head(TypeBytes, len(v))
	b.buf = append(b.buf, v...)
}

// TextSpace adds a string of n bytes and returns its space for the caller to
// fill at once, before any other call.
func (b *Batch) TextSpace(n int) []byte {
	return b.space(TypeText, n)
}

// BlobSpace is TextSpace for bytes.
func (b *Batch) BlobSpace(n int) []byte { return b.space(TypeBytes, n) }

func (b *Batch) space(t uint8, n int) []byte {
	at := len(b.buf)
	if cap(b.buf)-at < n+5 {
		b.grow(n + 5)
	}
	b.buf = b.buf[:at+n+5]
	b.buf[b.argsAt]++
	s := b.buf[at:]
	s[0], s[1], s[2], s[3], s[4] = t, byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return s[5:]
}

func (b *Batch) grow(n int) {
	grown := make([]byte, len(b.buf), 2*(len(b.buf)+n))
	copy(grown, b.buf)
	b.buf = grown
}

// Delay adds think time for whoever takes the next operation.
func (b *Batch) Delay(micros int64) {
	b.Op(StatementDelay)
	b.I64(micros)
}

// Begin begins a transaction. Commit or Rollback must end it in the same batch,
// after at least one and at most MaxGroupOps operations; a transaction that began
// within the number of operations asked for may end past it.
func (b *Batch) Begin() {
	b.Op(StatementBegin)
	b.first = b.nops
}

// Commit ends a transaction.
func (b *Batch) Commit() { b.Op(StatementCommit) }

// Rollback ends a transaction whose changes are to be undone. That is a success:
// an operation that fails is rolled back by the host.
func (b *Batch) Rollback() { b.Op(StatementRollback) }

// Last returns the number by which Ref knows the operation begun last, counted
// from the last Begin.
func (b *Batch) Last() uint8 { return uint8(b.nops - b.first - 1) }
