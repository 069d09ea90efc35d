package main

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// newKeys makes values that no row has and no other slot makes.
type newKeys struct {
	// column whose values are made; "" when the database makes them.
	column string
	// known: the column is the whole key, so value n can be named again.
	known       bool
	values      values
	start, step int64
	// room is how many numbers there are from start on, below 0 as many as anybody wants.
	room        int64
	salt        uint64
	slot, slots int64
	// made counts the values.
	made int64
}

// lastTime is the end of the year 9999.
const lastTime = 253_402_300_799_000_000

// newMaker finds the first free value of a column. sampled is the column in the sample of keys, where there is one.
// values.maker is makeNothing where no new values are made of the type.
func newMaker(c *sdk.Column, t *sdk.Table, sampled *poolColumn, salt uint64) *newKeys {
	m := &newKeys{column: c.Name, values: newValues(*c, &params{}), salt: salt, step: 1, room: -1, slots: 1}
	alone := len(t.Key) == 1 && t.Key[0] == c.Name
	top, hasTop := c.Top, c.HasTop
	if alone && t.HasRange {
		top, hasTop = t.KeyMax, true
	}
	if !hasTop && sampled != nil {
		top = sampled.top()
	}
	until := func(last int64) {
		if m.start = top + m.step; m.start > last || m.start < top {
			m.room = 0
			return
		}
		m.room = (last-m.start)/m.step + 1
	}
	switch m.values.maker {
	case makeInt:
		m.startInt(top, hasTop || alone || t.Rows == 0, salt)
	case makeNumeric:
		m.step = m.values.numericStep()
		top = (top + m.step - 1) / m.step * m.step
		until(m.values.largest())
	case makeFloat:
		if baseType(c.DBType) == "real" || baseType(c.DBType) == "float4" {
			until(1 << 24)
		} else {
			until(1 << 53)
		}
	case makeInterval:
		until(1 << 40)
	case makeTimestamp, makeDate:
		if top = max(top, epoch2024); m.values.maker == makeDate {
			m.step = day
		} else {
			m.step = timeStep(c.DBType)
		}
		if !hasTop && m.values.maker == makeTimestamp {
			// A sample's newest row need not be the table's: leave a gap of days.
			top += 30*day + int64(salt%uint64(day))/m.step*m.step
		}
		until(lastTime)
	case makeText:
		// Codes of a few letters are taken soon.
		if n := m.values.column.MaxLength; n > 0 && n < 4 {
			m.values.maker = makeNothing
		}
	case makeUUID, makeBytes, makeInet:
	case makeJSON:
		if baseType(c.DBType) == "json" {
			m.values.maker = makeNothing
		}
	default:
		m.values.maker = makeNothing
	}
	return m
}

func (m *newKeys) startInt(top int64, known bool, salt uint64) {
	last := intMax(m.values.column)
	switch {
	case known:
		m.start = top + 1
	case last > 1<<32:
		m.start = 1<<52 | int64(salt&(1<<19-1))<<32
	default:
		m.start = (last + 1) / 2
		m.start += int64(salt % uint64(m.start/2+1))
	}
	if m.room = last - m.start + 1; m.start > last || known && m.start <= top {
		m.room = 0
	} else if m.room <= 0 {
		m.room = -1 // more than fit into the number
	}
}

// largest is the largest whole number that a numeric column holds.
func (v *values) largest() int64 {
	const most = 900_000_000_000_000_000
	_, rest, ok := strings.Cut(v.column.DBType, "(")
	if !ok {
		return most
	}
	rest, _, _ = strings.Cut(rest, ")")
	first, second, _ := strings.Cut(rest, ",")
	p, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return most
	}
	s, _ := strconv.Atoi(strings.TrimSpace(second))
	if p-s > 17 {
		return most
	}
	n := int64(1)
	for range max(p-s, 0) {
		n *= 10
	}
	return n - 1
}

