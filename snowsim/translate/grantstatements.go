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
func (p *parser) grant() *Plan {
	revokes := !p.accept("GRANT")
	if revokes {
		p.expect("REVOKE")
	}
	if p.is("ROLE") && revokes {
		p.fail(protocol.NotSimulated("REVOKE ROLE"))
	}
	if p.accept("ROLE") {
		return p.grantRole()
	}
	var privileges []string
	for {
		var words []string
		for !p.is("ON") && !p.isSymbol(",") && !p.isAny("TO", "FROM") {
			if p.peek().kind != tokenWord {
				p.unexpected()
			}
			words = append(words, p.next().text)
		}
		privileges = append(privileges, strings.TrimSuffix(strings.Join(words, " "), " PRIVILEGES"))
		if !p.acceptSymbol(",") {
			break
		}
	}
	if len(privileges) == 1 && privileges[0] == "IMPORTED" {
		privileges[0] = "IMPORTED PRIVILEGES"
	}
	p.expect("ON")
	on, pattern := p.grantObject()
	p.expect(map[bool]string{false: "TO", true: "FROM"}[revokes], "ROLE")
	role := p.identifier()
	if !p.hasPrivilege("OWNERSHIP", on) {
		p.fail(&protocol.Error{Code: "003001", State: "42501", Message: "SQL access control error:\nGrant not executed: " +
			"Insufficient privileges."})
	}
	if pattern != "" {
		on.name = pattern
	}
	all := make([]grant, len(privileges))
	for i, privilege := range privileges {
		all[i] = grant{role: role, privilege: privilege, kind: on.kind, object: on.name}
	}
	if revokes {
		return p.revoke(all)
	}
	return p.grantTo(all)
}

// revoke takes privileges away that were granted in the same words.
func (p *parser) revoke(all []grant) *Plan {
	return p.ddlPlan(executed, func(ctx context.Context, conn *pgx.Conn) error {
		for _, one := range all {
			if _, err := conn.Exec(ctx,
				"DELETE FROM snowsim.grants WHERE role = $1 AND privilege = $2 AND kind = $3 AND object = $4",
				one.role, one.privilege, one.kind, one.object); err != nil {
				return Error(err)
			}
		}
		p.account.grants.removeAll(all)
		return nil
	})
}

// grantObject reads what privileges are granted on; pattern stands for all objects in a container.
func (p *parser) grantObject() (on securable, pattern string) {
	if p.accept("ACCOUNT") {
		return accountObject, ""
	}
	all := p.accept("ALL") || p.accept("FUTURE")
	var kind []string
	for p.peek().kind == tokenWord && !p.is("IN") &&
		isOneOf(p.peek(), "TABLE", "TABLES", "SCHEMA", "SCHEMAS", "DATABASE", "WAREHOUSE", "VIEW", "VIEWS",
			"INTEGRATION") {
		kind = append(kind, strings.TrimSuffix(p.next().text, "S"))
	}
	if len(kind) != 1 {
		p.unexpected() // GRANT … ON HYBRID TABLE is not supported by Snowflake either: it is ON TABLE
	}
	if all {
		p.expect("IN")
		p.expect("SCHEMA")
		n := p.schema()
		on = schemaObject(n.database, n.schema)
		on.kind = kind[0]
		return on, on.name + ".*"
	}
	switch kind[0] {
	case "TABLE", "VIEW":
		n := p.name()
		t, err := p.account.tables.lookup(p.ctx, n)
		if err != nil {
			p.fail(err)
		}
		if t == nil || !p.hasTablePrivilege("", t) {
			p.fail(protocol.DoesNotExist("Table", n.String()))
		}
		return tableObject(t), ""
	case "SCHEMA":
		n := p.schema()
		return schemaObject(n.database, n.schema), ""
	case "WAREHOUSE":
		return warehouseObject(p.identifier()), ""
	}
	name := p.identifier()
	return securable{kind: kind[0], name: displayName(name), short: name}, ""
}

// grantRole reads GRANT ROLE r TO ROLE | USER ….
func (p *parser) grantRole() *Plan {
	member := p.identifier()
	if !p.account.RoleExists(member) {
		p.fail(noRole(member))
	}
	p.expect("TO")
	if p.accept("USER") {
		return p.record(executed, []grant{{role: p.identifier(), kind: "USER", object: member}})
	}
	p.expect("ROLE")
	return p.grantTo([]grant{{role: p.identifier(), kind: "MEMBER", object: member}})
}

// grantTo grants to a role that exists.
func (p *parser) grantTo(all []grant) *Plan {
	if !p.account.RoleExists(all[0].role) {
		p.fail(noRole(all[0].role))
	}
	return p.record(executed, all)
}

// record writes grants to the catalog.
func (p *parser) record(message string, all []grant) *Plan {
	return p.ddlPlan(message, func(ctx context.Context, conn *pgx.Conn) error {
		for _, one := range all {
			if _, err := conn.Exec(ctx, "INSERT INTO snowsim.grants VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
				one.role, one.privilege, one.kind, one.object, p.account.host.Now()); err != nil {
				return Error(err)
			}
		}
		p.account.grants.addAll(all)
		return nil
	})
}

// createRole reads CREATE ROLE r.
func (p *parser) createRole() *Plan {
	role := p.identifier()
	if p.account.RoleExists(role) {
		p.fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", role))
	}
	return p.record("Role "+role+" successfully created.", []grant{{role: role, kind: "ROLE"}})
}

// grantColumns are the columns of SHOW GRANTS ON.
const grantColumns = "created_on, privilege, granted_on, name, granted_to, grantee_name, grant_option, granted_by"

// showGrants reads SHOW GRANTS ON TABLE | SCHEMA | WAREHOUSE ….
func (p *parser) showGrants() *Plan {
	if !p.accept("ON") || !p.isAny("TABLE", "VIEW", "SCHEMA", "WAREHOUSE") {
		p.fail(protocol.NotSimulated("SHOW GRANTS other than ON TABLE, VIEW, SCHEMA or WAREHOUSE"))
	}
	rows := p.account.grants.grantsOn(p.shownObject(), p.session.Role)
	slices.SortFunc(rows, func(a, b grantRow) int {
		return strings.Compare(a.grantee+"\x00"+a.privilege+"\x00"+a.name, b.grantee+"\x00"+b.privilege+"\x00"+b.name)
	})
	// The account does not keep when something was granted.
	now := p.account.host.Now().UTC()
	r := &Result{}
	for _, name := range strings.Split(grantColumns, ", ") {
		r.Columns = append(r.Columns, protocol.Text(name))
	}
	r.Columns[0] = protocol.TimestampLTZ("created_on")
	for _, row := range rows {
		r.Rows = append(r.Rows, []any{now, row.privilege, row.kind, row.name, "ROLE", row.grantee, "false", ""})
	}
	return p.showPlan(r)
}

// shownObject reads the object of SHOW GRANTS ON.
func (p *parser) shownObject() securable {
	switch p.next().text {
	case "SCHEMA":
		n := p.schema()
		o := p.schemaObject(n)
		if o.owner == "" {
			p.fail(noSchema(n))
		}
		return o
	case "WAREHOUSE":
		name := p.identifier()
		w, ok := p.account.host.Warehouses().Get(name)
		o := warehouseObject(name)
		if o.owner = w.Owner; !ok || !p.hasPrivilege("", o) {
			p.fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.",
				displayName(name)))
		}
		return o
	}
	return tableObject(p.resolve(p.name(), ""))
}
