package textsafe

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// EscapeJSON is a JSON document whose texts say the same, with what is obeyed rather than shown written as \uXXXX: a
// document that is printed to a terminal moves no cursor and turns no text around. Without such characters it is what
// was given.
func EscapeJSON(document []byte) []byte {
	i := 0
	for i < len(document) && document[i] < 0x7f {
		i++
	}
	if i == len(document) {
		return document
	}
	out := append(make([]byte, 0, len(document)+64), document[:i]...)
	for i < len(document) {
		r, n := utf8.DecodeRune(document[i:])
		switch {
		case r < 0x7f || !IsControl(r):
			out = append(out, document[i:i+n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}