// numericStep is the difference of whole numbers that a numeric column keeps: 100 for numeric(5,-2).
func (v *values) numericStep() int64 {
	_, rest, _ := strings.Cut(v.column.DBType, ",")
	rest, _, _ = strings.Cut(rest, ")")
	s, err := strconv.Atoi(strings.TrimSpace(rest))
	step := int64(1)
	for range -s {
		if err != nil || step >= 1e15 {
			break
		}
		step *= 10
	}
	return step
}

// timeStep is the difference that timestamp(p) keeps, in µs.
func timeStep(dbType string) int64 {
	_, rest, ok := strings.Cut(dbType, "(")
	if !ok || len(rest) == 0 || rest[0] < '0' || rest[0] > '5' {
		return 1
	}
	step := int64(1_000_000)
	for range int(rest[0] - '0') {
		step /= 10
	}
	return step
}

// exhausted reports that value n of this slot is beyond what the column holds.
func (m *newKeys) exhausted(n int64) bool { return m.room >= 0 && m.slot+n*m.slots >= m.room }

// full reports that the column has no room for a value of each slot.
func (m *newKeys) full() bool { return m.room >= 0 && m.room < m.slots }

// next writes the next value of this slot.
func (m *newKeys) next(b *sdk.Batch) {
	m.put(b, m.made)
	m.made++
}

// put writes value n of this slot.
func (m *newKeys) put(b *sdk.Batch, n int64) {
	number := m.slot + n*m.slots
	switch m.values.maker {
	case makeInt:
		b.I64(m.start + number)
	case makeTimestamp, makeDate:
		b.Timestamp(m.start + m.step*number)
	case makeNumeric:
		putNumeric(b, m.start+m.step*number, 0, 0)
	case makeFloat:
		b.F64(float64(m.start + number))
	case makeUUID:
		putUUID(b, gen.Mix(m.salt^uint64(number)), gen.Mix(m.salt+uint64(number)))
	case makeInet:
		m.putInet(b, uint64(number))
	case makeInterval:
		var s [32]byte
		b.TextBytes(append(strconv.AppendInt(s[:0], m.start+number, 10), " seconds"...))
	case makeJSON:
		const head, tail, size = `{"id":"`, `"}`, 20
		s := b.TextSpace(len(head) + size + len(tail))
		copy(s, head)
		m.letters(s[len(head):len(head)+size], number)
		copy(s[len(head)+size:], tail)
	case makeBytes:
		x := gen.Mix(m.salt + uint64(number))
		s := b.BlobSpace(16)
		for i := range s {
			if i == 8 {
				x = m.salt
			}
			s[i] = byte(x)
			x >>= 8
		}
	default:
		m.putText(b, number)
	}
}

// putInet writes an address of the private range of IPv6: 40 bits of the salt, and a number that never repeats.
func (m *newKeys) putInet(b *sdk.Batch, number uint64) {
	var s [48]byte
	out := append(s[:0], "fd"...)
	const digits = "0123456789abcdef"
	hex := func(x uint64, from int) {
		for shift := from; shift >= 0; shift -= 4 {
			if shift%16 == 12 {
				out = append(out, ':')
			}
			out = append(out, digits[x>>shift&15])
		}
	}
	out = append(out, digits[m.salt>>60], digits[m.salt>>56&15])
	hex(m.salt<<16>>16, 44)
	hex(number, 60)
	b.TextBytes(out)
}

// putText writes 20 letters that no other number gives, fewer where the column is shorter.
func (m *newKeys) putText(b *sdk.Batch, number int64) {
	size := 20
	if n := m.values.column.MaxLength; n > 0 && n < size {
		size = n
	}
	m.letters(b.TextSpace(size), number)
}

func (m *newKeys) letters(s []byte, number int64) {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	size := len(s)
	// Mix is one to one, so 13 letters of 5 bits never repeat; the rest is the slot's salt.
	x, rest := gen.Mix(m.salt+uint64(number)), m.salt
	if size < 13 {
		x = m.salt>>40 + uint64(number)
	}
	for i := size - 1; i >= 0; i-- {
		if size-1-i >= 13 {
			s[i] = letters[rest&31]
			rest >>= 5
			continue
		}
		s[i] = letters[x&31]
		x >>= 5
	}
}
