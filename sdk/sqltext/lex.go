package sqltext

import (
	"strings"
	"unicode/utf8"
)

// TokenKind says what a token is.
type TokenKind uint8

// The kinds of token. White space and comments are none.
const (
	// Word is a keyword, a name without quotes, or a number.
	Word TokenKind = iota
	// Name is a name in double quotes.
	Name
	// Text is a constant: '…', E'…', $tag$…$tag$.
	Text
	// Param is $1, $2 …
	Param
	// Bind is :name.
	Bind
	// Symbol is anything else: one character, or one of :: and :=.
	Symbol
)

// Token is a piece of SQL that means something.
type Token struct {
	Kind TokenKind
	// At and End are where it stands, in bytes.
	At, End int
	// Text is the token as it is written.
	Text string
}

// Upper is a word in capitals, "" for every other token.
func (t Token) Upper() string {
	if t.Kind != Word {
		return ""
	}
	return strings.ToUpper(t.Text)
}

// Is reports that the token is this symbol.
func (t Token) Is(symbol string) bool { return t.Kind == Symbol && t.Text == symbol }

// Identifier is the name that a word or a quoted name stands for, as Postgres folds it.
func (t Token) Identifier() (string, bool) {
	switch {
	case t.Kind == Name:
		return strings.ReplaceAll(t.Text[1:len(t.Text)-1], `""`, `"`), true
	case t.Kind == Word && (t.Text[0] < '0' || t.Text[0] > '9'):
		return strings.ToLower(t.Text), true
	}
	return "", false
}

// Call is the name of the function that is called by the token at i, as Postgres reads it: it stands before a
// parenthesis, behind the colon of an array's bounds too, a[1:f(x)].
func Call(tokens []Token, i int) (name string, ok bool) {
	if i+1 == len(tokens) || !tokens[i+1].Is("(") {
		return "", false
	}
	t := tokens[i]
	if t.Kind == Bind {
		t.Kind, t.Text = Word, t.Text[1:]
	}
	name, ok = t.Identifier()
	if len(name) > maxNameLength {
		name = strings.ToValidUTF8(name[:maxNameLength], "")
	}
	return name, ok
}

// maxNameLength is how many bytes of a name Postgres reads.
const maxNameLength = 63

// Escapes reports whether the name or text at i is spelled with escapes, U&"…" or U&'…': it does not stand for what is
// written there.
func Escapes(tokens []Token, i int) bool {
	t := tokens[i]
	return (t.Kind == Name || t.Kind == Text) && i > 1 && tokens[i-1].Is("&") && tokens[i-1].End == t.At &&
		tokens[i-2].End == tokens[i-1].At && strings.EqualFold(strings.TrimPrefix(tokens[i-2].Text, ":"), "U")
}

// Dialect is whose rules for comments and constants hold.
type Dialect uint8

// The dialects that are told apart.
const (
	Postgres Dialect = iota
	// Snowflake has backslashes in every text, // comments, comments that do not nest, and $$ only.
	Snowflake
)

// DialectOf is the dialect by the name that adapters have for it.
func DialectOf(name string) Dialect {
	if name == "snowflake" {
		return Snowflake
	}
	return Postgres
}

// Tokens reads all tokens of a text. The error is an *Error.
func Tokens(sql string, dialect Dialect) ([]Token, error) {
	l := Lexer{SQL: sql, Dialect: dialect}
	var list []Token
	for {
		t, ok, err := l.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return list, nil
		}
		list = append(list, t)
	}
}

// Statements splits tokens at semicolons; empty statements are left out. The bodies
// of blocks (BEGIN … END) are split too.
func Statements(tokens []Token) [][]Token {
	var list [][]Token
	from := 0
	for i, t := range tokens {
		if !t.Is(";") {
			continue
		}
		if i > from {
			list = append(list, tokens[from:i])
		}
		from = i + 1
	}
	if from < len(tokens) {
		list = append(list, tokens[from:])
	}
	return list
}

// Lexer reads SQL token by token. It is the only reader of SQL here: what is a
// comment or a constant for one check is so for all of them.
type Lexer struct {
	SQL     string
	Dialect Dialect
	i       int
}

func (l *Lexer) fail(at int, says string) *Error {
	line := 1 + strings.Count(l.SQL[:at], "\n")
	begin := strings.LastIndexByte(l.SQL[:at], '\n') + 1
	return &Error{Line: line, Column: 1 + utf8.RuneCountInString(l.SQL[begin:at]), Message: says}
}

// Next returns the next token; ok is false at the end. The error is an *Error.
func (l *Lexer) Next() (t Token, ok bool, err error) {
	for l.i < len(l.SQL) {
		at := l.i
		if l.SQL[at] == 0 {
			return t, false, l.fail(at, "a zero byte cannot be part of SQL")
		}
		blank, err := l.blank()
		if err != nil {
			return t, false, err
		}
		if blank {
			continue
		}
		kind, err := l.token(at, l.SQL[at])
		if err != nil {
			return t, false, err
		}
		return Token{Kind: kind, At: at, End: l.i, Text: l.SQL[at:l.i]}, true, nil
	}
	return t, false, nil
}

