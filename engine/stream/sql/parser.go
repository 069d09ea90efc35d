package sql

import (
	"strconv"
	"strings"
)

const (
	// maxDepth is how deep parentheses, subqueries and operators may be nested.
	maxDepth = 200
	// maxStatements is how many statements are carried out together.
	maxStatements = 1000
	// maxParts is how many expressions a statement may have in all.
	maxParts = 10_000
)

// Parsed is a statement with the part of the source that it is.
type Parsed struct {
	Statement Statement
	// Text is the statement without the semicolon; At is the byte of the source where it begins.
	Text string
	At   int
}

// Parse reads statements that semicolons divide. All of them are well-formed, or there is an error, which is an *Error.
func Parse(source string) ([]Parsed, error) { return parse(source, (*parser).statement) }

// parse reads texts that one reads, divided by semicolons.
func parse(source string, one func(*parser) (Statement, error)) ([]Parsed, error) {
	if len(source) > MaxSource {
		return nil, Errorf(ParserError, source, 0, "", "statements of %d bytes are too long, at most %d are read at once",
			len(source), MaxSource)
	}
	p := &parser{lexer: lexer{source: source}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var all []Parsed
	for {
		for p.is(";") {
			if err := p.advance(); err != nil {
				return nil, err
			}
		}
		if p.token.kind == endOfInput {
			return all, nil
		}
		begin := p.token.at
		if len(all) == maxStatements {
			return nil, Errorf(ParserError, source, begin, "give them in several groups",
				"at most %d statements are carried out together", maxStatements)
		}
		p.parts = 0
		s, err := one(p)
		if err != nil {
			return nil, err
		}
		all = append(all, Parsed{Statement: s, Text: strings.TrimSpace(source[begin:p.last]), At: begin})
		if p.token.kind != endOfInput && !p.is(";") {
			return nil, p.unexpected("a semicolon or the end of the statement")
		}
	}
}

// parser holds the token that is looked at. last is where the one before it ended.
type parser struct {
	lexer
	token token
	last  int
	depth int
	parts int
}

func (p *parser) advance() error {
	p.last = p.token.end
	t, err := p.next()
	p.token = t
	return err
}

// rewind goes back to a token that was looked at before.
func (p *parser) rewind(t token) { p.token, p.at = t, t.end }

func (p *parser) is(symbols ...string) bool {
	for _, s := range symbols {
		if p.token.kind == symbol && p.token.text == s {
			return true
		}
	}
	return false
}

// at reports whether the token is one of the keywords, which are in upper case.
func (p *parser) keyword(words ...string) bool {
	if p.token.kind != word {
		return false
	}
	for _, w := range words {
		if strings.EqualFold(p.token.text, w) {
			return true
		}
	}
	return false
}

// accept goes over a keyword or symbol if it is there.
func (p *parser) accept(what string) (bool, error) {
	if p.is(what) || p.keyword(what) {
		return true, p.advance()
	}
	return false, nil
}

// expect goes over a keyword or symbol, which has to be there.
func (p *parser) expect(what string) error {
	ok, err := p.accept(what)
	if err == nil && !ok {
		return p.unexpected(what)
	}
	return err
}

// oneOf returns which of the keywords is there, and goes over it.
func (p *parser) oneOf(words ...string) (string, error) {
	for _, w := range words {
		if p.keyword(w) {
			return w, p.advance()
		}
	}
	return "", p.unexpected(words...)
}

// unexpected is the error of a token in place of what would have been right.
func (p *parser) unexpected(wanted ...string) error {
	list := strings.Join(wanted, ", ")
	if n := len(wanted); n > 1 {
		list = strings.Join(wanted[:n-1], ", ") + " or " + wanted[n-1]
	}
	hint := ""
	switch {
	case p.token.kind == word:
		hint = Suggest(p.token.text, wanted...)
	case p.is("-") && p.last == p.token.at:
		hint = "a name with - in it stands in quotes, as in `a-b`"
	}
	return p.errorf(p.token.at, hint, "expected %s, found %s", list, p.found())
}

// found is the token, for messages.
func (p *parser) found() string {
	t := p.token
	switch {
	case t.kind == endOfInput:
		return "the end"
	case len(t.text) > 40:
		return "a " + map[tokenKind]string{word: "name", quotedName: "name", number: "number", text: "text"}[t.kind] +
			" of " + strconv.Itoa(len(t.text)) + " bytes"
	case t.kind == text:
		return "'" + t.text + "'"
	}
	return t.text
}

func (p *parser) statement() (Statement, error) {
	at := p.token.at
	if p.keyword("UPDATE", "ALTER", "INSERT", "DELETE") {
		return nil, p.errorf(at, "DROP it, then CREATE it anew", "nothing in the catalog is changed in place: there is no %s",
			strings.ToUpper(p.token.text))
	}
	first, err := p.oneOf("SELECT", "CREATE", "DROP", "GET", "SHOW", "EXPLAIN", "WATCH", "RESUME")
	if err != nil {
		return nil, err
	}
	switch first {
	case "SELECT":
		return p.continuous(Name{}, at)
	case "CREATE":
		return p.create()
	case "DROP":
		return p.drop(at)
	case "RESUME":
		return p.resume(at)
	case "EXPLAIN":
		if p.keyword("CREATE") {
			s, err := p.createAfter()
			q, ok := s.(*CreateQuery)
			if err == nil && !ok {
				err = p.errorf(at, "EXPLAIN SELECT …", "only a query can be explained")
			}
			return &Explain{Query: q}, err
		}
		begin := p.token.at
		if err := p.expect("SELECT"); err != nil {
			return nil, err
		}
		q, err := p.continuousOr(Name{}, begin, false)
		return &Explain{Query: q}, err
	case "WATCH":
		if err := p.expect("SELECT"); err != nil {
			return nil, err
		}
		s, err := p.selectAfter(at)
		if err == nil && s.Into.Text != "" {
			err = p.errorf(s.Into.At, "leave INTO out", "WATCH sends its rows to the client")
		}
		return &Watch{Select: s, At: at}, err
	}
	return p.get(at)
}

func (p *parser) createAfter() (Statement, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	return p.create()
}

// continuous reads a SELECT that has to end in INTO sink; SELECT is behind it already.
func (p *parser) continuous(name Name, at int) (Statement, error) {
	return p.continuousOr(name, at, true)
}

func (p *parser) continuousOr(name Name, at int, into bool) (*CreateQuery, error) {
	s, err := p.selectAfter(at)
	if err != nil {
		return nil, err
	}
	if into && s.Into.Text == "" {
		return nil, p.errorf(p.token.at, "add INTO and the name of a sink", "expected INTO, found %s", p.found())
	}
	return &CreateQuery{Name: name, Select: s, Source: p.source[at:p.last], At: at}, nil
}

// ParseSelect reads one SELECT without INTO, which a semicolon may follow. The error is a *Error, a ParserError.
func ParseSelect(source string) (*Select, error) {
	list, err := parse(source, func(p *parser) (Statement, error) {
		at := p.token.at
		if err := p.expect("SELECT"); err != nil {
			return nil, err
		}
		return p.continuousOr(Name{}, at, false)
	})
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, Errorf(ParserError, source, len(source), "write SELECT … FROM …", "there is no statement")
	case len(list) > 1:
		return nil, Errorf(ParserError, source, list[1].At, "leave out what follows the first",
			"there is more than one statement")
	}
	q, _ := list[0].Statement.(*CreateQuery) // nothing else was read
	if at := q.Select.Into; at.Text != "" {
		return nil, Errorf(ParserError, source, at.At, "leave INTO out", "this SELECT names no sink")
	}
	return q.Select, nil
}

