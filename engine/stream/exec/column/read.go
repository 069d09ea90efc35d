package column

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"
)

// ErrValue says that a text is no value of a type, or out of its range.
var ErrValue = errors.New("no value of this type")

// AppendParsed reads a text as a value of the vector's type and appends it, or nothing and returns ErrValue. It is what
// casts from TEXT and readers of files do.
func (v *Vec) AppendParsed(s []byte) error {
	if v.Type.Kind == Text {
		v.AppendText(s)
		return nil
	}
	s = bytes.TrimSpace(s)
	switch v.Type.Kind {
	case Int:
		i, err := strconv.ParseInt(string(s), 10, 64)
		if err != nil || !v.Type.Holds(i) {
			return ErrValue
		}
		v.AppendInt(i)
	case Float:
		f, err := strconv.ParseFloat(string(s), int(v.Type.Bits))
		if err != nil || bytes.ContainsAny(s, "_xX") { // which are for programs
			return ErrValue
		}
		v.AppendFloat(f)
	case Decimal:
		i, ok := parseDecimal(s, v.Type)
		if !ok {
			return ErrValue
		}
		v.AppendInt(i)
	case Boolean:
		switch {
		case bytes.EqualFold(s, []byte("true")), string(s) == "1", bytes.EqualFold(s, []byte("t")):
			v.AppendBool(true)
		case bytes.EqualFold(s, []byte("false")), string(s) == "0", bytes.EqualFold(s, []byte("f")):
			v.AppendBool(false)
		default:
			return ErrValue
		}
	case Timestamp:
		t, ok := parseTime(s)
		if !ok {
			return ErrValue
		}
		v.AppendInt(t)
	default:
		v.AppendNull()
	}
	return nil
}

// parseDecimal reads digits with a point and an exponent, rounded half away from zero to the type's scale.
func parseDecimal(s []byte, t Type) (int64, bool) {
	negative := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	kept := int(t.Scale) // how many digits are, from the first one on
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.ParseInt(string(s[i+1:]), 10, 32)
		if err != nil {
			return 0, false
		}
		kept, s = kept+int(e), s[:i]
	}
	if i := bytes.IndexByte(s, '.'); i >= 0 {
		kept += i
	} else {
		kept += len(s)
	}
	var v int64
	digits, point, up := 0, false, false
	for _, c := range s {
		switch {
		case c == '.' && !point:
			point = true
			continue
		case c < '0' || c > '9':
			return 0, false
		case digits < kept:
			if v > (math.MaxInt64-9)/10 {
				return 0, false
			}
			v = v*10 + int64(c-'0')
		case digits == kept:
			up = c >= '5'
		}
		digits++
	}
	if digits == 0 {
		return 0, false
	}
	for ; digits < kept && v != 0; digits++ {
		if v > math.MaxInt64/10 {
			return 0, false
		}
		v *= 10
	}
	if up {
		v++
	}
	if negative {
		v = -v
	}
	return v, t.Holds(v)
}

// layouts of times; without a zone they are UTC.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
	"2006-01-02"}

// parseTime reads a time as text, or as whole milliseconds since 1970. Parts of a microsecond are cut off.
func parseTime(s []byte) (int64, bool) {
	if ms, err := strconv.ParseInt(string(s), 10, 64); err == nil {
		return ms * 1000, ms >= MinTime/1000 && ms <= MaxTime/1000
	}
	if len(s) > 64 {
		return 0, false
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, string(s)); err == nil {
			us := t.UnixMicro()
			return us, us >= MinTime && us <= MaxTime
		}
	}
	return 0, false
}
