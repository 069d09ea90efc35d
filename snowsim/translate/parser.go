package translate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// maxDepth bounds nesting, so that no text exhausts the stack.
const maxDepth = 200

// failure carries an error out of the parser; translate recovers it.
type failure struct{ err error }

// parser reads one statement and writes Postgres SQL as it goes. Its methods
// panic with a failure.
type parser struct {
	ctx     context.Context
	src     string
	tokens  []token
	i       int
	t       *Translator
	session *plan.Session
	binds   []plan.Bind

	params []plan.Param
	marks  int // how many ? have been read
	depth  int
	inline bool // write binds as constants: Postgres takes no parameters in DDL
	// inDefault is set in a column's DEFAULT, which is evaluated for each row.
	inDefault bool
	volatile  bool // the plan holds what must not be remembered
	tables    []*table
	before    []step
	common    []string        // the common table expressions in reach
	equal     map[string]bool // columns that are compared with a value by =
	query     *scope          // the SELECT being read
	serial    int             // numbers what the translator names itself
}

// scope is what a SELECT's expressions may refer to. Its FROM comes after its
// list, so what depends on FROM is written as a marker and replaced at the end.
type scope struct {
	outer     *scope
	generator string // the alias of TABLE(GENERATOR(…)), quoted
	sources   []source
	aggregate bool
}

// source is one item of FROM, as far as its columns are known.
type source struct {
	alias string // as stored
	table *table // nil for everything but tables
}

// rowMarker stands for the number of the row, from 0, until FROM is known.
const rowMarker = "\x00ROW\x00"

func (p *parser) fail(err error) { panic(failure{err}) }

func (p *parser) failf(format string, args ...any) {
	p.fail(plan.CompilationError("001003", "42000", format, args...))
}

// unexpected fails at the current token.
func (p *parser) unexpected() {
	t := p.peek()
	shown := t.text
	if t.end > t.start {
		shown = p.src[t.start:t.end]
	}
	p.fail(syntaxAt(p.src, t.start, "syntax error", shown))
}

func (p *parser) peek() token { return p.tokens[p.i] }

