package executions

import (
	"strings"
	"unicode/utf8"
)

// MaskSQL replaces the values in the text of a statement: constants in all ways in which they are written, numbers, and
// remarks. Names in double quotes and parameters ($1, :name) stay. What cannot be told apart for sure, as a text that
// does not end, or a backslash before an apostrophe, which one database reads otherwise than another, is masked as far
// as it may go. Masking twice is masking once.
func MaskSQL(text string) string {
	var out strings.Builder
	for at := 0; at < len(text); {
		// Up to end stands what begins here, of which only open and shut are shown.
		var end int
		open, shut := "", ""
		switch c := text[at]; {
		case c == '"' || c == '`':
			if end = quoteEnd(text, at, c, false); end >= 0 {
				out.WriteString(text[at:end])
				at = end
				continue
			}
		case c == '\'':
			end, open, shut = quoteEnd(text, at, c, false), "'", "'"
			if end >= 0 && strings.Contains(text[at:end], `\`) {
				end = -1
			}
		case strings.HasPrefix(text[at:], "--"):
			end, open = len(text), "--"
			if line := strings.IndexAny(text[at:], "\r\n"); line >= 0 {
				end = at + line
			}
		case strings.HasPrefix(text[at:], "/*"):
			end, open, shut = commentEnd(text, at), "/*", "*/"
		case c == '$' && dollarTag(text[at:]) != "":
			open = dollarTag(text[at:])
			shut = open
			end = strings.Index(text[at+len(open):], open)
			if end >= 0 {
				end += at + 2*len(open)
			}
		case isDigit(c), (c == '-' || c == '+' || c == '.') && at+1 < len(text) && isDigit(text[at+1]) && !joined(text, at):
			end = numberEnd(text, at)
		default:
			next := skipToken(text, at)
			out.WriteString(text[at:next])
			if next != at+1 || c|0x20 != 'e' || next == len(text) || text[next] != '\'' {
				at = next
				continue
			}
			// E'…', in which a backslash takes the next one along.
			at, open, shut = next, "'", "'"
			end = quoteEnd(text, at, '\'', true)
		}
		if end < 0 {
			return out.String() + masked
		}
		out.WriteString(open + masked + shut)
		at = end
	}
	return out.String()
}

// skipToken is the place after what is shown as it is: a word, a parameter, or one character.
func skipToken(text string, at int) int {
	end := at
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		if !isWordRune(r) && (r != '$' || end == at && (at+1 >= len(text) || !isDigit(text[at+1]))) {
			break
		}
		end += n
	}
	if end == at {
		_, n := utf8.DecodeRuneInString(text[at:])
		end += n
	}
	return end
}

// quoteEnd is the place after a quotation in which the mark twice is one, -1 when it does not end.
func quoteEnd(text string, at int, mark byte, backslash bool) int {
	for i := at + 1; i < len(text); i++ {
		switch {
		case backslash && text[i] == '\\':
			i++
		case text[i] != mark:
		case i+1 < len(text) && text[i+1] == mark:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// commentEnd is the place after a remark, in which others may stand, -1 when it does not end.
func commentEnd(text string, at int) int {
	for depth, i := 1, at+2; i+1 < len(text); i++ {
		switch text[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			if depth--; depth == 0 {
				return i + 2
			}
			i++
		}
	}
	return -1
}

// dollarTag is the mark $tag$ with which a text begins, "" where it begins with none.
func dollarTag(text string) string {
	for i := 1; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '$':
			return text[:i+1]
		case !isWordRune(r) || i == 1 && r >= '0' && r <= '9':
			return ""
		}
		i += n
	}
	return ""
}

// joined tells whether what stands before belongs to a sign or a point: a - 1 is a difference, a.1 a path.
func joined(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	return at > 0 && (isWordRune(before) || strings.ContainsRune(`)]"$`, before) || text[at] == '.' && before == '.')
}

// numberEnd is the place after a number, also one in hexadecimal or with an exponent.
func numberEnd(text string, at int) int {
	end := at + 1
	for end < len(text) {
		r, n := utf8.DecodeRuneInString(text[end:])
		sign := (r == '-' || r == '+') && text[end-1]|0x20 == 'e' && end+1 < len(text) && isDigit(text[end+1])
		if !isWordRune(r) && r != '.' && !sign {
			break
		}
		end += n
	}
	return end
}
