package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/params"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// parsed are the parameters as they are written. Statements and Open read the
// same, so the indexes of batches agree with the statement list.
type parsed struct {
	statements []statement
	groups     []group
	usesTable  bool
}

// group is what is issued at once: a statement, or a transaction.
type group struct {
	weight      float64
	first, last int // statements[first:last]
	transaction bool
	rollback    float64 // percent
	shared      []*bind
}

type statement struct {
	id, kind, transaction string
	writes                bool
	columns               []string
	text                  *sqltext.Statement
	// names are those of its parameters: those of the text, or the columns of the rows of a COPY.
	names []string
	// binds are in the order of names.
	binds []*bind
	path  string
	// rows says of each bind to which of several rows it belongs, nil where there is one.
	rows []int
}

// maxStatements is what the host takes.
const maxStatements = 1024

var kinds = []string{sdk.PointLookup, sdk.RangeScan, sdk.Insert, sdk.Update, sdk.Delete, sdk.GenericSQL}

func readParams(doc *jsondoc.Value) (*parsed, error) {
	p := &parsed{}
	r := params.Read(doc)
	list := r.Value("statements")
	if err := r.Done(); err != nil {
		return nil, err
	}
	if list.Kind() != jsondoc.Array || list.Len() == 0 {
		return nil, errors.New("statements must be a list with at least one entry: {id, sql}")
	}
	ids := map[string]bool{}
	sum := 0.0
	for i := range list.Len() {
		g, err := p.readGroup(list.At(i), "statements["+strconv.Itoa(i)+"]", ids)
		if err != nil {
			return nil, err
		}
		sum += g.weight
		p.groups = append(p.groups, g)
	}
	if len(p.statements) > maxStatements {
		return nil, errors.New(strconv.Itoa(len(p.statements)) + " statements are more than the " +
			strconv.Itoa(maxStatements) + " that a run takes")
	}
	if sum == 0 {
		return nil, errors.New("all weights are 0: give at least one statement a weight above 0")
	}
	return p, nil
}

func (p *parsed) readGroup(doc *jsondoc.Value, path string, ids map[string]bool) (group, error) {
	g := group{weight: 1, first: len(p.statements)}
	r := params.At(doc, path)
	r.Float("weight", 0, 1_000_000, &g.weight)
	if !r.Has("transaction") {
		s, err := p.readStatement(r, path, ids, nil)
		if err != nil {
			return g, err
		}
		if err := s.standsAlone(); err != nil {
			return g, err
		}
		p.statements = append(p.statements, s)
		g.last = len(p.statements)
		return g, nil
	}
	g.transaction = true
	var id string
	r.Text("id", &id)
	r.Float("rollback_percent", 0, 100, &g.rollback)
	list := r.Value("transaction")
	shared, err := readBinds(r, path)
	if err != nil {
		return g, err
	}
	if err := r.Done(); err != nil {
		return g, err
	}
	if list.Kind() != jsondoc.Array || list.Len() == 0 || list.Len() > 256 {
		return g, errors.New(path + ".transaction must be a list of 1 to 256 statements")
	}
	used := map[*bind]bool{}
	for i := range list.Len() {
		inner := path + ".transaction[" + strconv.Itoa(i) + "]"
		s, err := p.readStatement(params.At(list.At(i), inner), inner, ids, shared)
		if err != nil {
			return g, err
		}
		for _, b := range s.binds {
			used[b] = true
			if err := p.resolveRef(b, &g, &s); err != nil {
				return g, err
			}
		}
		p.statements = append(p.statements, s)
	}
	for _, b := range shared {
		if !used[b] {
			return g, errors.New(b.path + " (:" + b.name + ") is used by no statement of the transaction")
		}
		if b.ref != "" {
			return g, errors.New(b.path + ".ref belongs to a statement of the transaction")
		}
	}
	g.last, g.shared = len(p.statements), shared
	p.statements[g.first].transaction = id
	return g, nil
}

