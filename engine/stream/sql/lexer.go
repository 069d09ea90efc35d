package sql

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a statement may take at most.
const (
	// MaxSource is the length of all statements that are read at once, in bytes.
	MaxSource = 4 << 20
	// maxLiteral is the length of a text in quotes, in bytes.
	maxLiteral = 1 << 20
	// maxName is the length of a name, in bytes.
	maxName = 256
)

type tokenKind uint8

const (
	endOfInput tokenKind = iota
	word                 // a name or keyword
	quotedName           // in back quotes or double quotes: never a keyword
	number
	text
	symbol
)

type token struct {
	kind tokenKind
	// text is the name, the number, the symbol, or what is between quotes with escapes resolved.
	text string
	at   int
	end  int
}

// lexer divides source into tokens.
type lexer struct {
	source string
	at     int
}

// symbols of two and of three characters; all others are of one.
var symbols = []string{"...", "<=", ">=", "<>", "!=", "==", "||", "::"}

// next returns the next token, or an error for what can be none.
func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	at := l.at
	if at >= len(l.source) {
		return token{kind: endOfInput, at: at, end: at}, nil
	}
	c := l.source[at]
	r, size := utf8.DecodeRuneInString(l.source[at:])
	switch {
	case c == '\'':
		return l.quoted(text, '\'')
	case c == '`' || c == '"':
		t, err := l.quoted(quotedName, c)
		if err == nil && (t.text == "" || len(t.text) > maxName) {
			err = l.errorf(at, "", "a name has 1 to %d bytes", maxName)
		}
		return t, err
	case c >= '0' && c <= '9', c == '.' && at+1 < len(l.source) && isDigit(l.source[at+1]):
		l.number()
		return token{kind: number, text: l.source[at:l.at], at: at, end: l.at}, nil
	case r == utf8.RuneError && size <= 1:
		return token{}, l.errorf(at, "statements are UTF-8", "the byte %#02x belongs to no character", c)
	case r == '_' || unicode.IsLetter(r):
		for l.at < len(l.source) {
			r, size := utf8.DecodeRuneInString(l.source[l.at:])
			if r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) {
				break
			}
			l.at += size
		}
		if l.at-at > maxName {
			return token{}, l.errorf(at, "", "a name has 1 to %d bytes", maxName)
		}
		return token{kind: word, text: l.source[at:l.at], at: at, end: l.at}, nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(l.source[at:], s) {
			l.at += len(s)
			return token{kind: symbol, text: s, at: at, end: l.at}, nil
		}
	}
	if strings.IndexByte("()[],;.=<>+-*/%:", c) < 0 {
		return token{}, l.errorf(at, "", "%q belongs to no statement", r)
	}
	l.at++
	return token{kind: symbol, text: l.source[at:l.at], at: at, end: l.at}, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// skip goes over blanks and comments.
func (l *lexer) skip() error {
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case unicode.IsSpace(r) || r == '\ufeff' && l.at == 0:
			l.at += size
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.at += n
		case strings.HasPrefix(rest, "/*"):
			if err := l.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// comment goes over a comment in /* */, which may hold others.
func (l *lexer) comment() error {
	begin, depth := l.at, 0
	for l.at < len(l.source) {
		switch rest := l.source[l.at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth, l.at = depth+1, l.at+2
		case strings.HasPrefix(rest, "*/"):
			depth, l.at = depth-1, l.at+2
			if depth == 0 {
				return nil
			}
		default:
			l.at++
		}
	}
	return l.errorf(begin, "close it with */", "this comment has no end")
}

// number goes over digits, a fraction and an exponent.
func (l *lexer) number() {
	digits := func() {
		for l.at < len(l.source) && isDigit(l.source[l.at]) {
			l.at++
		}
	}
	digits()
	if l.at < len(l.source) && l.source[l.at] == '.' {
		l.at++
		digits()
	}
	if l.at < len(l.source) && l.source[l.at]|0x20 == 'e' {
		sign := l.at + 1
		if sign < len(l.source) && (l.source[sign] == '+' || l.source[sign] == '-') {
			sign++
		}
		if sign < len(l.source) && isDigit(l.source[sign]) {
			l.at = sign
			digits()
		}
	}
}

// escapes of texts; a backslash before anything else is one.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\''}

// quoted reads what is between two quotes. A quote inside is doubled; texts know escapes too.
func (l *lexer) quoted(kind tokenKind, quote byte) (token, error) {
	begin := l.at
	var b strings.Builder
	for l.at++; l.at < len(l.source); l.at++ {
		c := l.source[l.at]
		switch {
		case c == quote && l.at+1 < len(l.source) && l.source[l.at+1] == quote:
			l.at++
		case c == quote:
			l.at++
			if !utf8.ValidString(b.String()) || strings.IndexByte(b.String(), 0) >= 0 {
				return token{}, l.errorf(begin, "statements are UTF-8, without zero bytes", "this is no text")
			}
			return token{kind: kind, text: b.String(), at: begin, end: l.at}, nil
		case c == '\\' && kind == text && l.at+1 < len(l.source):
			if e, ok := escapes[l.source[l.at+1]]; ok {
				l.at++
				c = e
			}
		}
		if b.Len() >= maxLiteral {
			return token{}, l.errorf(begin, "", "a text has at most %d bytes", maxLiteral)
		}
		b.WriteByte(c)
	}
	what := "text"
	if kind == quotedName {
		what = "name"
	}
	return token{}, l.errorf(begin, "close it with "+string(quote), "this %s has no end", what)
}

func (l *lexer) errorf(at int, hint, format string, args ...any) *Error {
	return Errorf(ParserError, l.source, at, hint, format, args...)
}