// blank passes over white space and comments.
func (l *Lexer) blank() (bool, error) {
	rest := l.SQL[l.i:]
	switch {
	case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
		l.i++
	case strings.HasPrefix(rest, "--"), l.Dialect == Snowflake && strings.HasPrefix(rest, "//"):
		n := strings.IndexAny(rest, "\r\n")
		if l.Dialect == Snowflake {
			n = strings.IndexByte(rest, '\n')
		}
		if n < 0 {
			n = len(rest)
		}
		l.i += n
	case strings.HasPrefix(rest, "/*"):
		n := l.comment(rest)
		if n < 0 {
			return false, l.fail(l.i, "this comment has no end")
		}
		l.i += n
	default:
		return false, nil
	}
	return true, nil
}

// comment is how long the comment is that rest begins with, -1 when it has no end.
func (l *Lexer) comment(rest string) int {
	depth := 0
	for i := 0; i < len(rest); {
		switch {
		case strings.HasPrefix(rest[i:], "/*"):
			if depth == 0 || l.Dialect == Postgres {
				depth++
			}
			i += 2
		case strings.HasPrefix(rest[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return -1
}

func (l *Lexer) token(at int, c byte) (TokenKind, error) {
	switch {
	case c == '\'':
		return Text, l.quoted('\'', l.Dialect == Snowflake, "this text has no closing quote")
	case c == '"':
		return Name, l.quoted('"', false, "this name has no closing quote")
	case (c == 'e' || c == 'E') && strings.HasPrefix(l.SQL[at+1:], "'"):
		l.i++
		return Text, l.escaped()
	case c == '$':
		return l.dollar()
	case c == ':':
		return l.colon(), nil
	case wordByte(c):
		for l.i < len(l.SQL) && (wordByte(l.SQL[l.i]) || l.SQL[l.i] == '$') {
			l.i++
		}
		return Word, nil
	}
	l.i++
	return Symbol, nil
}

// escaped reads E'…', with the parts of it that follow on other lines: backslashes escape in those, too.
func (l *Lexer) escaped() error {
	for {
		if err := l.quoted('\'', true, "this text has no closing quote"); err != nil {
			return err
		}
		n := continuation(l.SQL[l.i:])
		if n < 0 || l.Dialect != Postgres {
			return nil
		}
		l.i += n
	}
}

// continuation is how far the next part of a text is, -1 where there is none: white space and -- comments stand
// between, and an end of a line.
func continuation(rest string) int {
	lines := 0
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\n' || c == '\r':
			lines++
		case c == '\'' && lines > 0:
			return i
		case strings.HasPrefix(rest[i:], "--"):
			n := strings.IndexAny(rest[i:], "\r\n")
			if n < 0 {
				return -1
			}
			i += n - 1
		case strings.IndexByte(" \t\f\v", c) < 0:
			return -1
		}
	}
	return -1
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func (l *Lexer) quoted(quote byte, escapes bool, unclosed string) error {
	at := l.i
	for l.i++; l.i < len(l.SQL); l.i++ {
		switch {
		case l.SQL[l.i] == 0:
			return l.fail(l.i, "a zero byte cannot be part of SQL")
		case escapes && l.SQL[l.i] == '\\':
			l.i++
		case l.SQL[l.i] != quote:
		case l.i+1 < len(l.SQL) && l.SQL[l.i+1] == quote:
			l.i++
		default:
			l.i++
			return nil
		}
	}
	l.i = len(l.SQL)
	return l.fail(at, unclosed)
}

// dollar reads $tag$ … $tag$, $1, or a dollar alone.
func (l *Lexer) dollar() (TokenKind, error) {
	at := l.i
	end := at + 1
	for end < len(l.SQL) && wordByte(l.SQL[end]) {
		end++
	}
	tagged := end == at+1 || l.Dialect == Postgres && (l.SQL[at+1] < '0' || l.SQL[at+1] > '9')
	if end < len(l.SQL) && l.SQL[end] == '$' && tagged {
		tag := l.SQL[at : end+1]
		n := strings.Index(l.SQL[end+1:], tag)
		if n < 0 {
			return Text, l.fail(at, "this text has no closing "+tag)
		}
		if z := strings.IndexByte(l.SQL[at:end+1+n], 0); z >= 0 {
			return Text, l.fail(at+z, "a zero byte cannot be part of SQL")
		}
		l.i = end + 1 + n + len(tag)
		return Text, nil
	}
	if end == at+1 {
		l.i++
		return Symbol, nil
	}
	l.i = end
	return Param, nil
}

// colon reads a bind, or ::, := and a colon alone.
func (l *Lexer) colon() TokenKind {
	l.i++
	if l.i < len(l.SQL) && (l.SQL[l.i] == ':' || l.SQL[l.i] == '=') {
		l.i++
		return Symbol
	}
	end := l.i
	for end < len(l.SQL) && wordByte(l.SQL[end]) {
		end++
	}
	if end == l.i || l.SQL[l.i] >= '0' && l.SQL[l.i] <= '9' ||
		end == l.i+1 && strings.EqualFold(l.SQL[l.i:end], "e") && strings.HasPrefix(l.SQL[end:], "'") { // E'…'
		return Symbol
	}
	l.i = end
	return Bind
}
