package translate

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

const executed = "Statement executed successfully."

// grant reads GRANT.
func (p *Parser) grant() *Plan {
	p.Expect("GRANT")
	if p.Accept("ROLE") {
		return p.grantRole()
	}
	var privileges []string
	for {
		var words []string
		for !p.Is("ON") && !p.IsSymbol(",") && !p.Is("TO") {
			if p.Peek().Kind != Word {
				p.Unexpected()
			}
			words = append(words, p.Next().Text)
		}
		privileges = append(privileges, strings.TrimSuffix(strings.Join(words, " "), " PRIVILEGES"))
		if !p.AcceptSymbol(",") {
			break
		}
	}
	if len(privileges) == 1 && privileges[0] == "IMPORTED" {
		privileges[0] = "IMPORTED PRIVILEGES"
	}
	p.Expect("ON")
	on, pattern := p.grantObject()
	p.Expect("TO", "ROLE")
	role := p.Identifier()
	if !p.May("OWNERSHIP", on) {
		p.Fail(&protocol.Error{Code: "003001", State: "42501", Message: "SQL access control error:\nGrant not executed: " +
			"Insufficient privileges."})
	}
	if pattern != "" {
		on.Name = pattern
	}
	all := make([]Grant, len(privileges))
	for i, privilege := range privileges {
		all[i] = Grant{Role: role, Privilege: privilege, Kind: on.Kind, Object: on.Name}
	}
	return p.grantTo(all)
}

// grantObject reads what privileges are granted on; pattern stands for all objects in a container.
func (p *Parser) grantObject() (on Object, pattern string) {
	if p.Accept("ACCOUNT") {
		return AccountObject, ""
	}
	all := p.Accept("ALL") || p.Accept("FUTURE")
	var kind []string
	for p.Peek().Kind == Word && !p.Is("IN") &&
		IsOneOf(p.Peek(), "TABLE", "TABLES", "SCHEMA", "SCHEMAS", "DATABASE", "WAREHOUSE", "VIEW", "VIEWS",
			"INTEGRATION") {
		kind = append(kind, strings.TrimSuffix(p.Next().Text, "S"))
	}
	if len(kind) != 1 {
		p.Unexpected() // GRANT … ON HYBRID TABLE is not supported by Snowflake either: it is ON TABLE
	}
	if all {
		p.Expect("IN")
		p.Expect("SCHEMA")
		n := p.Schema()
		on = SchemaObject(n.Database, n.Schema)
		on.Kind = kind[0]
		return on, on.Name + ".*"
	}
	switch kind[0] {
	case "TABLE", "VIEW":
		n := p.Name()
		t, err := p.Account.Tables.Table(p.Context, n)
		if err != nil {
			p.Fail(err)
		}
		if t == nil || !p.MayTable("", t) {
			p.Fail(protocol.DoesNotExist("Table", n.String()))
		}
		return TableObject(t), ""
	case "SCHEMA":
		n := p.Schema()
		return SchemaObject(n.Database, n.Schema), ""
	case "WAREHOUSE":
		return WarehouseObject(p.Identifier()), ""
	}
	name := p.Identifier()
	return Object{Kind: kind[0], Name: Display(name), Short: name}, ""
}

// grantRole reads GRANT ROLE r TO ROLE | USER ….
func (p *Parser) grantRole() *Plan {
	member := p.Identifier()
	if !p.Account.RoleExists(member) {
		p.Fail(NoRole(member))
	}
	p.Expect("TO")
	if p.Accept("USER") {
		return p.record(executed, []Grant{{Role: p.Identifier(), Kind: "USER", Object: member}})
	}
	p.Expect("ROLE")
	return p.grantTo([]Grant{{Role: p.Identifier(), Kind: "MEMBER", Object: member}})
}

// grantTo grants to a role that exists.
func (p *Parser) grantTo(all []Grant) *Plan {
	if !p.Account.RoleExists(all[0].Role) {
		p.Fail(NoRole(all[0].Role))
	}
	return p.record(executed, all)
}

// record writes grants to the catalog.
func (p *Parser) record(message string, all []Grant) *Plan {
	return p.DDL(message, func(ctx context.Context, conn *pgx.Conn) error {
		for _, one := range all {
			if _, err := conn.Exec(ctx, "INSERT INTO snowsim.grants VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
				one.Role, one.Privilege, one.Kind, one.Object, p.Account.Host.Now()); err != nil {
				return Error(err)
			}
		}
		p.Account.Grants.Add(all)
		return nil
	})
}

// createRole reads CREATE ROLE r.
func (p *Parser) createRole() *Plan {
	role := p.Identifier()
	if p.Account.RoleExists(role) {
		p.Fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", role))
	}
	return p.record("Role "+role+" successfully created.", []Grant{{Role: role, Kind: "ROLE"}})
}

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
