package translate

import (
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// cursor is a position in the tokens of a statement. Its methods panic with a failure, which
// Failing turns into an error.
type cursor struct {
	// text is the statement, Tokens what it consists of; the last one is End.
	text   string
	tokens []token

	i     int // of the next token
	depth int // of parentheses and the like
}

// maxDepth bounds nesting, so that no text exhausts the stack.
const maxDepth = 200

// failure carries an error out of what reads a statement.
type failure struct{ err error }

// fail ends the reading of the statement with an error.
func (c *cursor) fail(err error) { panic(failure{err}) }

// failf is Fail with a compilation error, 001003.
func (c *cursor) failf(format string, args ...any) {
	c.fail(protocol.CompilationError("001003", "42000", format, args...))
}

// unexpected fails at the current token.
func (c *cursor) unexpected() {
	t := c.peek()
	shown := t.text
	if t.end > t.start {
		shown = c.text[t.start:t.end]
	}
	c.fail(syntaxAt(c.text, t.start, "syntax error", shown))
}

// peek returns the next token without reading it.
func (c *cursor) peek() token { return c.tokens[c.i] }

// peekAt returns the token n after the next one; End when the statement ends before.
func (c *cursor) peekAt(n int) token { return c.tokens[min(c.i+n, len(c.tokens)-1)] }

// next reads a token.
func (c *cursor) next() token {
	t := c.tokens[c.i]
	if t.kind != tokenEnd {
		c.i++
	}
	return t
}

// is reports whether the next tokens are these words.
func (c *cursor) is(words ...string) bool {
	for n, w := range words {
		if t := c.peekAt(n); t.kind != tokenWord || t.text != w {
			return false
		}
	}
	return true
}

// isAny reports whether the next token is one of the words.
func (c *cursor) isAny(words ...string) bool {
	for _, w := range words {
		if c.is(w) {
			return true
		}
	}
	return false
}

// accept reads the words when they come next.
func (c *cursor) accept(words ...string) bool {
	if !c.is(words...) {
		return false
	}
	c.i += len(words)
	return true
}

// expect reads the words, and fails at the first that does not come.
func (c *cursor) expect(words ...string) {
	for _, w := range words {
		if !c.accept(w) {
			c.unexpected()
		}
	}
}

// isSymbol reports whether the next token is the symbol.
func (c *cursor) isSymbol(s string) bool {
	t := c.peek()
	return t.kind == tokenSymbol && t.text == s
}

// acceptSymbol reads the symbol when it comes next.
func (c *cursor) acceptSymbol(s string) bool {
	if !c.isSymbol(s) {
		return false
	}
	c.i++
	return true
}

// expectSymbol reads the symbol, and fails when something else comes.
func (c *cursor) expectSymbol(s string) {
	if !c.acceptSymbol(s) {
		c.unexpected()
	}
}

// end expects the end of the statement.
func (c *cursor) end() {
	for c.acceptSymbol(";") {
	}
	if c.peek().kind != tokenEnd {
		c.unexpected()
	}
}

// nested runs f one level deeper.
func (c *cursor) nested(f func()) {
	if c.depth++; c.depth > maxDepth {
		c.failf("The statement is nested more than %d levels deep.", maxDepth)
	}
	f()
	c.depth--
}

// isIdentifier reports whether the next token can be an identifier.
func (c *cursor) isIdentifier() bool {
	t := c.peek()
	return t.kind == tokenQuoted || t.kind == tokenWord && !reservedWords[t.text]
}

// list reads items with commas between and returns what they are in Postgres.
func (c *cursor) list(item func() string) string {
	var b strings.Builder
	b.WriteString(item())
	for c.acceptSymbol(",") {
		b.WriteString(", ")
		b.WriteString(item())
	}
	return b.String()
}

// inParentheses reads "( … )".
func (c *cursor) inParentheses(f func()) {
	c.expectSymbol("(")
	c.nested(f)
	c.expectSymbol(")")
}

// source returns the text between two tokens.
func (c *cursor) source(from, to int) string {
	if to <= from {
		return ""
	}
	return c.text[c.tokens[from].start:c.tokens[to-1].end]
}

// reservedWords are the words that name nothing unless quoted, and that end an
// expression or a table when an alias could follow.
var reservedWords = wordSet("ALL ALTER AND ANY AS BETWEEN BY CASE CAST CHECK COLUMN CONNECT CONSTRAINT CREATE CROSS " +
	"DELETE DISTINCT DROP ELSE EXCEPT EXISTS FETCH FOLLOWING FOR FROM FULL GRANT GROUP HAVING ILIKE IN INCREMENT INNER " +
	"INSERT INTERSECT INTO IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL OF OFFSET ON OR ORDER QUALIFY REGEXP " +
	"REVOKE RIGHT RLIKE ROW ROWS SAMPLE SELECT SET SOME START TABLE TABLESAMPLE THEN TO TRIGGER UNION UNIQUE " +
	"UPDATE USING VALUES WHEN WHENEVER WHERE WINDOW WITH END PIVOT UNPIVOT MATCH_RECOGNIZE")

// wordSet is a set of words, which are written with spaces between.
func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// isOneOf reports whether a token is one of the words, not in quotes.
func isOneOf(t token, words ...string) bool {
	if t.kind == tokenWord {
		for _, w := range words {
			if t.text == w {
				return true
			}
		}
	}
	return false
}

// advance moves on by n tokens, back when n is negative.
func (c *cursor) advance(n int) { c.i += n }

// position is the number of the next token.
func (c *cursor) position() int { return c.i }

// sourceOf is the source text of a token.
func (c *cursor) sourceOf(t token) string { return c.text[t.start:t.end] }

// catchFailure runs f and returns what the cursors and parsers within it failed with.
func catchFailure(f func()) (err error) {
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

// newCursor splits a statement into tokens and starts at the first.
func newCursor(sql string) (*cursor, error) {
	tokens, err := lex(sql)
	if err != nil {
		return nil, err
	}
	return &cursor{text: sql, tokens: tokens}, nil
}