// name reads a name. Keywords can be names where only a name can stand.
func (p *parser) name(what string) (Name, error) {
	if p.token.kind != word && p.token.kind != quotedName {
		return Name{}, p.unexpected(what)
	}
	n := Name{Text: p.token.text, At: p.token.at}
	return n, p.advance()
}

// nameOrText reads what may also stand in quotes, as hosts do.
func (p *parser) nameOrText(what string) (Name, error) {
	if p.token.kind == text || p.token.kind == number {
		n := Name{Text: p.token.text, At: p.token.at}
		if n.Text == "" || len(n.Text) > maxName {
			return n, p.errorf(n.At, "", "%s has 1 to %d bytes", what, maxName)
		}
		return n, p.advance()
	}
	return p.name(what)
}

// entity reads what is created, dropped or shown, in the singular or plural.
func (p *parser) entity() (Entity, error) {
	plural := func(w string) bool { return p.keyword(w, w+"S") }
	switch {
	case plural("WORKER"):
		return Worker, p.advance()
	case plural("SINK"):
		return Sink, p.advance()
	case p.keyword("QUERY", "QUERIES"):
		return Query, p.advance()
	case p.keyword("LOGICAL", "PHYSICAL"):
		e := LogicalSource
		if p.keyword("PHYSICAL") {
			e = PhysicalSource
		}
		if err := p.advance(); err != nil {
			return "", err
		}
		if !plural("SOURCE") {
			return "", p.unexpected("SOURCE")
		}
		return e, p.advance()
	}
	return "", p.unexpected("LOGICAL SOURCE", "PHYSICAL SOURCE", "SINK", "QUERY", "WORKER")
}

