package translate

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

const executed = "Statement executed successfully."

// grant reads GRANT and REVOKE.
func (p *Parser) grant() *Plan {
	revoke := p.Next().Text == "REVOKE"
	p.Accept("GRANT", "OPTION", "FOR")
	if p.Accept("ROLE") {
		return p.grantRole(revoke)
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
	p.toOrFrom(revoke)
	p.Accept("ROLE")
	role := p.Identifier()
	p.Accept("WITH", "GRANT", "OPTION")
	for p.Accept("CASCADE") || p.Accept("RESTRICT") || p.Accept("COPY", "CURRENT", "GRANTS") ||
		p.Accept("REVOKE", "CURRENT", "GRANTS") {
	}
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
	return p.change(revoke, all)
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
		if p.Accept("DATABASE") {
			database := p.Identifier()
			on = DatabaseObject(database)
			on.Kind = kind[0]
			return on, on.Name + ".*"
		}
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
func (p *Parser) grantRole(revoke bool) *Plan {
	member := p.Identifier()
	if !p.Account.RoleExists(member) {
		p.Fail(NoRole(member))
	}
	p.toOrFrom(revoke)
	if p.Accept("USER") {
		return p.record(executed, revoke, []Grant{{Role: p.Identifier(), Kind: "USER", Object: member}})
	}
	p.Accept("ROLE")
	return p.change(revoke, []Grant{{Role: p.Identifier(), Kind: "MEMBER", Object: member}})
}

func (p *Parser) toOrFrom(revoke bool) {
	if revoke {
		p.Expect("FROM")
	} else {
		p.Expect("TO")
	}
}

// change grants to a role that exists, or revokes from it.
func (p *Parser) change(revoke bool, all []Grant) *Plan {
	if !p.Account.RoleExists(all[0].Role) {
		p.Fail(NoRole(all[0].Role))
	}
	return p.record(executed, revoke, all)
}

// record grants or revokes.
func (p *Parser) record(message string, revoke bool, all []Grant) *Plan {
	return p.DDL(message, func(ctx context.Context, conn *pgx.Conn) error {
		for _, one := range all {
			sql, values := "INSERT INTO snowsim.grants VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
				[]any{one.Role, one.Privilege, one.Kind, one.Object, p.Account.Host.Now()}
			if revoke {
				sql, values = "DELETE FROM snowsim.grants WHERE role = $1 AND privilege = $2 AND kind = $3 AND object = $4",
					values[:4]
			}
			if _, err := conn.Exec(ctx, sql, values...); err != nil {
				return Error(err)
			}
		}
		p.Account.Grants.Change(revoke, all)
		return nil
	})
}

// createRole reads CREATE ROLE [IF NOT EXISTS] r ….
func (p *Parser) createRole() *Plan {
	ifNotExists := p.Accept("IF", "NOT", "EXISTS")
	role := p.Identifier()
	p.schemaOptions()
	if p.Account.RoleExists(role) {
		if ifNotExists {
			return p.Done(role + " already exists, statement succeeded.")
		}
		p.Fail(protocol.CompilationError("002002", "42710", "Object '%s' already exists.", role))
	}
	return p.record("Role "+role+" successfully created.", false, []Grant{{Role: role, Kind: "ROLE"}})
}

func (p *Parser) dropRole(ifExists bool) *Plan {
	role := p.Identifier()
	if !p.Account.Grants.Made(role) {
		if ifExists {
			return p.Done("Drop statement executed successfully (" + role + " already dropped).")
		}
		p.Fail(NoRole(role))
	}
	return p.DDL(role+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if _,
			err := conn.Exec(ctx, "DELETE FROM snowsim.grants WHERE role = $1 OR kind IN ('MEMBER', 'USER') AND object = $1",
			role); err != nil {
			return Error(err)
		}
		p.Account.Grants.DropRole(role)
		return nil
	})
}