// standsAlone refuses what belongs into a transaction.
func (s *statement) standsAlone() error {
	if s.text.InTransaction {
		return errors.New(s.path + ".sql (" + s.id + "): " + s.text.Verb + " has a meaning inside of a transaction alone: " +
			"list it under transaction")
	}
	for _, b := range s.binds {
		if b.ref != "" {
			return errors.New(b.path + " (:" + b.name + "): a ref belongs to a statement of a transaction, and " + s.id +
				" is in none")
		}
	}
	return nil
}

func (p *parsed) readStatement(r *params.Reader, path string, ids map[string]bool, shared []*bind) (statement, error) {
	s := statement{path: path}
	var sql string
	kind, rows := -1, int64(1)
	r.Int("rows", 1, 255, &rows)
	r.Text("id", &s.id)
	r.Text("sql", &sql)
	r.Choice("kind", kinds, &kind)
	r.Bool("writes", &s.writes)
	s.columns = r.Value("columns").Strings()
	message := r.Has("writes")
	binds, err := readBinds(r, path)
	if err == nil {
		err = r.Done()
	}
	switch {
	case err != nil:
		return s, err
	case s.id == "":
		return s, errors.New(path + ".id is missing: the statement's name in figures")
	case ids[s.id]:
		return s, errors.New(path + ".id: there are two statements " + strconv.Quote(s.id))
	}
	ids[s.id] = true
	if s.text, err = sqltext.Parse(sql); err != nil {
		return s, errors.New(path + ".sql (" + s.id + "): " + err.Error())
	}
	s.names = s.text.Names
	switch {
	case s.text.Rows:
		binds, err = s.copiedRows(sql, rows, binds, shared)
	case rows > 1:
		binds, err = s.severalRows(sql, rows, binds, shared)
	}
	if err != nil {
		return s, err
	}
	p.usesTable = p.usesTable || strings.Contains(sql, "{table}")
	if err := s.classify(kind, message); err != nil {
		return s, err
	}
	return s, s.match(binds, shared, p)
}

// rowSuffix tells the parameters of the rows apart.
func rowSuffix(row int64) string {
	if row == 0 {
		return ""
	}
	return "__" + strconv.FormatInt(row+1, 10)
}

// inRow adds the bind of a parameter's name in one of several rows, if there is one of the name.
func inRow(binds, shared []*bind, name string, row int64) []*bind {
	b := find(binds, name)
	if b == nil {
		b = find(shared, name)
	}
	if b == nil || row == 0 {
		return binds
	}
	return append(binds, &bind{name: name + rowSuffix(row), path: b.path, of: b})
}

// copiedRows makes the columns of a COPY the parameters of so many rows.
func (s *statement) copiedRows(sql string, rows int64, binds, shared []*bind) ([]*bind, error) {
	columns, _ := sqltext.Fields(sql)
	for row := range rows {
		for _, name := range columns {
			binds = inRow(binds, shared, name, row)
			s.names, s.rows = append(s.names, name+rowSuffix(row)), append(s.rows, int(row))
		}
	}
	return binds, nil
}

// severalRows writes the row of an INSERT … VALUES so many times, with values of its own for each.
func (s *statement) severalRows(sql string, rows int64, binds, shared []*bind) ([]*bind, error) {
	wrong := func(what string) error { return errors.New(s.path + ".rows (" + s.id + "): " + what) }
	from, to := sqltext.Row(sql)
	if s.text.Verb != "INSERT" && s.text.Verb != "MERGE" || to == 0 {
		return nil, wrong("is for an INSERT with one row behind VALUES, a MERGE with one, and COPY FROM STDIN")
	}
	one, err := sqltext.Parse("VALUES " + sql[from:to])
	if err != nil {
		return nil, wrong(err.Error())
	}
	row := map[string]int{}
	var text strings.Builder
	text.WriteString(sql[:to])
	for n := int64(1); n < rows; n++ {
		text.WriteString(", " + one.Renamed(rowSuffix(n))[len("VALUES "):])
		for _, name := range one.Names {
			binds = inRow(binds, shared, name, n)
			row[name+rowSuffix(n)] = int(n)
		}
	}
	text.WriteString(sql[to:])
	if s.text, err = sqltext.Parse(text.String()); err != nil {
		return nil, wrong(err.Error())
	}
	s.names = s.text.Names
	for _, name := range s.names {
		s.rows = append(s.rows, row[name])
	}
	return binds, nil
}

