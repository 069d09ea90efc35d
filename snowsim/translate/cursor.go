package translate

import (
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Cursor stands at a token of a statement. Its methods panic with a failure, which
// Failing turns into an error.
type Cursor struct {
	// Text is the statement, Tokens what it consists of; the last one is End.
	Text   string
	Tokens []Token

	i     int // of the next token
	depth int // of parentheses and the like
}

// maxDepth bounds nesting, so that no text exhausts the stack.
const maxDepth = 200

// failure carries an error out of what reads a statement.
type failure struct{ err error }

// Fail ends the reading of the statement with an error.
func (c *Cursor) Fail(err error) { panic(failure{err}) }

// Failf is Fail with a compilation error, 001003.
func (c *Cursor) Failf(format string, args ...any) {
	c.Fail(protocol.CompilationError("001003", "42000", format, args...))
}

// Unexpected fails at the current token.
func (c *Cursor) Unexpected() {
	t := c.Peek()
	shown := t.Text
	if t.end > t.start {
		shown = c.Text[t.start:t.end]
	}
	c.Fail(syntaxAt(c.Text, t.start, "syntax error", shown))
}

// Peek returns the next token without reading it.
func (c *Cursor) Peek() Token { return c.Tokens[c.i] }

// PeekAt returns the token n after the next one; End when the statement ends before.
func (c *Cursor) PeekAt(n int) Token { return c.Tokens[min(c.i+n, len(c.Tokens)-1)] }

// Next reads a token.
func (c *Cursor) Next() Token {
	t := c.Tokens[c.i]
	if t.Kind != End {
		c.i++
	}
	return t
}

// Is reports whether the next tokens are these words.
func (c *Cursor) Is(words ...string) bool {
	for n, w := range words {
		if t := c.PeekAt(n); t.Kind != Word || t.Text != w {
			return false
		}
	}
	return true
}

// IsAny reports whether the next token is one of the words.
func (c *Cursor) IsAny(words ...string) bool {
	for _, w := range words {
		if c.Is(w) {
			return true
		}
	}
	return false
}

// Accept reads the words when they come next.
func (c *Cursor) Accept(words ...string) bool {
	if !c.Is(words...) {
		return false
	}
	c.i += len(words)
	return true
}

// Expect reads the words, and fails at the first that does not come.
func (c *Cursor) Expect(words ...string) {
	for _, w := range words {
		if !c.Accept(w) {
			c.Unexpected()
		}
	}
}

// IsSymbol reports whether the next token is the symbol.
func (c *Cursor) IsSymbol(s string) bool {
	t := c.Peek()
	return t.Kind == Symbol && t.Text == s
}

// AcceptSymbol reads the symbol when it comes next.
func (c *Cursor) AcceptSymbol(s string) bool {
	if !c.IsSymbol(s) {
		return false
	}
	c.i++
	return true
}

// ExpectSymbol reads the symbol, and fails when something else comes.
func (c *Cursor) ExpectSymbol(s string) {
	if !c.AcceptSymbol(s) {
		c.Unexpected()
	}
}

// End expects the end of the statement.
func (c *Cursor) End() {
	for c.AcceptSymbol(";") {
	}
	if c.Peek().Kind != End {
		c.Unexpected()
	}
}

// Nested runs f one level deeper.
func (c *Cursor) Nested(f func()) {
	if c.depth++; c.depth > maxDepth {
		c.Failf("The statement is nested more than %d levels deep.", maxDepth)
	}
	f()
	c.depth--
}

// IsIdentifier reports whether the next token can be an identifier.
func (c *Cursor) IsIdentifier() bool {
	t := c.Peek()
	return t.Kind == Quoted || t.Kind == Word && !Reserved[t.Text]
}

// List reads items with commas between and returns what they are in Postgres.
func (c *Cursor) List(item func() string) string {
	var b strings.Builder
	b.WriteString(item())
	for c.AcceptSymbol(",") {
		b.WriteString(", ")
		b.WriteString(item())
	}
	return b.String()
}

// InParentheses reads "( … )".
func (c *Cursor) InParentheses(f func()) {
	c.ExpectSymbol("(")
	c.Nested(f)
	c.ExpectSymbol(")")
}

// Source returns the text between two tokens.
func (c *Cursor) Source(from, to int) string {
	if to <= from {
		return ""
	}
	return c.Text[c.Tokens[from].start:c.Tokens[to-1].end]
}

// Reserved are the words that name nothing unless quoted, and that end an
// expression or a table when an alias could follow.
var Reserved = Words("ALL ALTER AND ANY AS BETWEEN BY CASE CAST CHECK COLUMN CONNECT CONSTRAINT CREATE CROSS " +
	"DELETE DISTINCT DROP ELSE EXCEPT EXISTS FETCH FOLLOWING FOR FROM FULL GRANT GROUP HAVING ILIKE IN INCREMENT INNER " +
	"INSERT INTERSECT INTO IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL OF OFFSET ON OR ORDER QUALIFY REGEXP " +
	"REVOKE RIGHT RLIKE ROW ROWS SAMPLE SELECT SET SOME START TABLE TABLESAMPLE THEN TO TRIGGER UNION UNIQUE " +
	"UPDATE USING VALUES WHEN WHENEVER WHERE WINDOW WITH END PIVOT UNPIVOT MATCH_RECOGNIZE")

// Words is a set of words, which are written with spaces between.
func Words(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// IsOneOf reports whether a token is one of the words, not in quotes.
func IsOneOf(t Token, words ...string) bool {
	if t.Kind == Word {
		for _, w := range words {
			if t.Text == w {
				return true
			}
		}
	}
	return false
}

// Advance moves on by n tokens, back when n is negative.
func (c *Cursor) Advance(n int) { c.i += n }

// At is the number of the next token.
func (c *Cursor) At() int { return c.i }

// Written is a token as it stands in the statement.
func (c *Cursor) Written(t Token) string { return c.Text[t.start:t.end] }

// Failing runs f and returns what the cursors and parsers within it failed with.
func Failing(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = failed.err
		}
	}()
	f()
	return nil
}

// NewCursor splits a statement into tokens and stands at the first.
func NewCursor(sql string) (*Cursor, error) {
	tokens, err := lex(sql)
	if err != nil {
		return nil, err
	}
	return &Cursor{Text: sql, Tokens: tokens}, nil
}
