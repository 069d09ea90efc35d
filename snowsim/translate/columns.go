package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// definition reads a column or a constraint of CREATE TABLE.
func (p *parser) definition(d *tableDDL) {
	switch {
	case p.is("CONSTRAINT"):
		p.fail(protocol.NotSimulated("a named CONSTRAINT"))
	case p.is("PRIMARY", "KEY"), p.is("UNIQUE") && p.peekAt(1).text == "(", p.is("FOREIGN", "KEY"):
		p.key(d)
	case (p.is("INDEX") || p.is("UNIQUE", "INDEX")) && p.peekAt(2).text != ",":
		p.indexDefinition(d)
	default:
		p.column(d)
	}
}

func (p *parser) columnList() (columns []string) {
	p.inParentheses(func() {
		columns = append(columns, p.identifier())
		for p.acceptSymbol(",") {
			columns = append(columns, p.identifier())
		}
	})
	return columns
}

func quoteAll(columns []string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = quote(shortName(c))
	}
	return strings.Join(all, ", ")
}

// key reads an out-of-line key. Only hybrid tables enforce it.
func (p *parser) key(d *tableDDL) {
	k := keyMeta{Enforced: d.Kind == "hybrid"}
	switch {
	case p.accept("PRIMARY", "KEY"):
		k.Kind = "PRIMARY KEY"
	case p.accept("UNIQUE"):
		k.Kind = "UNIQUE"
	default:
		p.expect("FOREIGN", "KEY")
		k.Kind = "FOREIGN KEY"
	}
	k.Columns = p.columnList()
	sql := k.Kind + " (" + quoteAll(k.Columns) + ")"
	if k.Kind == "FOREIGN KEY" {
		sql += p.references(&k)
	}
	p.addKey(d, k, sql)
}

func (p *parser) references(k *keyMeta) string {
	p.expect("REFERENCES")
	n := p.name()
	k.References, k.Target = n.String(), []string{n.database, n.schema, n.object}
	sql := " REFERENCES " + n.postgres()
	if p.isSymbol("(") {
		sql += " (" + quoteAll(p.columnList()) + ")"
	}
	return sql
}

func (p *parser) addKey(d *tableDDL, k keyMeta, sql string) {
	k.Name = fmt.Sprintf("SYS_CONSTRAINT_%s", strings.ToLower(shortName(d.Table+"_"+strings.Join(k.Columns, "_"))))
	if k.Kind == "PRIMARY KEY" && slices.ContainsFunc(d.Keys, func(o keyMeta) bool { return o.Kind == k.Kind }) {
		p.failf("Table '%s' has more than one primary key.", displayName(d.Table))
	}
	d.Keys = append(d.Keys, k)
	if k.Enforced {
		d.definitions = append(d.definitions, sql)
	}
}

// indexDefinition reads INDEX name (columns) [INCLUDE (columns)].
func (p *parser) indexDefinition(d *tableDDL) {
	index := indexMeta{Unique: p.accept("UNIQUE")}
	p.expect("INDEX")
	index.Name = p.identifier()
	index.Columns = p.columnList()
	if p.accept("INCLUDE") {
		index.Include = p.columnList()
	}
	d.Indexes = append(d.Indexes, index)
}

// column reads a column.
func (p *parser) column(d *tableDDL) {
	name := p.identifier()
	ty := p.dataType()
	c := columnMeta{Name: name, Postgres: shortName(name), Type: ty.name, Precision: ty.precision,
		Scale:  ty.scale,
		Length: ty.length, Nullable: true}
	if ty.name == "VARCHAR" && c.Length == 0 {
		c.Length = maxVarchar
	}
	if ty.name == "BINARY" && c.Length == 0 {
		c.Length = 8388608
	}
	sql := quote(shortName(name)) + " " + ty.postgres
	own := func(kind string) keyMeta {
		return keyMeta{Kind: kind, Columns: []string{name}, Enforced: d.Kind == "hybrid"}
	}
	at := len(d.definitions)
	d.definitions = append(d.definitions, "")
	for {
		switch {
		case p.accept("NOT", "NULL"):
			c.Nullable = false
		case p.accept("AUTOINCREMENT"):
			sql += p.identity(d, &c)
		case p.accept("PRIMARY", "KEY"):
			p.addKey(d, own("PRIMARY KEY"), "PRIMARY KEY ("+quote(shortName(name))+")")
		case p.accept("UNIQUE"):
			p.addKey(d, own("UNIQUE"), "UNIQUE ("+quote(shortName(name))+")")
		case p.accept("FOREIGN", "KEY"), p.is("REFERENCES"):
			k := own("FOREIGN KEY")
			to := p.references(&k)
			p.addKey(d, k, "FOREIGN KEY ("+quote(shortName(name))+")"+to)
		case p.isAny("COLLATE", "COMMENT", "CONSTRAINT", "DEFAULT", "IDENTITY"):
			p.fail(protocol.NotSimulated("a column with %s", p.peek().text))
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
func (p *parser) identity(d *tableDDL, c *columnMeta) string {
	if p.isAny("START", "INCREMENT") || p.isSymbol("(") {
		p.fail(protocol.NotSimulated("AUTOINCREMENT with a start or an increment"))
	}
	c.Identity, c.Start, c.Increment = true, 1, 1
	sequence := quote(schemaName(d.Database, d.Schema)) + "." + quote(shortName(d.Table+"~"+c.Name+"~seq"))
	d.sequences = append(d.sequences, "CREATE SEQUENCE "+sequence+" CACHE 100")
	table := objectName{database: d.Database, schema: d.Schema, object: d.Table}.postgres()
	d.owned = append(d.owned, "ALTER SEQUENCE "+sequence+" OWNED BY "+table+"."+quote(shortName(c.Name)))
	return " DEFAULT nextval(" + literal(sequence) + "::regclass)"
}
