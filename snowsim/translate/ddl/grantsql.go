package ddl

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/translate/catalog"
	"github.com/loadstone-db/loadstone/snowsim/translate/syntax"
)

const executed = "Statement executed successfully."

// grant reads GRANT and REVOKE.
func (p *definer) grant() *plan.Plan {
	revoke := p.Next().Text == "REVOKE"
	p.Accept("GRANT", "OPTION", "FOR")
	if p.Accept("ROLE") {
		return p.grantRole(revoke)
	}
	var privileges []string
	for {
		var words []string
		for !p.Is("ON") && !p.IsSymbol(",") && !p.Is("TO") {
			if p.Peek().Kind != syntax.Word {
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
		p.Fail(&plan.Error{Code: "003001", State: "42501", Message: "SQL access control error:\nGrant not executed: " +
			"Insufficient privileges."})
	}
	if pattern != "" {
		on.Name = pattern
	}
	all := make([]catalog.Grant, len(privileges))
	for i, privilege := range privileges {
		all[i] = catalog.Grant{Role: role, Privilege: privilege, Kind: on.Kind, Object: on.Name}
	}
	return p.change(revoke, all)
}

// grantObject reads what privileges are granted on; pattern stands for all objects in a container.
func (p *definer) grantObject() (on catalog.Object, pattern string) {
	if p.Accept("ACCOUNT") {
		return catalog.AccountObject, ""
	}
	all := p.Accept("ALL") || p.Accept("FUTURE")
	var kind []string
	for p.Peek().Kind == syntax.Word && !p.Is("IN") &&
		syntax.IsOneOf(p.Peek(), "TABLE", "TABLES", "SCHEMA", "SCHEMAS", "DATABASE", "WAREHOUSE", "VIEW", "VIEWS",
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
			on = catalog.DatabaseObject(database)
			on.Kind = kind[0]
			return on, on.Name + ".*"
		}
		p.Expect("SCHEMA")
		n := p.Schema()
		on = catalog.SchemaObject(n.Database, n.Schema)
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
			p.Fail(plan.DoesNotExist("Table", n.String()))
		}
		return catalog.TableObject(t), ""
	case "SCHEMA":
		n := p.Schema()
		return catalog.SchemaObject(n.Database, n.Schema), ""
	case "WAREHOUSE":
		return catalog.WarehouseObject(p.Identifier()), ""
	}
	name := p.Identifier()
	return catalog.Object{Kind: kind[0], Name: catalog.Display(name), Short: name}, ""
}

// grantRole reads GRANT ROLE r TO ROLE | USER ….
func (p *definer) grantRole(revoke bool) *plan.Plan {
	member := p.Identifier()
	if !p.Account.RoleExists(member) {
		p.Fail(catalog.NoRole(member))
	}
	p.toOrFrom(revoke)
	if p.Accept("USER") {
		return p.record(executed, revoke, []catalog.Grant{{Role: p.Identifier(), Kind: "USER", Object: member}})
	}
	p.Accept("ROLE")
	return p.change(revoke, []catalog.Grant{{Role: p.Identifier(), Kind: "MEMBER", Object: member}})
}

func (p *definer) toOrFrom(revoke bool) {
	if revoke {
		p.Expect("FROM")
	} else {
		p.Expect("TO")
	}
}

// change grants to a role that exists, or revokes from it.
func (p *definer) change(revoke bool, all []catalog.Grant) *plan.Plan {
	if !p.Account.RoleExists(all[0].Role) {
		p.Fail(catalog.NoRole(all[0].Role))
	}
	return p.record(executed, revoke, all)
}

// record grants or revokes.
func (p *definer) record(message string, revoke bool, all []catalog.Grant) *plan.Plan {
	return p.DDL(message, func(ctx context.Context, conn *pgx.Conn) error {
		for _, one := range all {
			sql, values := "INSERT INTO snowsim.grants VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
				[]any{one.Role, one.Privilege, one.Kind, one.Object, p.Account.Host.Now()}
			if revoke {
				sql, values = "DELETE FROM snowsim.grants WHERE role = $1 AND privilege = $2 AND kind = $3 AND object = $4",
					values[:4]
			}
			if _, err := conn.Exec(ctx, sql, values...); err != nil {
				return catalog.Error(err)
			}
		}
		p.Account.Grants.Change(revoke, all)
		return nil
	})
}

// createRole reads CREATE ROLE [IF NOT EXISTS] r ….
func (p *definer) createRole() *plan.Plan {
	ifNotExists := p.Accept("IF", "NOT", "EXISTS")
	role := p.Identifier()
	p.schemaOptions()
	if p.Account.RoleExists(role) {
		if ifNotExists {
			return p.Done(role + " already exists, statement succeeded.")
		}
		p.Fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", role))
	}
	return p.record("Role "+role+" successfully created.", false, []catalog.Grant{{Role: role, Kind: "ROLE"}})
}

func (p *definer) dropRole(ifExists bool) *plan.Plan {
	role := p.Identifier()
	if !p.Account.Grants.Made(role) {
		if ifExists {
			return p.Done("Drop statement executed successfully (" + role + " already dropped).")
		}
		p.Fail(catalog.NoRole(role))
	}
	return p.DDL(role+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if _,
			err := conn.Exec(ctx, "DELETE FROM snowsim.grants WHERE role = $1 OR kind IN ('MEMBER', 'USER') AND object = $1",
			role); err != nil {
			return catalog.Error(err)
		}
		p.Account.Grants.DropRole(role)
		return nil
	})
}
