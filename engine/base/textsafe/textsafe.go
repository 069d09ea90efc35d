// Package textsafe takes from texts of others, of users, databases and plugins, what is obeyed rather than shown: by a
// terminal, by a page, or by whoever lays out the text around it.
package textsafe

import (
	"strings"
	"unicode"
)

// IsControl reports whether a character is no text: a control character, of which escape sequences are made, a mark
// that turns the direction of what follows or is not seen, or a separator that begins a line.
func IsControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// Multiline is a text without what would be obeyed but line ends and tabs. What is no UTF-8 becomes a question mark.
func Multiline(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// OneLine is a text on one line, without what would be obeyed.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case IsControl(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// Shorten cuts a text after so many characters.
func Shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
