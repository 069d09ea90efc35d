package main

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// maker says how values of a column are invented.
type maker uint8

const (
	// makeNothing: values of this column can only be taken from existing rows.
	makeNothing maker = iota
	makeInt
	makeFloat
	makeBool
	makeTimestamp
	makeDate
	makeText
	makeNumeric
	makeUUID
	makeJSON
	makeInet
	makeTime
	makeInterval
	makeBytes
)

// values makes values of one column.
type values struct {
	column sdk.Column
	maker  maker
	// max bounds makeInt (exclusive).
	max int64
	// digits before and after the point of makeNumeric.
	whole, scale int
	// sizes of text and bytes.
	minSize, maxSize int64
}

const (
	epoch2024 = 1_704_067_200_000_000 // µs
	day       = 86_400_000_000        // µs
)

// baseType strips the modifier of a type: "numeric(12,2)" is "numeric".
func baseType(dbType string) string {
	name, _, _ := strings.Cut(strings.ToLower(dbType), "(")
	return strings.TrimSpace(name)
}

// newValues decides how a column's values are made.
func newValues(c sdk.Column, p *params) values {
	v := values{column: c, minSize: p.minSize, maxSize: p.maxSize}
	base := baseType(c.DBType)
	switch c.Type {
	case sdk.I64:
		v.maker, v.max = makeInt, 1_000_000
		if intMax(c) < v.max {
			v.max = intMax(c)
		}
	case sdk.F64:
		v.maker = makeFloat
	case sdk.Bool:
		v.maker = makeBool
	case sdk.Timestamp:
		v.maker = makeTimestamp
		if base == "date" {
			v.maker = makeDate
		}
	case sdk.Bytes:
		v.maker = makeBytes
	case sdk.Text:
		switch base {
		case "numeric", "decimal", "number":
			v.maker, v.whole, v.scale = makeNumeric, 6, 2
			v.precision(c.DBType)
		case "money":
			v.maker, v.whole, v.scale = makeNumeric, 6, 2
		case "uuid":
			v.maker = makeUUID
		case "json", "jsonb", "variant":
			v.maker = makeJSON
		case "inet":
			v.maker = makeInet
		case "time", "time without time zone":
			v.maker = makeTime
		case "interval":
			v.maker = makeInterval
		case "", "text", "varchar", "character varying", "character", "char", "bpchar", "name", "citext", "string":
			v.maker = makeText
		}
	}
	if v.maker == makeText && base == "name" && c.MaxLength == 0 {
		c.MaxLength = 63
	}
	if c.MaxLength > 0 {
		v.maxSize = min(v.maxSize, int64(c.MaxLength))
		v.minSize = min(v.minSize, v.maxSize)
	}
	return v
}

// intMax is the largest integer that the column holds.
func intMax(c sdk.Column) int64 {
	switch baseType(c.DBType) {
	case "smallint", "int2", "smallserial":
		return 1<<15 - 1
	case "integer", "int", "int4", "serial":
		return 1<<31 - 1
	case "oid":
		return 1<<32 - 1
	}
	return 1<<63 - 1
}

// precision reads numeric(p,s).
func (v *values) precision(dbType string) {
	_, rest, ok := strings.Cut(dbType, "(")
	if !ok {
		return
	}
	rest, _, _ = strings.Cut(rest, ")")
	first, second, _ := strings.Cut(rest, ",")
	p, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return
	}
	s, _ := strconv.Atoi(strings.TrimSpace(second))
	v.whole = max(0, min(6, p-s))
	v.scale = max(0, min(6, s))
	if s < 0 { // it is rounded, and must not become one digit longer
		v.whole = max(0, min(6, p-s-1))
	}
	if s > p {
		v.whole, v.scale = 0, 0
	}
}

var pow10 = [...]int64{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}

// put writes a random value.
func (v *values) put(b *sdk.Batch, r *gen.Rand) {
	switch v.maker {
	case makeInt:
		b.I64(r.Int64n(v.max))
	case makeFloat:
		b.F64(float64(r.Int64n(1_000_000)) / 1000)
	case makeBool:
		b.Bool(r.Uint64()&1 == 1)
	case makeTimestamp:
		b.Timestamp(epoch2024 + r.Int64n(365*day))
	case makeDate:
		b.Timestamp(epoch2024 + day*r.Int64n(365))
	case makeText:
		r.Letters(b.TextSpace(int(r.Between(v.minSize, v.maxSize))))
	case makeBytes:
		r.Bytes(b.BlobSpace(int(r.Between(v.minSize, v.maxSize))))
	case makeNumeric:
		putNumeric(b, r.Int64n(pow10[v.whole]), r.Int64n(pow10[v.scale]), v.scale)
	case makeUUID:
		putUUID(b, r.Uint64(), r.Uint64())
	case makeJSON:
		putJSON(b, r, int(r.Between(v.minSize, v.maxSize)))
	case makeInet:
		putInet(b, r.Uint64())
	case makeTime:
		putTime(b, r.Int64n(86_400))
	case makeInterval:
		var s [32]byte
		b.TextBytes(append(strconv.AppendInt(s[:0], r.Int64n(86_400), 10), " seconds"...))
	default:
		b.Null()
	}
}

// putNumeric writes whole.fraction with scale digits after the point. Digits are
// written in place, because strconv is slow where guests run.
func putNumeric(b *sdk.Batch, whole, fraction int64, scale int) {
	size := 1
	for x := whole; x >= 10; x /= 10 {
		size++
	}
	if scale == 0 {
		gen.Digits(b.TextSpace(size), uint64(whole))
		return
	}
	s := b.TextSpace(size + 1 + scale)
	gen.Digits(s[:size], uint64(whole))
	s[size] = '.'
	gen.Digits(s[size+1:], uint64(fraction))
}

// putUUID writes a version 4 UUID of these bits.
func putUUID(b *sdk.Batch, hi, lo uint64) { gen.UUID(b.TextSpace(gen.UUIDSize), hi, lo) }

func putJSON(b *sdk.Batch, r *gen.Rand, size int) {
	const head, tail = `{"note":"`, `"}`
	size = max(size, len(head)+len(tail))
	s := b.TextSpace(size)
	copy(s, head)
	copy(s[size-len(tail):], tail)
	r.Letters(s[len(head) : size-len(tail)])
}

func putInet(b *sdk.Batch, x uint64) {
	var s [32]byte
	out := append(s[:0], "10"...)
	for i := 0; i < 3; i++ {
		out = append(out, '.')
		out = strconv.AppendInt(out, int64(byte(x>>(8*i))), 10)
	}
	b.TextBytes(out)
}

func putTime(b *sdk.Batch, seconds int64) {
	s := b.TextSpace(8)
	for i, n := range [...]int64{seconds / 3600, seconds / 60 % 60, seconds % 60} {
		s[3*i], s[3*i+1] = byte('0'+n/10), byte('0'+n%10)
		if i < 2 {
			s[3*i+2] = ':'
		}
	}
}
