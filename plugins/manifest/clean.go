package manifest

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a guest's text fit to be shown: valid UTF-8, no control
// characters, bounded.
func Clean(b []byte, limit int) string {
	cut := false
	if len(b) > limit {
		b, cut = b[:limit], true
	}
	s := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, string(b))
	s = strings.TrimSpace(s)
	if cut {
		s += "…"
	}
	return s
}