// orReplace goes over OR REPLACE, if it is there.
func (p *parser) orReplace() (Existing, error) {
	if is, err := p.accept("OR"); err != nil || !is {
		return RefuseExisting, err
	}
	return ReplaceExisting, p.expect("REPLACE")
}

// condition goes over IF with the words behind it, if they are there; IF alone may be a name.
func (p *parser) condition(words ...string) (there bool, err error) {
	begin := p.token
	if !p.keyword("IF") {
		return false, nil
	}
	for _, w := range append([]string{"IF"}, words...) {
		if !p.keyword(w) {
			p.rewind(begin)
			return false, nil
		}
		if err := p.advance(); err != nil {
			return false, err
		}
	}
	return true, nil
}

// existing goes over IF NOT EXISTS, if it is there, where OR REPLACE was not.
func (p *parser) existing(before Existing) (Existing, error) {
	at := p.token.at
	switch is, err := p.condition("NOT", "EXISTS"); {
	case err != nil || !is:
		return before, err
	case before != RefuseExisting:
		return before, p.errorf(at, "leave one of them out", "OR REPLACE and IF NOT EXISTS contradict each other")
	}
	return KeepExisting, nil
}

func (p *parser) create() (Statement, error) {
	existing, err := p.orReplace()
	if err != nil {
		return nil, err
	}
	e, err := p.entity()
	if err != nil {
		return nil, err
	}
	if existing, err = p.existing(existing); err != nil {
		return nil, err
	}
	switch e {
	case Worker:
		c := &CreateWorker{Existing: existing}
		if c.Host, err = p.nameOrText("a host"); err == nil {
			c.Settings, err = p.settings()
		}
		return c, err
	case LogicalSource:
		c := &CreateLogicalSource{Existing: existing}
		if c.Name, err = p.name("a name"); err == nil {
			c.Columns, err = p.schema()
		}
		return c, err
	case PhysicalSource:
		c := &CreatePhysicalSource{Existing: existing}
		if err = p.expect("FOR"); err != nil {
			return nil, err
		}
		if c.Logical, err = p.name("the name of a logical source"); err != nil {
			return nil, err
		}
		c.Type, c.Placement, c.Settings, err = p.typed()
		return c, err
	case Sink:
		c := &CreateSink{Existing: existing}
		if c.Name, err = p.name("a name"); err != nil {
			return nil, err
		}
		if p.is("(") {
			if c.Columns, err = p.schema(); err != nil {
				return nil, err
			}
		}
		c.Type, c.Placement, c.Settings, err = p.typed()
		return c, err
	}
	return p.createQuery(existing)
}

