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
	// InTransaction is true for what only has a meaning inside of a transaction: savepoints, cursors, locks, SET LOCAL.
	InTransaction bool
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

// Renamed returns the SQL with a suffix behind the name of each parameter.
func (s *Statement) Renamed(suffix string) string {
	var b strings.Builder
	for i, text := range s.texts {
		b.WriteString(text)
		if i < len(s.params) {
			b.WriteString(":" + s.Names[s.params[i]] + suffix)
		}
	}
	return b.String()
}

// Row is where the one row behind VALUES stands in a text, with its parentheses; to is 0 where there is none, or
// several.
func Row(sql string) (from, to int) {
	lexer, depth, values := Lexer{SQL: sql}, 0, false
	for {
		t, ok, err := lexer.Next()
		switch {
		case err != nil || !ok:
			return from, to
		case t.Is("("):
			if depth++; depth == 1 && values && to == 0 {
				from = t.At
			}
		case t.Is(")"):
			if depth--; depth == 0 && values && to == 0 {
				to = t.End
			}
		case t.Is(",") && depth == 0 && to > 0:
			return 0, 0
		case t.Kind == Word && depth == 0 && t.Upper() == "VALUES":
			values = true
		case to > 0 && t.Kind == Word:
			return from, to // what follows is ON CONFLICT or RETURNING
		}
	}
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
var verbs = map[string]bool{"SELECT": false, "VALUES": false, "TABLE": false, "INSERT": true, "UPDATE": true,
	"DELETE": true, "MERGE": true, "CALL": true}

// within may be issued inside of transactions; CLOSE, FETCH and MOVE are of cursors that DECLARE has opened there.
var within = map[string]bool{"SAVEPOINT": true, "RELEASE": true, "ROLLBACK": true, "SET": true, "LOCK": true,
	"DECLARE": true, "FETCH": true, "MOVE": true, "CLOSE": true}

// Parse reads one statement; semicolons at its end are dropped. The error is an *Error.
func Parse(sql string) (*Statement, error) {
	p := parser{lexer: Lexer{SQL: sql}, sql: sql, names: map[string]int{}}
	for {
		t, ok, err := p.lexer.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return p.finish()
		}
		if err := p.token(t); err != nil {
			return nil, err
		}
	}
}

type parser struct {
	lexer Lexer
	sql   string
	// from is where the text since the last parameter begins; end is where the
	// statement ends: behind its last token.
	from, end int
	names     map[string]int
	s         Statement
	depth     int
	// into is where SELECT INTO stands; firstAt the first word, with whether it was
	// WITH; afterOpen and afterClose say that the last token was a parenthesis.
	into, firstAt         int
	second                string // the word behind the first
	holds, program        bool   // WITH HOLD, PROGRAM
	out                   bool   // TO STDOUT
	with                  bool
	word                  string
	afterOpen, afterClose bool
	ended                 bool
}

func (p *parser) token(t Token) error {
	if t.Is(";") {
		p.ended = p.ended || p.s.Verb != "" || p.word != ""
		return nil
	}
	if p.ended {
		return p.lexer.fail(t.At, "a second statement begins here; one entry holds one statement")
	}
	switch t.Kind {
	case Param:
		return p.lexer.fail(t.At, "parameters have names here: write :id instead of "+t.Text)
	case Bind:
		p.bind(t)
	case Word:
		p.readWord(t)
	case Symbol:
		switch t.Text {
		case "(":
			p.depth++
		case ")":
			p.depth--
		}
	}
	p.afterOpen, p.afterClose = t.Is("("), t.Is(")")
	p.end = t.End
	return nil
}

func (p *parser) bind(t Token) {
	name := t.Text[1:]
	n, known := p.names[name]
	if !known {
		n = len(p.s.Names)
		p.names[name] = n
		p.s.Names = append(p.s.Names, name)
	}
	p.s.texts = append(p.s.texts, p.sql[p.from:t.At])
	p.s.params = append(p.s.params, n)
	p.from = t.End
}

func (p *parser) readWord(t Token) {
	word := t.Upper()
	changes := word == "INSERT" || word == "UPDATE" || word == "DELETE" || word == "MERGE"
	switch _, verb := verbs[word]; {
	case p.word == "":
		p.firstAt, p.with = t.At, word == "WITH"
		if !p.with {
			p.s.Verb = word
		}
	case p.with && p.s.Verb == "" && p.depth == 0 && p.afterClose && verb:
		p.s.Verb = word
	case p.with && changes && p.afterOpen:
		p.s.Writes = true
	case word == "INTO" && p.depth == 0 && p.s.Verb == "SELECT" && p.into == 0:
		p.into = t.At
	}
	switch {
	case p.word != "" && p.second == "":
		p.second = word
	case word == "HOLD" && p.word == "WITH":
		p.holds = true
	case word == "PROGRAM" && p.depth == 0:
		p.program = true
	case word == "STDOUT" && p.word == "TO" && p.depth == 0:
		p.out = true
	}
	p.out = p.out || word == "TO" && p.s.Verb == "ROLLBACK"
	p.word = word
}

// utility says whether the statement is one of those that are neither queries nor writes, or why it cannot be issued.
func (p *parser) utility() (known bool, err error) {
	s := &p.s
	fail := func(why string) (bool, error) { return false, p.lexer.fail(p.firstAt, why) }
	switch {
	case s.Verb == "EXECUTE":
		s.Writes = true // what was prepared may
		return true, nil
	case s.Verb == "COPY" && (!p.out || p.program):
		return fail("COPY can be issued TO STDOUT alone: a file or a program would be the server's, and rows go in with " +
			"INSERT and rows")
	case s.Verb == "COPY":
		return true, nil
	case !within[s.Verb] || s.Verb == "ROLLBACK" && !p.out:
		return false, nil
	case s.Verb == "SET" && p.second != "LOCAL" && p.second != "CONSTRAINTS":
		return fail("SET changes the session, which other operations share: SET LOCAL ends with its transaction")
	case s.Verb == "DECLARE" && p.holds:
		return fail("a cursor WITH HOLD outlives its transaction")
	}
	s.InTransaction = true
	return true, nil
}

