package translate

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// grantColumns are the columns of SHOW GRANTS ON.
const grantColumns = "created_on, privilege, granted_on, name, granted_to, grantee_name, grant_option, granted_by"

// showGrants reads SHOW GRANTS ON TABLE | SCHEMA | WAREHOUSE ….
func (p *Parser) showGrants() *Plan {
	if !p.Accept("ON") || !p.IsAny("TABLE", "VIEW", "SCHEMA", "WAREHOUSE") {
		p.Fail(protocol.NotSimulated("SHOW GRANTS other than ON TABLE, VIEW, SCHEMA or WAREHOUSE"))
	}
	rows := p.Account.Grants.On(p.shownObject(), p.Session.Role)
	slices.SortFunc(rows, func(a, b ShownGrant) int {
		return strings.Compare(a.Grantee+"\x00"+a.Privilege+"\x00"+a.Name, b.Grantee+"\x00"+b.Privilege+"\x00"+b.Name)
	})
	// The account does not keep when something was granted.
	now := p.Account.Host.Now().UTC()
	r := &Result{}
	for _, name := range strings.Split(grantColumns, ", ") {
		r.Columns = append(r.Columns, protocol.Text(name))
	}
	r.Columns[0] = protocol.TimestampLTZ("created_on")
	for _, row := range rows {
		r.Rows = append(r.Rows, []any{now, row.Privilege, row.Kind, row.Name, "ROLE", row.Grantee, "false", ""})
	}
	return p.Shown(r)
}

// shownObject reads the object of SHOW GRANTS ON.
func (p *Parser) shownObject() Object {
	switch p.Next().Text {
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
	}
	return TableObject(p.Resolve(p.Name(), ""))
}
