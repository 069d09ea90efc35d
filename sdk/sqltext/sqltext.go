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
	// Rows is true for COPY … FROM STDIN: its values are no part of the text, but the fields of the rows that are sent.
	Rows bool
	// Prepares is the verb of what an EXECUTE executes, "" where the text does not prepare it.
	Prepares string
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
// several. A VALUES of the statement itself comes before one that stands in parentheses, of which there may be one.
func Row(sql string) (from, to int) {
	tokens, err := Tokens(sql, Postgres)
	if err != nil {
		return 0, 0
	}
	depth, inner, merge := 0, -1, false
	for i, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			depth--
		case depth == 0 && t.Upper() == "MERGE":
			merge = true // its VALUES are of what it inserts for each row of the other
		case t.Upper() != "VALUES" || i+1 == len(tokens) || !tokens[i+1].Is("("):
		case depth == 0 && merge:
		case depth == 0:
			return oneRow(tokens[i+1:])
		case inner >= 0:
			inner = len(tokens) // which of them is meant nobody knows
		default:
			inner = i
		}
	}
	if inner < 0 || inner == len(tokens) {
		return 0, 0
	}
	return oneRow(tokens[inner+1:])
}

// oneRow is where the row that tokens begin with stands, 0 where another one follows.
func oneRow(tokens []Token) (from, to int) {
	end := closing(tokens)
	if end < 0 || end+1 < len(tokens) && tokens[end+1].Is(",") {
		return 0, 0
	}
	return tokens[0].At, tokens[end].End
}

