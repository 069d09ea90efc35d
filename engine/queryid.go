package engine

import (
	"encoding/hex"
	"fmt"
)

// QueryID is the name that a database gave an execution, by which its own history knows it. It is shaped like a UUID;
// the zero QueryID is none. A run keeps one for each execution, so it is a value of fixed size.
type QueryID [16]byte

// queryIDLength is the length of a QueryID as text.
const queryIDLength = 36

// dashAfter are the bytes of a QueryID that a dash follows.
const dashAfter = 1<<3 | 1<<5 | 1<<7 | 1<<9

// AppendText appends the lower-case UUID form; it never fails.
func (q QueryID) AppendText(b []byte) ([]byte, error) {
	for i, v := range q {
		const digits = "0123456789abcdef"
		b = append(b, digits[v>>4], digits[v&15])
		if dashAfter>>i&1 == 1 {
			b = append(b, '-')
		}
	}
	return b, nil
}

// String is the lower-case UUID form, or "" for the zero QueryID.
func (q QueryID) String() string {
	if q == (QueryID{}) {
		return ""
	}
	b, _ := q.AppendText(make([]byte, 0, queryIDLength)) // never fails
	return string(b)
}

// ParseQueryID reads the UUID form, in either case. It does not allocate except for its error. "" is the zero QueryID.
func ParseQueryID(s string) (QueryID, error) {
	var q QueryID
	if s == "" {
		return q, nil
	}
	if len(s) != queryIDLength {
		return QueryID{}, fmt.Errorf("parsing query id %.64q: it has %d characters, not %d", s, len(s), queryIDLength)
	}
	at := 0
	for i := range q {
		if n, err := hex.Decode(q[i:i+1], []byte(s[at:at+2])); err != nil || n != 1 {
			return QueryID{}, fmt.Errorf("parsing query id %q: not hexadecimal digits", s)
		}
		at += 2
		if dashAfter>>i&1 == 1 {
			if s[at] != '-' {
				return QueryID{}, fmt.Errorf("parsing query id %q: a dash is missing", s)
			}
			at++
		}
	}
	return q, nil
}
