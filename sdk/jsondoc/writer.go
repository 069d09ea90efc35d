package jsondoc

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// Writer writes a document from front to back; commas are its business, and
// closing what was opened is the caller's. The zero Writer is ready.
type Writer struct {
	buf []byte
	// comma is true when the next value of the open object or array needs one before it.
	comma bool
}

// Bytes returns the document, valid until the next call.
func (w *Writer) Bytes() []byte { return w.buf }

// Reset empties the writer and keeps its memory.
func (w *Writer) Reset() { w.buf, w.comma = w.buf[:0], false }

func (w *Writer) sep() {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
}

func (w *Writer) open(c byte) *Writer {
	w.sep()
	w.buf = append(w.buf, c)
	w.comma = false
	return w
}

func (w *Writer) end(c byte) *Writer {
	w.buf = append(w.buf, c)
	w.comma = true
	return w
}

// Object opens an object.
func (w *Writer) Object() *Writer { return w.open('{') }

// EndObject closes it.
func (w *Writer) EndObject() *Writer { return w.end('}') }

// Array opens an array.
func (w *Writer) Array() *Writer { return w.open('[') }

// EndArray closes it.
func (w *Writer) EndArray() *Writer { return w.end(']') }

// Key writes a member's name.
func (w *Writer) Key(name string) *Writer {
	w.sep()
	w.buf = appendString(w.buf, name)
	w.buf = append(w.buf, ':')
	w.comma = false
	return w
}

// Str writes a string; invalid UTF-8 becomes U+FFFD.
func (w *Writer) Str(s string) *Writer {
	w.sep()
	w.buf = appendString(w.buf, s)
	return w
}

// Int writes an integer.
func (w *Writer) Int(n int64) *Writer {
	w.sep()
	w.buf = strconv.AppendInt(w.buf, n, 10)
	return w
}

// Float writes a number; NaN and the infinities, which JSON lacks, become null.
func (w *Writer) Float(f float64) *Writer {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return w.Null()
	}
	w.sep()
	w.buf = strconv.AppendFloat(w.buf, f, 'g', -1, 64)
	return w
}

// Bool writes a boolean.
func (w *Writer) Bool(v bool) *Writer {
	w.sep()
	w.buf = strconv.AppendBool(w.buf, v)
	return w
}

// Null writes null.
func (w *Writer) Null() *Writer {
	w.sep()
	w.buf = append(w.buf, "null"...)
	return w
}

// Value writes a value that was read.
func (w *Writer) Value(v *Value) *Writer {
	w.sep()
	w.buf = v.Append(w.buf)
	return w
}

// Raw writes JSON as it is. The caller vouches for it.
func (w *Writer) Raw(json string) *Writer {
	w.sep()
	w.buf = append(w.buf, json...)
	return w
}

// Strs writes an array of strings.
func (w *Writer) Strs(list []string) *Writer {
	w.Array()
	for _, s := range list {
		w.Str(s)
	}
	return w.EndArray()
}

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				b = append(b, '\\', c)
			case c == '\n':
				b = append(b, '\\', 'n')
			case c < 0x20 || c == 0x7f:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			default:
				b = append(b, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(b, "\uFFFD"...)
		} else {
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return append(b, '"')
}
