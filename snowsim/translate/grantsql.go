package translate

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
)

const executed = "Statement executed successfully."

// grant reads GRANT and REVOKE.
func (p *parser) grant() *plan.Plan {
	revoke := p.next().text == "REVOKE"
	p.accept("GRANT", "OPTION", "FOR")
	if p.accept("ROLE") {
		return p.grantRole(revoke)
	}
	var privileges []string
	for {
		var words []string
		for !p.is("ON") && !p.isSymbol(",") && !p.is("TO") {
			if p.peek().kind != word {
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
	p.toOrFrom(revoke)
	p.accept("ROLE")
	role := p.identifier()
	p.accept("WITH", "GRANT", "OPTION")
	for p.accept("CASCADE") || p.accept("RESTRICT") || p.accept("COPY", "CURRENT", "GRANTS") ||
		p.accept("REVOKE", "CURRENT", "GRANTS") {
	}
	if !p.may("OWNERSHIP", on) {
		p.fail(&plan.Error{Code: "003001", State: "42501", Message: "SQL access control error:\nGrant not executed: " +
			"Insufficient privileges."})
	}
	if pattern != "" {
		on.name = pattern
	}
	all := make([]grant, len(privileges))
	for i, privilege := range privileges {
		all[i] = grant{role, privilege, on.kind, on.name}
	}
	return p.change(revoke, all)
}

// grantObject reads what privileges are granted on; pattern stands for all objects in a container.
func (p *parser) grantObject() (on object, pattern string) {
	if p.accept("ACCOUNT") {
		return accountObject, ""
	}
	all := p.accept("ALL") || p.accept("FUTURE")
	var kind []string
	for p.peek().kind == word && !p.is("IN") &&
		isOneOf(p.peek(), "TABLE", "TABLES", "SCHEMA", "SCHEMAS", "DATABASE", "WAREHOUSE", "VIEW", "VIEWS", "INTEGRATION") {
		kind = append(kind, strings.TrimSuffix(p.next().text, "S"))
	}
	if len(kind) != 1 {
		p.unexpected() // GRANT … ON HYBRID TABLE is not supported by Snowflake either: it is ON TABLE
	}
	if all {
		p.expect("IN")
		if p.accept("DATABASE") {
			database := p.identifier()
			on = databaseObject(database)
			on.kind = kind[0]
			return on, on.name + ".*"
		}
		p.expect("SCHEMA")
		n := p.schema()
		on = schemaObject(n.database, n.schema)
		on.kind = kind[0]
		return on, on.name + ".*"
	}
	switch kind[0] {
	case "TABLE", "VIEW":
		n := p.name()
		t, err := p.t.catalog.table(p.ctx, n)
		if err != nil {
			p.fail(err)
		}
		if t == nil || !p.mayTable("", t) {
			p.fail(plan.DoesNotExist("Table", n.String()))
		}
		return tableObject(t), ""
	case "SCHEMA":
		n := p.schema()
		return schemaObject(n.database, n.schema), ""
	case "WAREHOUSE":
		return warehouseObject(p.identifier()), ""
	}
	name := p.identifier()
	return object{kind: kind[0], name: display(name), short: name}, ""
}

// grantRole reads GRANT ROLE r TO ROLE | USER ….
func (p *parser) grantRole(revoke bool) *plan.Plan {
	member := p.identifier()
	if !p.t.RoleExists(member) {
		p.fail(noRole(member))
	}
	p.toOrFrom(revoke)
	if p.accept("USER") {
		return p.record(executed, revoke, []grant{{role: p.identifier(), kind: "USER", object: member}})
	}
	p.accept("ROLE")
	return p.change(revoke, []grant{{role: p.identifier(), kind: "MEMBER", object: member}})
}

func (p *parser) toOrFrom(revoke bool) {
	if revoke {
		p.expect("FROM")
	} else {
		p.expect("TO")
	}
}

func noRole(role string) *plan.Error {
	return plan.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.", display(role))
}

// change grants to a role that exists, or revokes from it.
func (p *parser) change(revoke bool, all []grant) *plan.Plan {
	if !p.t.RoleExists(all[0].role) {
		p.fail(noRole(all[0].role))
	}
	return p.record(executed, revoke, all)
}

// record grants or revokes.
func (p *parser) record(message string, revoke bool, all []grant) *plan.Plan {
	return p.ddl(message, func(ctx context.Context, conn *pgx.Conn) error {
		for _, one := range all {
			sql, values := "INSERT INTO snowsim.grants VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
				[]any{one.role, one.privilege, one.kind, one.object, p.t.host.Now()}
			if revoke {
				sql, values = "DELETE FROM snowsim.grants WHERE role = $1 AND privilege = $2 AND kind = $3 AND object = $4",
					values[:4]
			}
			if _, err := conn.Exec(ctx, sql, values...); err != nil {
				return Error(err)
			}
		}
		g := p.t.grants
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, one := range all {
			if revoke {
				g.remove(one)
			} else {
				g.add(one)
			}
		}
		return nil
	})
}

// createRole reads CREATE ROLE [IF NOT EXISTS] r ….
func (p *parser) createRole() *plan.Plan {
	ifNotExists := p.accept("IF", "NOT", "EXISTS")
	role := p.identifier()
	p.schemaOptions()
	if p.t.RoleExists(role) {
		if ifNotExists {
			return p.done(role + " already exists, statement succeeded.")
		}
		p.fail(plan.CompilationError("002002", "42710", "Object '%s' already exists.", role))
	}
	return p.record("Role "+role+" successfully created.", false, []grant{{role: role, kind: "ROLE"}})
}

func (p *parser) dropRole(ifExists bool) *plan.Plan {
	role := p.identifier()
	p.t.grants.mu.RLock()
	_, made := p.t.grants.roles[role]
	p.t.grants.mu.RUnlock()
	if !made {
		if ifExists {
			return p.done("Drop statement executed successfully (" + role + " already dropped).")
		}
		p.fail(noRole(role))
	}
	return p.ddl(role+" successfully dropped.", func(ctx context.Context, conn *pgx.Conn) error {
		if _,
			err := conn.Exec(ctx, "DELETE FROM snowsim.grants WHERE role = $1 OR kind IN ('MEMBER', 'USER') AND object = $1",
			role); err != nil {
			return Error(err)
		}
		g := p.t.grants
		g.mu.Lock()
		defer g.mu.Unlock()
		g.epochs++
		delete(g.roles, role)
		for one := range g.held {
			if one.role == role {
				delete(g.held, one)
			}
		}
		for _, lists := range []map[string][]string{g.roles, g.users} {
			for who, members := range lists {
				lists[who] = slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == role })
			}
		}
		return nil
	})
}
