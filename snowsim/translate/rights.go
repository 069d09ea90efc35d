package translate

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// May reports whether the session has a privilege on an object. Only the primary role
// makes objects.
func (p *Parser) May(privilege string, o Object) bool {
	return p.Account.May(p.Session, privilege, o)
}

// MayTable is may for a table; "" asks whether the session sees it at all.
func (p *Parser) MayTable(privilege string, t *Table) bool {
	if privilege == "MERGE" {
		return p.MayTable("INSERT", t) && p.MayTable("UPDATE", t)
	}
	return p.May(privilege, TableObject(t))
}

// SchemaObject is a schema with its owner, "" when it is not there.
func (p *Parser) SchemaObject(n Name) Object {
	o := SchemaObject(n.Database, n.Schema)
	o.Owner = p.OwnerOf("SELECT owner FROM snowsim.schemas WHERE database = $1 AND schema = $2", n.Database, n.Schema)
	return o
}

// OwnerOf asks the catalog for an owner, "" when there is no such object.
func (p *Parser) OwnerOf(sql string, args ...any) string {
	var owner *string
	err := p.Account.Host.Postgres().QueryRow(p.Context, sql, args...).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && owner == nil {
		return ""
	} else if err != nil {
		p.Fail(err)
	}
	if *owner == "" {
		return Withheld
	}
	return *owner
}

// Unseen is a condition that leaves out the tables on which the session has no right,
// over the columns that name database, schema and table; "" when it sees all.
func (p *Parser) Unseen(database, schema, object string) string {
	if p.Account.Grants.SeesAll(p.Session.Role) {
		return ""
	}
	tables, err := p.Account.Owned(p.Context)
	if err != nil {
		p.Fail(err)
	}
	var hidden []string
	for i := range tables {
		if n := tables[i].Name; !p.MayTable("", &tables[i]) {
			hidden = append(hidden, "("+Literal(n.Database)+", "+Literal(n.Schema)+", "+
				Literal(n.Object)+")")
		}
	}
	if len(hidden) == 0 {
		return ""
	}
	return "(" + database + ", " + schema + ", " + object + ") NOT IN (" + strings.Join(hidden, ", ") + ")"
}

// OfKind refuses a statement for one kind of object that names another.
func OfKind(found, wanted string) error {
	return protocol.CompilationError("002203", "02000", "Object found is of type '%s', not specified type '%s'.", found,
		wanted)
}

// Resolve finds a table or view, notes that the statement uses it, and checks the privilege.
func (p *Parser) Resolve(n Name, privilege string) *Table {
	t, err := p.Account.Tables.Table(p.Context, n)
	if err != nil {
		p.Fail(err)
	}
	if t == nil || !p.MayTable("", t) {
		p.Fail(protocol.DoesNotExist("Object", Display(n.Object)))
	}
	if t.Kind == View && privilege != "" && privilege != "SELECT" {
		p.Fail(OfKind("VIEW", "TABLE"))
	}
	if !p.MayTable(privilege, t) {
		p.Fail(Insufficient(strings.ToLower(TableObject(t).Kind), Display(n.Object)))
	}
	p.Tables = append(p.Tables, t)
	return t
}

// Work classifies what the statement asks of the warehouse.
func (p *Parser) Work(op warehouse.Op) warehouse.Work {
	w := warehouse.Work{Op: op}
	for _, t := range p.Tables {
		w.Table = max(w.Table, t.Type)
	}
	if op == warehouse.Scan && len(p.Tables) > 0 {
		for _, key := range p.Tables[0].Lookups() {
			if p.equal[key] {
				w.Op = warehouse.Lookup
			}
		}
	}
	return w
}