// createQuery reads [name] AS SELECT ….
func (p *parser) createQuery(existing Existing) (Statement, error) {
	var err error
	var name Name
	if !p.keyword("AS") {
		if name, err = p.name("a name or AS"); err != nil {
			return nil, err
		}
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	at := p.token.at
	if err := p.expect("SELECT"); err != nil {
		return nil, err
	}
	q, err := p.continuousOr(name, at, true)
	if err != nil {
		return nil, err
	}
	if q.Existing = existing; existing != RefuseExisting && name.Text == "" {
		return nil, p.errorf(at, "give it a name", "only a query with a name is there already, or is replaced")
	}
	return q, nil
}

// typed reads TYPE type, ON worker and SET(…), in any order behind TYPE.
func (p *parser) typed() (kind, placement Name, settings []Setting, err error) {
	for range 2 {
		if p.keyword("ON") {
			if placement, err = p.placement(); err != nil {
				return kind, placement, nil, err
			}
		}
		if kind.Text == "" {
			if err = p.expect("TYPE"); err != nil {
				return kind, placement, nil, err
			}
			if kind, err = p.name("a type"); err != nil {
				return kind, placement, nil, err
			}
		}
	}
	if settings, err = p.settings(); err == nil && p.keyword("ON") && placement.Text == "" {
		placement, err = p.placement()
	}
	return kind, placement, settings, err
}

// placement reads ON [NODE|WORKER] host.
func (p *parser) placement() (Name, error) {
	if err := p.advance(); err != nil {
		return Name{}, err
	}
	if p.keyword("NODE", "WORKER") {
		if err := p.advance(); err != nil {
			return Name{}, err
		}
	}
	return p.nameOrText("a worker")
}

func (p *parser) drop(at int) (Statement, error) {
	e, err := p.entity()
	if err != nil {
		return nil, err
	}
	if _, err := p.condition("EXISTS"); err != nil {
		return nil, err
	}
	d := &Drop{Entity: e, At: at}
	if d.Name, err = p.nameOrText("a name"); err != nil {
		return nil, err
	}
	if e != Query {
		return d, nil
	}
	if _, err = p.accept("MODE"); err != nil {
		return nil, err
	}
	if p.token.kind == endOfInput || p.is(";") {
		return d, nil
	}
	mode, err := p.oneOf("GRACEFUL", "FORCEFUL", "SOFT", "HARD")
	d.Graceful = mode == "GRACEFUL" || mode == "SOFT"
	return d, err
}

func (p *parser) resume(at int) (Statement, error) {
	if err := p.expect("QUERY"); err != nil {
		return nil, err
	}
	name, err := p.nameOrText("a name")
	return &Resume{Name: name, At: at}, err
}

// get reads what is shown, and what narrows it down.
func (p *parser) get(at int) (Statement, error) {
	e, err := p.entity()
	if err != nil {
		return nil, err
	}
	g := &Get{Entity: e, At: at}
	if (p.token.kind == text || p.token.kind == quotedName || p.token.kind == number) ||
		p.token.kind == word && !p.keyword("FOR", "ON", "BY", "WITH", "TYPE", "STATE", "CAPACITY") {
		if g.Name, err = p.nameOrText("a name"); err != nil {
			return nil, err
		}
	}
	for p.token.kind != endOfInput && !p.is(";") {
		if err := p.narrow(g); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// narrow reads one of the arguments of GET.
func (p *parser) narrow(g *Get) error {
	if p.keyword("BY", "WITH") {
		if err := p.advance(); err != nil {
			return err
		}
	}
	arguments := map[Entity][]string{
		LogicalSource:  {"NAME"},
		PhysicalSource: {"FOR", "ON", "TYPE"},
		Sink:           {"NAME", "ON", "TYPE"},
		Query:          {"ID", "STATE", "ON"},
		Worker:         {"HOST_NAME", "STATE", "CAPACITY"},
	}[g.Entity]
	which, err := p.oneOf(arguments...)
	if err != nil {
		return err
	}
	skip := map[string][]string{"FOR": {"LOGICAL"}, "ON": {"NODE", "WORKER"}}[which]
	if p.keyword(skip...) {
		if err := p.advance(); err != nil {
			return err
		}
	}
	into := map[string]*Name{"NAME": &g.Name, "ID": &g.Name, "HOST_NAME": &g.Name, "FOR": &g.Logical, "ON": &g.Node,
		"TYPE": &g.Type, "STATE": &g.State}[which]
	if into != nil {
		*into, err = p.nameOrText("a value")
		return err
	}
	v, err := p.value()
	slots, ok := v.(int64)
	if err == nil && (!ok || slots < 0) {
		err = p.errorf(g.At, "CAPACITY 4", "CAPACITY is a whole number of free slots")
	}
	g.Capacity = &slots
	return err
}