func (p *parser) peekAt(n int) token { return p.tokens[min(p.i+n, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.i]
	if t.kind != endOfText {
		p.i++
	}
	return t
}

// is reports whether the next tokens are these words.
func (p *parser) is(words ...string) bool {
	for n, w := range words {
		if t := p.peekAt(n); t.kind != word || t.text != w {
			return false
		}
	}
	return true
}

// isAny reports whether the next token is one of the words.
func (p *parser) isAny(words ...string) bool {
	for _, w := range words {
		if p.is(w) {
			return true
		}
	}
	return false
}

// accept reads the words when they come next.
func (p *parser) accept(words ...string) bool {
	if !p.is(words...) {
		return false
	}
	p.i += len(words)
	return true
}

func (p *parser) expect(words ...string) {
	for _, w := range words {
		if !p.accept(w) {
			p.unexpected()
		}
	}
}

func (p *parser) isSymbol(s string) bool {
	t := p.peek()
	return t.kind == symbol && t.text == s
}

func (p *parser) acceptSymbol(s string) bool {
	if !p.isSymbol(s) {
		return false
	}
	p.i++
	return true
}

func (p *parser) expectSymbol(s string) {
	if !p.acceptSymbol(s) {
		p.unexpected()
	}
}

// end expects the end of the statement.
func (p *parser) end() {
	for p.acceptSymbol(";") {
	}
	if p.peek().kind != endOfText {
		p.unexpected()
	}
}

// nested runs f one level deeper.
func (p *parser) nested(f func()) {
	if p.depth++; p.depth > maxDepth {
		p.failf("The statement is nested more than %d levels deep.", maxDepth)
	}
	f()
	p.depth--
}

// reserved are the words that name nothing unless quoted, and that end an
// expression or a table when an alias could follow.
var reserved = setOf("ALL ALTER AND ANY AS BETWEEN BY CASE CAST CHECK COLUMN CONNECT CONSTRAINT CREATE CROSS " +
	"DELETE DISTINCT DROP ELSE EXCEPT EXISTS FETCH FOLLOWING FOR FROM FULL GRANT GROUP HAVING ILIKE IN INCREMENT INNER " +
	"INSERT INTERSECT INTO IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL OF OFFSET ON OR ORDER QUALIFY REGEXP " +
	"REVOKE RIGHT RLIKE ROW ROWS SAMPLE SELECT SET SOME START TABLE TABLESAMPLE THEN TO TRIGGER UNION UNIQUE " +
	"UPDATE USING VALUES WHEN WHENEVER WHERE WINDOW WITH END PIVOT UNPIVOT MATCH_RECOGNIZE")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// isIdentifier reports whether the next token can be an identifier.
func (p *parser) isIdentifier() bool {
	t := p.peek()
	return t.kind == quoted || t.kind == word && !reserved[t.text]
}

// identifier reads one identifier and returns it as stored.
func (p *parser) identifier() string {
	if !p.isIdentifier() {
		p.unexpected()
	}
	return p.anyIdentifier()
}

// anyIdentifier is identifier after AS or a dot, where reserved words are taken too.
func (p *parser) anyIdentifier() string {
	t := p.peek()
	if t.kind != quoted && t.kind != word {
		p.unexpected()
	}
	p.i++
	if err := checkIdentifier(t.text); err != nil {
		p.fail(err)
	}
	p.t.remember(t.text)
	return t.text
}

// parts reads a name with up to three parts, or IDENTIFIER('…').
func (p *parser) parts() []string {
	if p.is("IDENTIFIER") && p.peekAt(1).kind == symbol && p.peekAt(1).text == "(" {
		p.i += 2
		parts, err := parseName(p.constant())
		if err != nil {
			p.fail(err)
		}
		p.expectSymbol(")")
		for _, part := range parts {
			p.t.remember(part)
		}
		return parts
	}
	parts := []string{p.identifier()}
	for p.isSymbol(".") {
		p.i++
		if p.isSymbol(".") { // db..table is db.PUBLIC.table
			parts = append(parts, "PUBLIC")
			continue
		}
		parts = append(parts, p.anyIdentifier())
	}
	return parts
}

// name reads the name of an object in a schema and completes it from the session.
func (p *parser) name() name { return p.complete(p.parts()) }

func (p *parser) complete(parts []string) name {
	n := name{p.session.Database, p.session.Schema, parts[len(parts)-1]}
	switch len(parts) {
	case 1:
		if n.database == "" {
			p.fail(&plan.Error{Code: "090105", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current database. " +
				"Call 'USE DATABASE', or use a qualified name."})
		}
		if n.schema == "" {
			p.fail(&plan.Error{Code: "090106", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current schema. " +
				"Call 'USE SCHEMA', or use a qualified name."})
		}
	case 2:
		n.schema = parts[0]
		if n.database == "" {
			p.fail(&plan.Error{Code: "090105", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current database. " +
				"Call 'USE DATABASE', or use a qualified name."})
		}
	case 3:
		n.database, n.schema = parts[0], parts[1]
	default:
		p.failf("Invalid object name '%s'.", strings.Join(parts, "."))
	}
	return n
}

// constant reads a string constant or a bound text.
func (p *parser) constant() string {
	switch t := p.next(); t.kind {
	case text:
		return t.text
	case mark:
		return p.bound()
	}
	p.i--
	p.unexpected()
	return ""
}

// bound returns the value of the bind whose mark was just read, which becomes
// part of the plan.
func (p *parser) bound() string {
	i := p.marks
	p.marks++
	p.volatile = true
	if p.session.DescribeOnly && (i >= len(p.binds) || p.binds[i].Value == nil) {
		return "1" // any will do: nothing is executed
	}
	if i >= len(p.binds) || p.binds[i].Value == nil {
		p.failf("Bind variable ? not set.")
	}
	return *p.binds[i].Value
}

// integer reads an integer constant, bound or with a sign.
func (p *parser) integer() int64 {
	negative := p.acceptSymbol("-")
	var s string
	if t := p.next(); t.kind == number {
		s = t.text
	} else if t.kind == mark {
		s = p.bound()
	} else {
		p.i--
		p.unexpected()
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.failf("Invalid value [%s], expected an integer.", s)
	}
	if negative {
		n = -n
	}
	return n
}

// list reads items with commas between and returns what they are in Postgres.
func (p *parser) list(item func() string) string {
	var b strings.Builder
	b.WriteString(item())
	for p.acceptSymbol(",") {
		b.WriteString(", ")
		b.WriteString(item())
	}
	return b.String()
}

// inParentheses reads "( … )".
func (p *parser) inParentheses(f func()) {
	p.expectSymbol("(")
	p.nested(f)
	p.expectSymbol(")")
}

// fresh returns a name that no statement can have written unquoted.
func (p *parser) fresh(prefix string) string {
	p.serial++
	return fmt.Sprintf("%s~%d", prefix, p.serial)
}

// source returns the text between two tokens.
func (p *parser) source(from, to int) string {
	if to <= from {
		return ""
	}
	return p.src[p.tokens[from].start:p.tokens[to-1].end]
}