// classify decides what kind of operation the statement is.
func (s *statement) classify(kind int, message bool) error {
	output := s.writes
	s.writes, s.kind = s.text.Writes, sdk.GenericSQL
	verb := s.text.Verb
	if s.text.Prepares != "" {
		verb = s.text.Prepares
	}
	switch verb {
	case "INSERT":
		s.kind = sdk.Insert
	case "COPY":
		if s.text.Rows {
			s.kind = sdk.Insert
		}
	case "UPDATE":
		s.kind = sdk.Update
	case "DELETE":
		s.kind = sdk.Delete
	}
	if message {
		if s.writes && !output && verb != "CALL" && verb != "EXECUTE" {
			return errors.New(s.path + ".writes is false, and " + s.id + " is " + s.text.Verb)
		}
		s.writes = output
	}
	if kind < 0 {
		return nil
	}
	s.kind = kinds[kind]
	if writing := s.kind == sdk.Insert || s.kind == sdk.Update || s.kind == sdk.Delete; writing != s.writes &&
		s.kind != sdk.GenericSQL {
		does := map[bool]string{true: "writes", false: "only reads"}
		return errors.New(s.path + ".kind is " + s.kind + ", and " + s.id + " " + does[s.writes])
	}
	return nil
}

// match finds the bind of each name in the SQL.
func (s *statement) match(own, shared []*bind, p *parsed) error {
	for _, name := range s.names {
		b := find(own, name)
		if b == nil {
			b = find(shared, name)
		}
		if b == nil && s.text.Rows {
			return errors.New(
				s.path + ".binds: COPY names the column " + name + ", and " + s.id + " has no bind of that name. " +
					"Add {name: " + name + ", generator: …}",
			)
		}
		if b == nil {
			return errors.New(s.path + ".binds: :" + name + " in the SQL of " + s.id + " has no bind. Add {name: " + name +
				", generator: …}")
		}
		if b.of != nil {
			b = b.of
		}
		p.usesTable = p.usesTable || b.source == fromKey || b.source == fromNewKey || b.source == fromRow
		s.binds = append(s.binds, b)
	}
	for _, b := range own {
		if b.of == nil && find(s.binds, b.name) == nil {
			if s.text.Rows {
				return errors.New(b.path + ": COPY does not name a column " + b.name + " in the SQL of " + s.id)
			}
			return errors.New(b.path + ": :" + b.name + " does not occur in the SQL of " + s.id)
		}
	}
	if len(s.binds) > 255 {
		return errors.New(s.path + ".sql: " + s.id + " has more than 255 parameters")
	}
	return nil
}

func find(list []*bind, name string) *bind {
	for _, b := range list {
		if b.name == name {
			return b
		}
	}
	return nil
}

// resolveRef finds what a ref refers to among the statements of g so far.
func (p *parsed) resolveRef(b *bind, g *group, s *statement) error {
	if b.ref == "" {
		return nil
	}
	id, column, _ := strings.Cut(b.ref, ".")
	for k, earlier := range p.statements[g.first:] {
		if earlier.id != id {
			continue
		}
		for c, name := range earlier.columns {
			if name == column {
				b.refK, b.refC = uint8(k), uint8(c)
				return nil
			}
		}
		return errors.New(b.path + ".ref: " + strconv.Quote(column) + " is none of the columns that " + id + " declares (" +
			strings.Join(earlier.columns, ", ") + "); list its result with columns: [" + column + ", …]")
	}
	return errors.New(b.path + ".ref: there is no statement " + strconv.Quote(id) + " before " + s.id +
		" in its transaction")
}
