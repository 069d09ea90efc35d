// Package sqltext reads a SQL statement as far as a workload needs it: where its
// named parameters (:name) stand, which verb it begins with, and that it is one
// statement. Strings, quoted identifiers, comments, dollar quotes and casts
// (::text) are passed over; whether the rest is SQL, the database decides.
package sqltext

import (
	"strconv"
	"strings"
)

// Error is what is wrong with a text, and where.
type Error struct {
	// Line and Column count from 1, columns in characters.
	Line, Column int
	Message      string
}

func (e *Error) Error() string {
	return "line " + strconv.Itoa(e.Line) + ", column " + strconv.Itoa(e.Column) + ": " + e.Message
}

// Statement is one statement.
type Statement struct {
	// Verb is the word that says what the statement does, in capitals: SELECT, INSERT … For WITH it
	// is the verb after the common table expressions.
	Verb string
	// Writes is true for INSERT, UPDATE, DELETE, MERGE and CALL, and where a common
	// table expression is one of the first four.
	Writes bool
	// Names are the parameters, in the order in which they appear first.
	Names []string
	// texts and params alternate: text, parameter, text … text.
	texts  []string
	params []int
}

// Numbered returns the SQL with $1, $2 … for its parameters, by the order of Names.
func (s *Statement) Numbered() string {
	order := make([]int, len(s.Names))
	for i := range order {
		order[i] = i
	}
	return s.NumberedBy(order)
}

// NumberedBy is Numbered with the numbers of another list: name i of Names is parameter order[i], from 0.
func (s *Statement) NumberedBy(order []int) string {
	var b strings.Builder
	for i, text := range s.texts {
		b.WriteString(text)
		if i < len(s.params) {
			b.WriteString("$" + strconv.Itoa(order[s.params[i]]+1))
		}
	}
	return b.String()
}

// Marked returns the SQL with a question mark for each parameter, and which of
// Names each one stands for.
func (s *Statement) Marked() (sql string, order []int) {
	return strings.Join(s.texts, "?"), s.params
}

// Positional rewrites SQL with $1 … $9 for its parameters into SQL with question
// marks, and says which parameter, from 0, each mark stands for. It is for texts of
// a plugin's own: a dollar and a digit inside of quotes is rewritten too.
func Positional(sql string) (marked string, order []int) {
	var b strings.Builder
	for i := 0; i < len(sql); i++ {
		if sql[i] == '$' && i+1 < len(sql) && sql[i+1] >= '1' && sql[i+1] <= '9' {
			order = append(order, int(sql[i+1]-'1'))
			b.WriteByte('?')
			i++
			continue
		}
		b.WriteByte(sql[i])
	}
	return b.String(), order
}

// verbs may be issued under load. WITH is told by its inner verb.
var verbs = map[string]bool{"SELECT": false, "VALUES": false, "TABLE": false, "INSERT": true, "UPDATE": true, "DELETE": true, "MERGE": true, "CALL": true}

// Parse reads one statement; semicolons at its end are dropped. The error is an *Error.
func Parse(sql string) (*Statement, error) {
	l := lexer{sql: sql, names: map[string]int{}}
	if err := l.run(); err != nil {
		return nil, err
	}
	return l.finish()
}

type lexer struct {
	sql string
	i   int
	// from is where the text since the last parameter begins; end is where the
	// statement ends: behind its last token.
	from, end int
	names     map[string]int
	s         Statement
	depth     int
	// first word, whether it was WITH, and the last token but blanks.
	first, firstAt int
	with           bool
	word           string
	last           byte
	ended          bool
}

func (l *lexer) fail(at int, says string) *Error {
	line := 1 + strings.Count(l.sql[:at], "\n")
	begin := strings.LastIndexByte(l.sql[:at], '\n') + 1
	return &Error{Line: line, Column: 1 + len([]rune(l.sql[begin:at])), Message: says}
}

func (l *lexer) run() error {
	for l.i < len(l.sql) {
		at, c := l.i, l.sql[l.i]
		if c == 0 {
			return l.fail(at, "a zero byte cannot be part of SQL")
		}
		if n, err := l.blank(); n || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if c == ';' {
			l.i++
			l.ended = l.ended || l.s.Verb != "" || l.word != ""
			continue
		}
		if l.ended {
			return l.fail(at, "a second statement begins here; one entry holds one statement")
		}
		if err := l.token(at, c); err != nil {
			return err
		}
		l.end = l.i
	}
	return nil
}

// blank passes over white space and comments.
func (l *lexer) blank() (bool, error) {
	rest := l.sql[l.i:]
	switch {
	case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
		l.i++
	case strings.HasPrefix(rest, "--"):
		n := strings.IndexByte(rest, '\n')
		if n < 0 {
			n = len(rest)
		}
		l.i += n
	case strings.HasPrefix(rest, "/*"):
		depth, i := 0, 0
		for {
			switch {
			case strings.HasPrefix(rest[i:], "/*"):
				depth++
				i += 2
			case strings.HasPrefix(rest[i:], "*/"):
				depth--
				i += 2
			case i >= len(rest):
				return false, l.fail(l.i, "this comment has no end")
			default:
				i++
			}
			if depth == 0 {
				break
			}
		}
		l.i += i
	default:
		return false, nil
	}
	return true, nil
}

