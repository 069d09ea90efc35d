package wasm

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// reader reads a part of a module; the first error sticks, and everything read
// after it is zero.
type reader struct {
	b   []byte
	pos int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.pos = len(r.b)
	}
}

func (r *reader) cutOff() { r.fail("it is cut off") }

func (r *reader) rest() int { return len(r.b) - r.pos }

func (r *reader) byte() byte {
	if r.pos >= len(r.b) {
		r.cutOff()
		return 0
	}
	r.pos++
	return r.b[r.pos-1]
}

// u32 reads an unsigned LEB128 number of at most five bytes. Linkers pad numbers
// to five; that is allowed, more is not.
func (r *reader) u32() uint32 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 {
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	r.fail("a number in it is longer than its type allows")
	return 0
}

// skipSigned passes a signed LEB128 number of the given bits.
func (r *reader) skipSigned(bits int) {
	limit := (bits + 6) / 7
	for n := 1; n <= limit; n++ {
		c := r.byte()
		if c >= 0x80 {
			continue
		}
		// The bits of the last possible byte that do not belong to the number repeat its sign.
		if n == limit {
			used := bits - 7*(limit-1)
			sign := int8(c<<1) >> used
			if sign != 0 && sign != -1 {
				break
			}
		}
		return
	}
	r.fail("a number in it is longer than its type allows")
}

// signed32 reads a signed LEB128 number that skipSigned has accepted.
func (r *reader) signed32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 {
				v |= ^uint64(0) << (shift + 7)
			}
			break
		}
	}
	return uint32(v)
}

// count reads a count of things that take at least size bytes each.
func (r *reader) count(what string, size, limit int) int {
	n := r.u32()
	if r.err != nil {
		return 0
	}
	if int64(n) > int64(limit) {
		r.fail("it declares %d %s, the limit is %d", n, what, limit)
		return 0
	}
	if uint64(n)*uint64(size) > uint64(r.rest()) {
		r.fail("it declares %d %s, which is more than fit into the file", n, what)
		return 0
	}
	return int(n)
}

func (r *reader) bytes(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(r.rest()) {
		r.cutOff()
		return nil
	}
	r.pos += int(n)
	return r.b[r.pos-int(n) : r.pos]
}

func (r *reader) skip(n int) {
	if n > r.rest() {
		r.cutOff()
		return
	}
	r.pos += n
}

// name reads a name. It must be UTF-8; how it is shown is up to the caller.
func (r *reader) name() string {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name in it is not UTF-8")
		return ""
	}
	return string(b)
}

// SafeName makes a name of a module fit for a sentence: bounded, and without control characters.
func SafeName(name string) string {
	const most = 100
	if utf8.RuneCountInString(name) > most {
		name = string([]rune(name)[:most]) + "…"
	}
	return strings.Trim(fmt.Sprintf("%+q", name), `"`)
}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
