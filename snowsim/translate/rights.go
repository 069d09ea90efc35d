package translate

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// hasPrivilege reports whether the session has a privilege on an object. Only the primary role
// makes objects.
func (p *parser) hasPrivilege(privilege string, o securable) bool {
	return p.account.hasPrivilege(p.session, privilege, o)
}

// hasTablePrivilege is hasPrivilege for a table; "" is any privilege.
func (p *parser) hasTablePrivilege(privilege string, t *tableEntry) bool {
	if privilege == "MERGE" {
		return p.hasTablePrivilege("INSERT", t) && p.hasTablePrivilege("UPDATE", t)
	}
	return p.hasPrivilege(privilege, tableObject(t))
}

// schemaObject is a schema with its owner, "" when it is not there.
func (p *parser) schemaObject(n objectName) securable {
	o := schemaObject(n.database, n.schema)
	o.owner = p.ownerOf("SELECT owner FROM snowsim.schemas WHERE database = $1 AND schema = $2", n.database, n.schema)
	return o
}

// ownerOf reads an owner from the catalog, "" when the object does not exist.
func (p *parser) ownerOf(sql string, args ...any) string {
	var owner *string
	err := p.account.host.Postgres().QueryRow(p.ctx, sql, args...).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && owner == nil {
		return ""
	} else if err != nil {
		p.fail(err)
	}
	if *owner == "" {
		return deniedOwner
	}
	return *owner
}

// hiddenTables is a condition that leaves out the tables on which the session has no right,
// over the columns that name database, schema and table; "" when it sees all.
func (p *parser) hiddenTables(database, schema, object string) string {
	if p.account.grants.isUnrestricted(p.session.Role) {
		return ""
	}
	tables, err := p.account.owners(p.ctx)
	if err != nil {
		p.fail(err)
	}
	var hidden []string
	for i := range tables {
		if n := tables[i].name; !p.hasTablePrivilege("", &tables[i]) {
			hidden = append(hidden, "("+literal(n.database)+", "+literal(n.schema)+", "+
				literal(n.object)+")")
		}
	}
	if len(hidden) == 0 {
		return ""
	}
	return "(" + database + ", " + schema + ", " + object + ") NOT IN (" + strings.Join(hidden, ", ") + ")"
}

// wrongKind refuses a statement for one kind of object that names another.
func wrongKind(found, wanted string) error {
	return protocol.CompilationError("002203", "02000", "Object found is of type '%s', not specified type '%s'.", found,
		wanted)
}

// resolve finds a table or view, notes that the statement uses it, and checks the privilege.
func (p *parser) resolve(n objectName, privilege string) *tableEntry {
	t, err := p.account.tables.lookup(p.ctx, n)
	if err != nil {
		p.fail(err)
	}
	if t == nil || !p.hasTablePrivilege("", t) {
		p.fail(protocol.DoesNotExist("Object", displayName(n.object)))
	}
	if t.Kind == kindView && privilege != "" && privilege != "SELECT" {
		p.fail(wrongKind("VIEW", "TABLE"))
	}
	if !p.hasTablePrivilege(privilege, t) {
		p.fail(insufficient(strings.ToLower(tableObject(t).kind), displayName(n.object)))
	}
	p.tables = append(p.tables, t)
	return t
}

// work classifies the load of the statement on the warehouse.
func (p *parser) work(op warehouse.Op) warehouse.Work {
	w := warehouse.Work{Op: op}
	for _, t := range p.tables {
		w.Table = max(w.Table, t.tableType)
	}
	if op == warehouse.Scan && len(p.tables) > 0 {
		for _, key := range p.tables[0].lookupColumns() {
			if p.equal[key] {
				w.Op = warehouse.Lookup
			}
		}
	}
	return w
}
