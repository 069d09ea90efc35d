package translate

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

// grantColumns are those of SHOW GRANTS ON … and TO ROLE …, roleColumns those of
// SHOW GRANTS TO USER … and OF ROLE ….
const (
	grantColumns = "created_on, privilege, granted_on, name, granted_to, grantee_name, grant_option, granted_by"
	roleColumns  = "created_on, role, granted_to, grantee_name, granted_by"
)

// withheld owns what somebody is denied privileges on: the denied role is shown with
// those that are left to it, instead of as an owner, who would have all.
const withheld = "SNOWSIM"

// privilegesOf are what ALL stands for.
var privilegesOf = map[string][]string{
	"TABLE":     {"SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES"},
	"WAREHOUSE": {"USAGE", "MONITOR", "OPERATE", "MODIFY", "MANAGE ATTACHED TABLES"},
	"SCHEMA": {"USAGE", "MONITOR", "MODIFY", "CREATE TABLE", "CREATE HYBRID TABLE", "CREATE INTERACTIVE TABLE",
		"CREATE VIEW", "ADD SEARCH OPTIMIZATION"},
	"DATABASE": {"USAGE", "MONITOR", "MODIFY", "CREATE SCHEMA"},
}

// shownGrant is a row of SHOW GRANTS.
type shownGrant struct{ privilege, kind, name, grantee string }

// showGrants reads SHOW GRANTS [ON … | TO ROLE r [INCLUDE HIERARCHY] | TO USER u | OF ROLE r].
func (p *parser) showGrants() *plan.Plan {
	var rows []shownGrant
	switch {
	case p.accept("TO", "ROLE"):
		role := p.identifier()
		if !p.t.RoleExists(role) {
			p.fail(noRole(role))
		}
		rows = p.grantsTo(role, p.accept("INCLUDE", "HIERARCHY"))
	case p.accept("OF", "ROLE"):
		return p.showMembers("", p.identifier())
	case p.accept("TO", "USER"):
		return p.showMembers(p.identifier(), "")
	case p.accept("ON", "ACCOUNT"):
		rows = p.grantsOn(accountObject)
	case p.accept("ON"):
		rows = p.grantsOn(p.shownObject())
	default:
		return p.showMembers(p.session.User, "")
	}
	slices.SortFunc(rows, func(a, b shownGrant) int {
		return strings.Compare(a.grantee+"\x00"+a.privilege+"\x00"+a.name, b.grantee+"\x00"+b.privilege+"\x00"+b.name)
	})
	values := make([]string, len(rows))
	at := p.created()
	for i, r := range rows {
		values[i] = at + ", " + texts(r.privilege, r.kind, r.name, "ROLE", r.grantee, "false", "")
	}
	return p.showValues(grantColumns, values)
}

// created is the time at which everything was granted: the account keeps no other.
func (p *parser) created() string {
	return "timestamptz " + literal(p.t.host.Now().UTC().Format(time.RFC3339))
}

func texts(values ...string) string {
	for i, v := range values {
		values[i] = literal(v) + "::text"
	}
	return strings.Join(values, ", ")
}

// showValues lists rows as SQL, so that RESULT_SCAN can read them.
func (p *parser) showValues(columns string, rows []string) *plan.Plan {
	where := ""
	if len(rows) == 0 {
		rows = []string{"NULL::timestamptz" + strings.Repeat(", NULL::text", strings.Count(columns, ","))}
		where = " WHERE false"
	}
	return &plan.Plan{Type: plan.Show, SQL: "SELECT * FROM (VALUES (" + strings.Join(rows, "), (") + ")) AS listing (" +
		columns + ")" + where, Describe: p.t.describe}
}