func (p *parser) finish() (*Statement, error) {
	s := &p.s
	switch {
	case p.word == "":
		return nil, p.lexer.fail(0, "there is no statement")
	case p.with && s.Verb == "":
		return nil, p.lexer.fail(p.firstAt, "WITH has no SELECT, INSERT, UPDATE, DELETE or MERGE behind it")
	case p.into > 0:
		return nil, p.lexer.fail(p.into, "SELECT INTO makes a table; tables are made before a run")
	}
	writes, known := verbs[s.Verb]
	if !known {
		var err error
		if known, err = p.utility(); err != nil {
			return nil, err
		}
	}
	switch {
	case known:
	case transactionVerbs[s.Verb]:
		return nil, p.lexer.fail(p.firstAt, s.Verb+" is not written here: list the statements under transaction")
	default:
		return nil, p.lexer.fail(p.firstAt, "a statement that begins with "+s.Verb+
			" cannot be issued: SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE, CALL, EXECUTE and COPY … TO STDOUT can, "+
			"and WITH before the first; in a transaction savepoints, cursors, LOCK and SET LOCAL too")
	}
	s.Writes = s.Writes || writes
	s.texts = append(s.texts, p.sql[p.from:p.end])
	s.texts[0] = strings.TrimLeft(s.texts[0], "; \t\r\n\f\v")
	return s, nil
}

// transactionVerbs begin statements that open, end or divide a transaction.
var transactionVerbs = map[string]bool{"BEGIN": true, "START": true, "COMMIT": true, "END": true, "ROLLBACK": true,
	"ABORT": true, "SAVEPOINT": true, "RELEASE": true}

// dividesTransaction reports SAVEPOINT, RELEASE and ROLLBACK TO.
func dividesTransaction(s []Token) bool {
	switch s[0].Upper() {
	case "SAVEPOINT", "RELEASE":
		return true
	case "ROLLBACK":
		return len(s) > 1 && s[1].oneOf("TO") || len(s) > 2 && s[1].oneOf("WORK", "TRANSACTION") && s[2].oneOf("TO")
	}
	return false
}

// TransactionControl returns the words with which a text opens, ends or divides a
// transaction, in any of its statements, or "". A block of Snowflake's scripting
// (BEGIN … END) is none by itself; what stands in it is looked at.
func TransactionControl(tokens []Token, dialect Dialect) string {
	for _, s := range Statements(tokens) {
		for dialect == Snowflake && len(s) > 1 && s[0].Upper() == "BEGIN" && !s[1].oneOf("TRANSACTION", "WORK", "NAME") {
			s = s[1:]
		}
		switch verb := s[0].Upper(); {
		case dividesTransaction(s) && dialect == Postgres && len(Statements(tokens)) == 1:
			// It divides the transaction that its batch has opened, and is refused by the server outside of one.
		case verb == "END" && dialect == Snowflake:
			// A block's; sessions end their transactions with COMMIT.
		case transactionVerbs[verb]:
			return verb
		case verb == "PREPARE" && len(s) > 1 && s[1].oneOf("TRANSACTION"):
			return "PREPARE TRANSACTION"
		case verb == "SET" && len(s) > 1 &&
			(s[1].oneOf("TRANSACTION") || len(s) > 2 && s[1].oneOf("LOCAL", "SESSION") &&
				s[2].oneOf("TRANSACTION", "CHARACTERISTICS")):
			return "SET TRANSACTION"
		}
	}
	return ""
}

// SessionChange returns the words with which a text changes its session beyond the transaction it stands
// in, in any of its statements, or "": settings, roles, schemas and what is prepared. SET LOCAL and SET
// CONSTRAINTS end with their transaction, and so does set_config with true behind its value.
func SessionChange(tokens []Token, dialect Dialect) string {
	for _, s := range Statements(tokens) {
		for dialect == Snowflake && len(s) > 1 && s[0].Upper() == "BEGIN" {
			s = s[1:]
		}
		switch verb := s[0].Upper(); {
		case verb == "SET" && len(s) > 1 && !s[1].oneOf("LOCAL", "CONSTRAINTS"):
			if len(s) > 2 && s[1].oneOf("SESSION") {
				return "SET " + s[2].Text
			}
			return "SET " + s[1].Text
		case s[0].oneOf("RESET", "UNSET", "DISCARD", "USE", "PREPARE", "DEALLOCATE", "LISTEN", "UNLISTEN", "LOAD"):
			return verb
		case verb == "ALTER" && len(s) > 1 && s[1].oneOf("SESSION"):
			return "ALTER SESSION"
		}
	}
	for i, t := range tokens {
		name, ok := t.Identifier()
		if ok && i+1 < len(tokens) && tokens[i+1].Is("(") && strings.EqualFold(name, "set_config") &&
			!lastArgument(tokens[i+1:]).oneOf("TRUE") {
			return "set_config"
		}
	}
	return ""
}

// lastArgument is the token before the parenthesis that closes the one at the beginning.
func lastArgument(tokens []Token) Token {
	depth := 0
	for i, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			if depth--; depth == 0 {
				return tokens[i-1]
			}
		}
	}
	return Token{}
}

func (t Token) oneOf(words ...string) bool {
	upper := t.Upper()
	for _, w := range words {
		if upper == w {
			return true
		}
	}
	return false
}
