package translate

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// tokenKind is what a token is.
type tokenKind uint8

// What tokens are.
const (
	tokenEnd    tokenKind = iota
	tokenWord             // unquoted identifier or keyword; text is in upper case
	tokenQuoted           // "identifier"; text is without the quotes
	tokenText             // 'string'; text is its value
	tokenNumber           // 12, 1.5, 1e9
	tokenSymbol           // an operator or punctuation mark
	tokenMark             // ?, a bound value
)

// token is one token with the part of the source that it came from.
type token struct {
	kind       tokenKind
	text       string
	start, end int
}

// symbols with more than one character, longest first.
var symbols = []string{"::", "||", "<=", ">=", "<>", "!=", "=>", "->", ":="}

// lex splits a text into tokens; the last one is endOfText. Comments and white
// space are dropped. Errors are *plan.Error.
func lex(src string) ([]token, error) {
	if i := strings.IndexByte(src, 0); i >= 0 {
		return nil, syntaxAt(src, i, "parse error", "<NUL>")
	}
	if !utf8.ValidString(src) {
		return nil, protocol.SyntaxError("parse error: the text is not UTF-8.")
	}
	tokens := make([]token, 0, len(src)/4+2)
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
			continue
		case strings.HasPrefix(src[i:], "--") || strings.HasPrefix(src[i:], "//"):
			if j := strings.IndexByte(src[i:], '\n'); j >= 0 {
				i += j + 1
			} else {
				i = len(src)
			}
			continue
		case strings.HasPrefix(src[i:], "/*"):
			j := strings.Index(src[i+2:], "*/")
			if j < 0 {
				return nil, syntaxAt(src, i, "parse error", "/*")
			}
			i += j + 4
			continue
		case c == '\'':
			value, next, err := lexString(src, i)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, token{tokenText, value, i, next})
			i = next
			continue
		case c == '"':
			value, next, err := lexQuoted(src, i)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, token{tokenQuoted, value, i, next})
			i = next
			continue
		case c == '?':
			tokens = append(tokens, token{tokenMark, "?", i, i + 1})
			i++
			continue
		case isDigit(c) || c == '.' && i+1 < len(src) && isDigit(src[i+1]):
			j := i + numberLength(src[i:])
			tokens = append(tokens, token{tokenNumber, src[i:j], i, j})
			i = j
			continue
		}
		if n := wordLength(src[i:]); n > 0 {
			tokens = append(tokens, token{tokenWord, strings.ToUpper(src[i : i+n]), i, i + n})
			i += n
			continue
		}
		n := 0
		for _, s := range symbols {
			if strings.HasPrefix(src[i:], s) {
				n = len(s)
				break
			}
		}
		if n == 0 {
			if !strings.ContainsRune("()[]{},;.+-*/%=<>:&|^~!@", rune(c)) {
				r, _ := utf8.DecodeRuneInString(src[i:])
				return nil, syntaxAt(src, i, "syntax error", string(r))
			}
			n = 1
		}
		tokens = append(tokens, token{tokenSymbol, src[i : i+n], i, i + n})
		i += n
	}
	return append(tokens, token{tokenEnd, "<EOF>", len(src), len(src)}), nil
}

// isDigit reports whether a byte is a decimal digit.
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// wordLength returns how many bytes of s make an unquoted identifier. Digits
// count too; lex looks for numbers before words.
func wordLength(s string) int {
	for i, r := range s {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '$' && i > 0 {
			continue
		}
		return i
	}
	return len(s)
}

func numberLength(s string) int {
	i := 0
	digits := func() {
		for i < len(s) && isDigit(s[i]) {
			i++
		}
	}
	digits()
	if i < len(s) && s[i] == '.' {
		i++
		digits()
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			i = j
			digits()
		}
	}
	return i
}

// lexQuoted reads the quoted identifier that begins at src[start].
func lexQuoted(src string, start int) (value string, next int, err error) {
	var b strings.Builder
	for i := start + 1; i < len(src); i++ {
		if src[i] != '"' {
			b.WriteByte(src[i])
			continue
		}
		if i+1 < len(src) && src[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		if b.Len() == 0 {
			return "", 0, syntaxAt(src, start, "syntax error", `""`)
		}
		return b.String(), i + 1, nil
	}
	return "", 0, syntaxAt(src, start, "parse error", `"`)
}

// lexString reads the string constant that begins at src[start], with
// Snowflake's escapes: doubled quotes and backslash sequences.
func lexString(src string, start int) (value string, next int, err error) {
	var b strings.Builder
	for i := start + 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\'' && i+1 < len(src) && src[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case c == '\'':
			return b.String(), i + 1, nil
		case c == '\\' && i+1 < len(src):
			n, r, ok := escape(src[i+1:])
			if !ok {
				return "", 0, syntaxAt(src, i, "parse error", src[i:min(i+2, len(src))])
			}
			b.WriteRune(r)
			i += n
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, syntaxAt(src, start, "parse error", "'")
}

// escape decodes what follows a backslash: its length in bytes and the character.
func escape(s string) (length int, value rune, ok bool) {
	switch s[0] {
	case 'n':
		return 1, '\n', true
	case 't':
		return 1, '\t', true
	case 'r':
		return 1, '\r', true
	case 'b':
		return 1, '\b', true
	case 'f':
		return 1, '\f', true
	case 'x', 'u', '0':
		return 0, 0, false // characters by their codes are not simulated
	}
	r, n := utf8.DecodeRuneInString(s)
	return n, r, true
}

// syntaxAt is a syntax error at a byte of the text, with Snowflake's lines from
// 1 and positions from 0.
func syntaxAt(src string, at int, what, unexpected string) *protocol.Error {
	line, position := 1, 0
	for i, r := range src {
		if i >= at {
			break
		}
		position++
		if r == '\n' {
			line, position = line+1, 0
		}
	}
	return protocol.SyntaxError("%s line %d at position %d unexpected '%s'.", what, line, position, unexpected)
}

// split splits a text into its statements, without comments before and after
// them and without the semicolons between them.
func split(src string) ([]string, error) {
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	var statements []string
	first := -1
	for i, t := range tokens {
		if t.kind == tokenEnd || t.kind == tokenSymbol && t.text == ";" {
			if first >= 0 {
				statements = append(statements, src[tokens[first].start:tokens[i-1].end])
			}
			first = -1
		} else if first < 0 {
			first = i
		}
	}
	return statements, nil
}