// closing is the place of the parenthesis that closes the one at the beginning, -1 where there is none.
func closing(tokens []Token) int {
	depth := 0
	for i, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// Named is a text of two statements: one that prepares a statement under a name, and an EXECUTE of it.
type Named struct {
	// Name is the statement's, as Postgres folds it.
	Name string
	// Setup is PREPARE name … AS …, Body what it prepares, Execute the EXECUTE.
	Setup, Body, Execute string
	bodyAt, executeAt    int
}

// Names reads PREPARE name … AS …; EXECUTE name …; ok is false for every other text.
func Names(sql string) (n Named, ok bool) {
	tokens, err := Tokens(sql, Postgres)
	if err != nil {
		return n, false
	}
	list := Statements(tokens)
	if len(list) != 2 || !preparesAndExecutes(list) {
		return n, false
	}
	setup, execute := list[0], list[1]
	name, _ := setup[1].Identifier()
	at := 2
	if setup[at].Is("(") {
		if at = closing(setup[at:]) + 3; at == 2 {
			return n, false
		}
	}
	if at+1 >= len(setup) || setup[at].Upper() != "AS" {
		return n, false
	}
	n = Named{Name: name, bodyAt: setup[at+1].At, executeAt: execute[0].At}
	end := setup[len(setup)-1].End
	n.Setup, n.Body = sql[setup[0].At:end], sql[n.bodyAt:end]
	n.Execute = sql[n.executeAt:execute[len(execute)-1].End]
	return n, true
}

// Plain reports that the values of the EXECUTE are its parameters $1, $2 … in their order, so that the body takes the
// same ones.
func (n Named) Plain() bool {
	tokens, err := Tokens(n.Execute, Postgres)
	if err != nil || len(tokens) == 2 {
		return err == nil
	}
	for i, t := range tokens[2:] {
		switch {
		case i%2 == 1 && t.Text == "$"+strconv.Itoa(i/2+1):
		case i == 0 && t.Is("("), i == len(tokens)-3 && t.Is(")"), i > 0 && i%2 == 0 && t.Is(","):
		default:
			return false
		}
	}
	return true
}

// Fields are the columns that COPY table (…) FROM STDIN names, as Postgres folds them; ok is false for every other
// text. Those of a COPY that names none are none.
func Fields(sql string) (columns []string, ok bool) {
	tokens, err := Tokens(sql, Postgres)
	if err != nil || len(tokens) < 4 || tokens[0].Upper() != "COPY" || tokens[1].Is("(") {
		return nil, false
	}
	at := 1
	for at < len(tokens) && !tokens[at].Is("(") && tokens[at].Upper() != "FROM" {
		at++
	}
	if at < len(tokens) && tokens[at].Is("(") {
		for at++; at < len(tokens) && !tokens[at].Is(")"); at++ {
			if name, isName := tokens[at].Identifier(); isName {
				columns = append(columns, name)
			}
		}
		at++
	}
	if at+1 >= len(tokens) || tokens[at].Upper() != "FROM" || tokens[at+1].Upper() != "STDIN" {
		return nil, false
	}
	return columns, true
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
	if n, ok := Names(sql); ok {
		return parseNamed(sql, n)
	}
	return parse(sql, false)
}

// parseNamed reads PREPARE …; EXECUTE …: what is executed is what was prepared.
func parseNamed(sql string, n Named) (*Statement, error) {
	body, err := parse(blanked(sql[:n.bodyAt])+n.Body, true)
	if err != nil {
		return nil, err
	}
	lexer := Lexer{SQL: sql}
	switch _, plain := verbs[body.Verb]; {
	case !plain || body.Verb == "CALL":
		return nil, lexer.fail(
			n.bodyAt,
			"PREPARE takes a SELECT, INSERT, UPDATE, DELETE, MERGE or VALUES, and not "+body.Verb,
		)
	case len(body.Names) > 0:
		return nil, lexer.fail(n.bodyAt, "what is prepared has parameters $1, $2 …; :"+body.Names[0]+
			" belongs to the EXECUTE")
	}
	s, err := parse(blanked(sql[:n.executeAt])+n.Execute, false)
	if err != nil {
		return nil, err
	}
	s.texts[0] = n.Setup + "; " + s.texts[0]
	s.Writes, s.Prepares = body.Writes, body.Verb
	return s, nil
}

// blanked is a text of blanks as long as another one, with its lines.
func blanked(text string) string {
	b := []byte(text)
	for i := range b {
		if b[i] != '\n' {
			b[i] = ' '
		}
	}
	return string(b)
}

// parse reads one statement; numbered says that its parameters are $1, $2 …
func parse(sql string, numbered bool) (*Statement, error) {
	p := parser{lexer: Lexer{SQL: sql}, sql: sql, names: map[string]int{}, numbered: numbered}
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
	numbered              bool // $1 is a parameter
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
		if p.numbered {
			break
		}
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
	case s.Verb == "COPY":
		return p.copies()
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

// copies says whether the statement is COPY … TO STDOUT, or COPY table (columns) FROM STDIN in the text format.
func (p *parser) copies() (known bool, err error) {
	fail := func(why string) (bool, error) { return false, p.lexer.fail(p.firstAt, why) }
	columns, in := Fields(p.sql)
	switch {
	case !in && (!p.out || p.program):
		return fail("COPY can be issued TO STDOUT and FROM STDIN alone: a file or a program would be the server's")
	case !in:
		return true, nil
	case len(columns) == 0:
		return fail("COPY FROM STDIN has to name its columns, COPY table (a, b) FROM STDIN: each is the name of the " +
			"parameter that has its values")
	case len(p.s.Names) > 0:
		return fail("COPY has no parameters in its text, :" + p.s.Names[0] + ": the columns that it names are their names")
	}
	if word := p.otherFormat(); word != "" {
		return fail("rows are sent in the text format, as COPY has it without options: leave " + word + " out")
	}
	p.s.Writes, p.s.Rows = true, true
	return true, nil
}

// otherFormat is an option of a COPY FROM STDIN that changes what its rows look like, "" where there is none.
func (p *parser) otherFormat() string {
	tokens, err := Tokens(p.sql, Postgres)
	if err != nil {
		return ""
	}
	behind := false
	for i, t := range tokens {
		switch {
		case t.Upper() == "STDIN":
			behind = true
		case t.Upper() == "WHERE":
			return ""
		case !behind || t.Upper() == "FORMAT" && i+1 < len(tokens) && tokens[i+1].oneOf("TEXT"):
		case t.oneOf("FORMAT", "CSV", "BINARY", "DELIMITER", "DELIMITERS", "NULL", "DEFAULT", "HEADER", "QUOTE", "ESCAPE",
			"ENCODING"):
			return t.Upper()
		}
	}
	return ""
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
			" cannot be issued: SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE, CALL, EXECUTE and COPY can, and WITH "+
			"before the first; in a transaction savepoints, cursors, LOCK and SET LOCAL too")
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
	list := Statements(tokens)
	if len(list) == 2 && dialect == Postgres && preparesAndExecutes(list) {
		list = list[1:] // each connection prepares it before its first operation
	}
	for _, s := range list {
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

// preparesAndExecutes reports a PREPARE of a name with an EXECUTE of the same.
func preparesAndExecutes(list [][]Token) bool {
	if !list[0][0].oneOf("PREPARE") || !list[1][0].oneOf("EXECUTE") || len(list[0]) < 4 || len(list[1]) < 2 {
		return false
	}
	name, ok := list[0][1].Identifier()
	again, _ := list[1][1].Identifier()
	return ok && name == again
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