// shownObject reads the object of SHOW GRANTS ON.
func (p *parser) shownObject() object {
	_ = p.accept("HYBRID") || p.accept("INTERACTIVE")
	switch kind := p.next().text; kind {
	case "TABLE", "VIEW":
		return tableObject(p.resolve(p.name(), ""))
	case "SCHEMA":
		n := p.schema()
		o := p.schemaObject(n)
		if o.owner == "" {
			p.fail(noSchema(n))
		}
		return o
	case "WAREHOUSE":
		name := p.identifier()
		w, ok := p.t.host.Warehouses().Get(name)
		o := warehouseObject(name)
		if o.owner = w.Owner; !ok || !p.may("", o) {
			p.fail(plan.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.", display(name)))
		}
		return o
	case "DATABASE":
		o := databaseObject(p.identifier())
		o.owner = p.ownerOf("SELECT min(owner) FROM snowsim.schemas WHERE database = $1 AND $2 = ''", o.short, "")
		return o
	default:
		o := object{kind: kind}
		parts := p.parts()
		o.name, o.short = fullName(parts...), parts[len(parts)-1]
		return o
	}
}

// schemaObject is a schema with its owner, "" when it is not there.
func (p *parser) schemaObject(n name) object {
	o := schemaObject(n.database, n.schema)
	o.owner = p.ownerOf("SELECT owner FROM snowsim.schemas WHERE database = $1 AND schema = $2", n.database, n.schema)
	return o
}

func (p *parser) ownerOf(sql string, args ...any) string {
	var owner *string
	err := p.t.host.Postgres().QueryRow(p.ctx, sql, args...).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && owner == nil {
		return ""
	} else if err != nil {
		p.fail(err)
	}
	if *owner == "" {
		return withheld
	}
	return *owner
}

// grantsOn lists who is granted what on an object.
func (p *parser) grantsOn(o object) []shownGrant {
	g := p.t.grants
	var rows []shownGrant
	left, isDenied := []string{}, false
	for _, privilege := range privilegesOf[o.kind] {
		if g.denies(p.session.Role, privilege, o) {
			isDenied = true
		} else {
			left = append(left, privilege)
		}
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if isDenied {
		if g.everything(p.session.Role) || g.within(p.session.Role, o.owner, 0) {
			for _, privilege := range left {
				rows = append(rows, shownGrant{privilege, o.kind, o.name, p.session.Role})
			}
		}
		o.owner = withheld
	}
	if o.owner != "" {
		rows = append(rows, shownGrant{"OWNERSHIP", o.kind, o.name, o.owner})
	}
	for one := range g.held {
		if one.covers(o) {
			for _, privilege := range one.privileges() {
				if !isDenied || slices.Contains(left, privilege) || one.role != p.session.Role {
					rows = append(rows, shownGrant{privilege, o.kind, o.name, one.role})
				}
			}
		}
	}
	return compact(rows)
}

// privileges are those of the grant, one by one.
func (one grant) privileges() []string {
	if one.privilege == "ALL" {
		return privilegesOf[one.kind]
	}
	return []string{one.privilege}
}

func compact(rows []shownGrant) []shownGrant {
	seen := map[shownGrant]bool{}
	return slices.DeleteFunc(rows, func(r shownGrant) bool {
		again := seen[r]
		seen[r] = true
		return again
	})
}

// grantsTo lists what a role is granted, and with its hierarchy what the roles in it are.
func (p *parser) grantsTo(role string, hierarchy bool) []shownGrant {
	g := p.t.grants
	g.mu.RLock()
	defer g.mu.RUnlock()
	of := func(other string) bool { return other == role || hierarchy && g.within(role, other, 0) }
	var rows []shownGrant
	for one := range g.held {
		if of(one.role) {
			for _, privilege := range one.privileges() {
				rows = append(rows, shownGrant{privilege, one.kind, one.object, one.role})
			}
		}
	}
	for holder, members := range g.roles {
		if of(holder) {
			for _, member := range members {
				rows = append(rows, shownGrant{"USAGE", "ROLE", display(member), holder})
			}
		}
	}
	owned, err := p.t.host.Postgres().Query(p.ctx,
		"SELECT owner, database_name, schema_name, table_name FROM snowsim.tables")
	if err != nil {
		p.fail(err)
	}
	tables, err := pgx.CollectRows(owned,
		func(row pgx.CollectableRow) (r [4]string, err error) { return r, row.Scan(&r[0], &r[1], &r[2], &r[3]) })
	if err != nil {
		p.fail(err)
	}
	for _, t := range tables {
		if of(t[0]) {
			rows = append(rows, shownGrant{"OWNERSHIP", "TABLE", fullName(t[1:]...), t[0]})
		}
	}
	return compact(rows)
}

// showMembers lists the roles of a user, or who is granted a role.
func (p *parser) showMembers(user, role string) *plan.Plan {
	g := p.t.grants
	g.mu.RLock()
	defer g.mu.RUnlock()
	var rows []string
	at := p.created()
	for grantee, roles := range g.users {
		for _, r := range roles {
			if grantee == user || r == role {
				rows = append(rows, at+", "+texts(r, "USER", grantee, ""))
			}
		}
	}
	for grantee, roles := range g.roles {
		if role != "" && slices.Contains(roles, role) {
			rows = append(rows, at+", "+texts(role, "ROLE", grantee, ""))
		}
	}
	slices.Sort(rows)
	return p.showValues(roleColumns, rows)
}

// unseen is a condition that leaves out the tables on which the session has no right,
// over the columns that name database, schema and table; "" when it sees all.
func (p *parser) unseen(database, schema, object string) string {
	g := p.t.grants
	g.mu.RLock()
	all := g.everything(p.session.Role)
	g.mu.RUnlock()
	if all {
		return ""
	}
	rows, err := p.t.host.Postgres().Query(p.ctx,
		"SELECT owner, database_name, schema_name, table_name FROM snowsim.tables")
	if err != nil {
		p.fail(err)
	}
	tables, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t table, err error) {
		return t, row.Scan(&t.Owner, &t.name.database, &t.name.schema, &t.name.object)
	})
	if err != nil {
		p.fail(err)
	}
	var hidden []string
	for i := range tables {
		if n := tables[i].name; !p.mayTable("", &tables[i]) {
			hidden = append(hidden, "("+literal(n.database)+", "+literal(n.schema)+", "+literal(n.object)+")")
		}
	}
	if len(hidden) == 0 {
		return ""
	}
	return "(" + database + ", " + schema + ", " + object + ") NOT IN (" + strings.Join(hidden, ", ") + ")"
}
