package translate

import (
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// grantColumns are those of SHOW GRANTS ON … and TO ROLE …, roleColumns those of
// SHOW GRANTS TO USER … and OF ROLE ….
const (
	grantColumns = "created_on, privilege, granted_on, name, granted_to, grantee_name, grant_option, granted_by"
	roleColumns  = "created_on, role, granted_to, grantee_name, granted_by"
)

// showGrants reads SHOW GRANTS [ON … | TO ROLE r [INCLUDE HIERARCHY] | TO USER u | OF ROLE r].
func (p *Parser) showGrants() *Plan {
	var rows []ShownGrant
	switch {
	case p.Accept("TO", "ROLE"):
		role := p.Identifier()
		if !p.Account.RoleExists(role) {
			p.Fail(NoRole(role))
		}
		rows = p.grantsTo(role, p.Accept("INCLUDE", "HIERARCHY"))
	case p.Accept("OF", "ROLE"):
		return p.showMembers("", p.Identifier())
	case p.Accept("TO", "USER"):
		return p.showMembers(p.Identifier(), "")
	case p.Accept("ON", "ACCOUNT"):
		rows = p.Account.Grants.On(AccountObject, p.Session.Role)
	case p.Accept("ON"):
		rows = p.Account.Grants.On(p.shownObject(), p.Session.Role)
	default:
		return p.showMembers(p.Session.User, "")
	}
	slices.SortFunc(rows, func(a, b ShownGrant) int {
		return strings.Compare(a.Grantee+"\x00"+a.Privilege+"\x00"+a.Name, b.Grantee+"\x00"+b.Privilege+"\x00"+b.Name)
	})
	values := make([]string, len(rows))
	at := p.created()
	for i, r := range rows {
		values[i] = at + ", " + texts(r.Privilege, r.Kind, r.Name, "ROLE", r.Grantee, "false", "")
	}
	return p.showValues(grantColumns, values)
}

// created is the time at which everything was granted: the account keeps no other.
func (p *Parser) created() string {
	return "timestamptz " + Literal(p.Account.Host.Now().UTC().Format(time.RFC3339))
}

func texts(values ...string) string {
	for i, v := range values {
		values[i] = Literal(v) + "::text"
	}
	return strings.Join(values, ", ")
}

// showValues lists rows as SQL, so that RESULT_SCAN can read them.
func (p *Parser) showValues(columns string, rows []string) *Plan {
	where := ""
	if len(rows) == 0 {
		rows = []string{"NULL::timestamptz" + strings.Repeat(", NULL::text", strings.Count(columns, ","))}
		where = " WHERE false"
	}
	return &Plan{Type: protocol.Show, SQL: "SELECT * FROM (VALUES (" + strings.Join(rows, "), (") + ")) AS listing (" +
		columns + ")" + where, Describe: p.Account.Describe}
}

// shownObject reads the object of SHOW GRANTS ON.
func (p *Parser) shownObject() Object {
	_ = p.Accept("HYBRID") || p.Accept("INTERACTIVE")
	switch kind := p.Next().Text; kind {
	case "TABLE", "VIEW":
		return TableObject(p.Resolve(p.Name(), ""))
	case "SCHEMA":
		n := p.Schema()
		o := p.SchemaObject(n)
		if o.Owner == "" {
			p.Fail(NoSchema(n))
		}
		return o
	case "WAREHOUSE":
		name := p.Identifier()
		w, ok := p.Account.Host.Warehouses().Get(name)
		o := WarehouseObject(name)
		if o.Owner = w.Owner; !ok || !p.May("", o) {
			p.Fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.",
				Display(name)))
		}
		return o
	case "DATABASE":
		o := DatabaseObject(p.Identifier())
		o.Owner = p.OwnerOf("SELECT min(owner) FROM snowsim.schemas WHERE database = $1 AND $2 = ''", o.Short, "")
		return o
	default:
		o := Object{Kind: kind}
		parts := p.Parts()
		o.Name, o.Short = FullName(parts...), parts[len(parts)-1]
		return o
	}
}

// grantsTo lists what a role is granted and owns, and with its hierarchy what the roles in it do.
func (p *Parser) grantsTo(role string, hierarchy bool) []ShownGrant {
	tables, err := p.Account.Owned(p.Context)
	if err != nil {
		p.Fail(err)
	}
	return p.Account.Grants.To(role, hierarchy, tables)
}

// showMembers lists the roles of a user, or who is granted a role.
func (p *Parser) showMembers(user, role string) *Plan {
	var rows []string
	at := p.created()
	for _, m := range p.Account.Grants.Members(user, role) {
		rows = append(rows, at+", "+texts(m.Role, m.Kind, m.Grantee, ""))
	}
	slices.Sort(rows)
	return p.showValues(roleColumns, rows)
}