func (l *lexer) token(at int, c byte) error {
	var err error
	switch {
	case c == '\'':
		err = l.quoted('\'', false, "this text has no closing quote")
	case c == '"':
		err = l.quoted('"', false, "this name has no closing quote")
	case (c == 'e' || c == 'E') && strings.HasPrefix(l.sql[at+1:], "'"):
		l.i++
		err = l.quoted('\'', true, "this text has no closing quote")
	case c == '$':
		err = l.dollar()
	case c == ':':
		l.colon()
		c = 'p'
	case wordByte(c):
		l.readWord(at)
		c = 'w'
	default:
		l.i++
		switch c {
		case '(':
			l.depth++
		case ')':
			l.depth--
		}
	}
	l.last = c
	return err
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func (l *lexer) quoted(quote byte, escapes bool, unclosed string) error {
	at := l.i
	for l.i++; l.i < len(l.sql); l.i++ {
		switch {
		case l.sql[l.i] == 0:
			return l.fail(l.i, "a zero byte cannot be part of SQL")
		case escapes && l.sql[l.i] == '\\':
			l.i++
		case l.sql[l.i] != quote:
		case l.i+1 < len(l.sql) && l.sql[l.i+1] == quote:
			l.i++
		default:
			l.i++
			return nil
		}
	}
	l.i = len(l.sql)
	return l.fail(at, unclosed)
}

// dollar passes over $tag$ … $tag$.
func (l *lexer) dollar() error {
	at := l.i
	end := at + 1
	for end < len(l.sql) && wordByte(l.sql[end]) {
		end++
	}
	if end < len(l.sql) && l.sql[end] == '$' && (end == at+1 || l.sql[at+1] < '0' || l.sql[at+1] > '9') {
		tag := l.sql[at : end+1]
		n := strings.Index(l.sql[end+1:], tag)
		if n < 0 {
			return l.fail(at, "this text has no closing "+tag)
		}
		if z := strings.IndexByte(l.sql[at:end+1+n], 0); z >= 0 {
			return l.fail(at+z, "a zero byte cannot be part of SQL")
		}
		l.i = end + 1 + n + len(tag)
		return nil
	}
	if end > at+1 {
		return l.fail(at, "parameters have names here: write :id instead of "+l.sql[at:end])
	}
	l.i++
	return nil
}

// colon reads a parameter, or passes over ::, := and a colon alone.
func (l *lexer) colon() {
	at := l.i
	l.i++
	if l.i < len(l.sql) && (l.sql[l.i] == ':' || l.sql[l.i] == '=') {
		l.i++
		return
	}
	end := l.i
	for end < len(l.sql) && wordByte(l.sql[end]) {
		end++
	}
	if end == l.i || l.sql[l.i] >= '0' && l.sql[l.i] <= '9' {
		return
	}
	name := l.sql[l.i:end]
	n, known := l.names[name]
	if !known {
		n = len(l.s.Names)
		l.names[name] = n
		l.s.Names = append(l.s.Names, name)
	}
	l.s.texts = append(l.s.texts, l.sql[l.from:at])
	l.s.params = append(l.s.params, n)
	l.i, l.from = end, end
}

func (l *lexer) readWord(at int) {
	for l.i < len(l.sql) && (wordByte(l.sql[l.i]) || l.sql[l.i] == '$') {
		l.i++
	}
	word := strings.ToUpper(l.sql[at:l.i])
	changes := word == "INSERT" || word == "UPDATE" || word == "DELETE" || word == "MERGE"
	switch _, verb := verbs[word]; {
	case l.word == "":
		l.firstAt, l.with = at, word == "WITH"
		if !l.with {
			l.s.Verb = word
		}
	case l.with && l.s.Verb == "" && l.depth == 0 && l.last == ')' && verb:
		l.s.Verb = word
	case l.with && changes && l.last == '(':
		l.s.Writes = true
	case word == "INTO" && l.depth == 0 && l.s.Verb == "SELECT" && l.first == 0:
		l.first = at
	}
	l.word = word
}

func (l *lexer) finish() (*Statement, error) {
	s := &l.s
	switch {
	case l.word == "":
		return nil, l.fail(0, "there is no statement")
	case l.with && s.Verb == "":
		return nil, l.fail(l.firstAt, "WITH has no SELECT, INSERT, UPDATE, DELETE or MERGE behind it")
	case l.first > 0:
		return nil, l.fail(l.first, "SELECT INTO makes a table; tables are made before a run")
	}
	writes, known := verbs[s.Verb]
	switch {
	case known:
	case s.Verb == "BEGIN" || s.Verb == "START" || s.Verb == "COMMIT" || s.Verb == "END" || s.Verb == "ROLLBACK" || s.Verb == "ABORT" || s.Verb == "SAVEPOINT" || s.Verb == "RELEASE":
		return nil, l.fail(l.firstAt, s.Verb+" is not written here: list the statements under transaction")
	default:
		return nil, l.fail(l.firstAt, "a statement that begins with "+s.Verb+" cannot be issued: SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE and CALL can, and WITH before them")
	}
	s.Writes = s.Writes || writes
	s.texts = append(s.texts, l.sql[l.from:l.end])
	s.texts[0] = strings.TrimLeft(s.texts[0], "; \t\r\n\f\v")
	return s, nil
}
