package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// definition reads a column or a constraint of CREATE TABLE.
func (p *Parser) definition(d *tableDDL) {
	switch {
	case p.Is("CONSTRAINT"):
		p.Fail(protocol.NotSimulated("a named CONSTRAINT"))
	case p.Is("PRIMARY", "KEY"), p.Is("UNIQUE") && p.PeekAt(1).Text == "(", p.Is("FOREIGN", "KEY"):
		p.key(d)
	case (p.Is("INDEX") || p.Is("UNIQUE", "INDEX")) && p.PeekAt(2).Text != ",":
		p.indexDefinition(d)
	default:
		p.column(d)
	}
}

func (p *Parser) columnList() (columns []string) {
	p.InParentheses(func() {
		columns = append(columns, p.Identifier())
		for p.AcceptSymbol(",") {
			columns = append(columns, p.Identifier())
		}
	})
	return columns
}

func quoteAll(columns []string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = Quote(Short(c))
	}
	return strings.Join(all, ", ")
}

// key reads an out-of-line key. Only hybrid tables enforce it.
func (p *Parser) key(d *tableDDL) {
	k := KeyMeta{Enforced: d.Kind == "hybrid"}
	switch {
	case p.Accept("PRIMARY", "KEY"):
		k.Kind = "PRIMARY KEY"
	case p.Accept("UNIQUE"):
		k.Kind = "UNIQUE"
	default:
		p.Expect("FOREIGN", "KEY")
		k.Kind = "FOREIGN KEY"
	}
	k.Columns = p.columnList()
	sql := k.Kind + " (" + quoteAll(k.Columns) + ")"
	if k.Kind == "FOREIGN KEY" {
		sql += p.references(&k)
	}
	p.addKey(d, k, sql)
}

func (p *Parser) references(k *KeyMeta) string {
	p.Expect("REFERENCES")
	n := p.Name()
	k.References, k.Target = n.String(), []string{n.Database, n.Schema, n.Object}
	sql := " REFERENCES " + n.Postgres()
	if p.IsSymbol("(") {
		sql += " (" + quoteAll(p.columnList()) + ")"
	}
	return sql
}

func (p *Parser) addKey(d *tableDDL, k KeyMeta, sql string) {
	k.Name = fmt.Sprintf("SYS_CONSTRAINT_%s", strings.ToLower(Short(d.Table+"_"+strings.Join(k.Columns, "_"))))
	if k.Kind == "PRIMARY KEY" && slices.ContainsFunc(d.Keys, func(o KeyMeta) bool { return o.Kind == k.Kind }) {
		p.Failf("Table '%s' has more than one primary key.", Display(d.Table))
	}
	d.Keys = append(d.Keys, k)
	if k.Enforced {
		d.definitions = append(d.definitions, sql)
	}
}

// indexDefinition reads INDEX name (columns) [INCLUDE (columns)].
func (p *Parser) indexDefinition(d *tableDDL) {
	index := IndexMeta{Unique: p.Accept("UNIQUE")}
	p.Expect("INDEX")
	index.Name = p.Identifier()
	index.Columns = p.columnList()
	if p.Accept("INCLUDE") {
		index.Include = p.columnList()
	}
	d.Indexes = append(d.Indexes, index)
}

// column reads a column.
func (p *Parser) column(d *tableDDL) {
	name := p.Identifier()
	ty := p.DataType()
	c := ColumnMeta{Name: name, Postgres: Short(name), Type: ty.Name, Precision: ty.Precision,
		Scale:  ty.Scale,
		Length: ty.Length, Nullable: true}
	if ty.Name == "VARCHAR" && c.Length == 0 {
		c.Length = MaxText
	}
	if ty.Name == "BINARY" && c.Length == 0 {
		c.Length = 8388608
	}
	sql := Quote(Short(name)) + " " + ty.Postgres
	own := func(kind string) KeyMeta {
		return KeyMeta{Kind: kind, Columns: []string{name}, Enforced: d.Kind == "hybrid"}
	}
	at := len(d.definitions)
	d.definitions = append(d.definitions, "")
	for {
		switch {
		case p.Accept("NOT", "NULL"):
			c.Nullable = false
		case p.Accept("AUTOINCREMENT"):
			sql += p.identity(d, &c)
		case p.Accept("PRIMARY", "KEY"):
			p.addKey(d, own("PRIMARY KEY"), "PRIMARY KEY ("+Quote(Short(name))+")")
		case p.Accept("UNIQUE"):
			p.addKey(d, own("UNIQUE"), "UNIQUE ("+Quote(Short(name))+")")
		case p.Accept("FOREIGN", "KEY"), p.Is("REFERENCES"):
			k := own("FOREIGN KEY")
			to := p.references(&k)
			p.addKey(d, k, "FOREIGN KEY ("+Quote(Short(name))+")"+to)
		case p.IsAny("COLLATE", "COMMENT", "CONSTRAINT", "DEFAULT", "IDENTITY"):
			p.Fail(protocol.NotSimulated("a column with %s", p.Peek().Text))
		default:
			if !c.Nullable {
				sql += " NOT NULL"
			}
			d.definitions[at] = sql
			d.Columns = append(d.Columns, c)
			return
		}
	}
}

// identity makes the sequence that serves an AUTOINCREMENT column: Postgres has no identity
// of type numeric.
func (p *Parser) identity(d *tableDDL, c *ColumnMeta) string {
	if p.IsAny("START", "INCREMENT") || p.IsSymbol("(") {
		p.Fail(protocol.NotSimulated("AUTOINCREMENT with a start or an increment"))
	}
	c.Identity, c.Start, c.Increment = true, 1, 1
	sequence := Quote(SchemaName(d.Database, d.Schema)) + "." + Quote(Short(d.Table+"~"+c.Name+"~seq"))
	d.sequences = append(d.sequences, "CREATE SEQUENCE "+sequence+" CACHE 100")
	table := Name{Database: d.Database, Schema: d.Schema, Object: d.Table}.Postgres()
	d.owned = append(d.owned, "ALTER SEQUENCE "+sequence+" OWNED BY "+table+"."+Quote(Short(c.Name)))
	return " DEFAULT nextval(" + Literal(sequence) + "::regclass)"
}
